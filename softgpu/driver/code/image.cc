#include "softgpu/driver/code/image.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "softgpu/driver/code/fatbin.h"
#include "softgpu/driver/code/fatbin_wrapper.h"
#include "softgpu/driver/memory/is_mapped.h"
#include "softgpu/ptx/text/header.h"

namespace softgpu {
namespace {

constexpr int kNewestPtx = 90;  // the language of CUDA 13.0
constexpr std::string_view kElf = "\177ELF";

CUresult refuse(CUresult result, std::string message, std::string& error) {
  error = std::move(message);
  return result;
}

CUresult take_text(std::string_view text, CodeImage& out, std::string& error) {
  text = text.substr(0, text.find('\0'));
  const auto header = ptx::read_header(text);
  // A text with a damaged header is refused by the loader, which names the line.
  if (!header && text.find(".version") == std::string_view::npos) {
    return refuse(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a fat binary", error);
  }
  out.texts.push_back({header ? header->architecture : 0, std::string(text)});
  return CUDA_SUCCESS;
}

CUresult take_container(std::span<const std::byte> container, CodeImage& out, std::string& error) {
  const auto entries = read_fatbin(container);
  if (!entries) return refuse(CUDA_ERROR_INVALID_IMAGE, entries.error(), error);
  out.is_container = true;
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind != FatbinEntry::Kind::kPtx) continue;
    auto text = ptx_text(entry);
    if (!text) return refuse(CUDA_ERROR_INVALID_IMAGE, text.error(), error);
    out.texts.push_back({static_cast<int>(entry.architecture), std::move(*text)});
  }
  if (!out.texts.empty()) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fat binary holds machine code only, no PTX", error);
}

CUresult no_machine_code(std::string& error) {
  return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image is machine code, which needs the real GPU; PTX runs", error);
}

// The first bytes of an image that may be shorter, as a string that ends at a NUL.
std::string_view first_bytes(const void* image, std::size_t most) {
  const auto* text = static_cast<const char*>(image);
  return {text, ::strnlen(text, most)};
}

std::uint32_t magic_of(const void* image) {
  std::uint32_t magic = 0;
  const std::string_view start = first_bytes(image, sizeof magic);
  std::memcpy(&magic, start.data(), start.size());
  return magic;
}

}  // namespace

CUresult read_image(const void* image, CodeImage& out, std::string& error) {
  if (image == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "no image", error);
  if (first_bytes(image, kElf.size()) == kElf) return no_machine_code(error);
  const std::uint32_t magic = magic_of(image);
  if (magic == kFatbinWrapperMagic) {
    return refuse(CUDA_ERROR_INVALID_IMAGE, "the image is a fat binary's wrapper; load what it points to", error);
  }
  if (magic != kFatbinMagic) return take_text(static_cast<const char*>(image), out, error);
  const auto* bytes = static_cast<const std::byte*>(image);
  if (!is_mapped(bytes, kFatbinHeaderBytes)) return refuse(CUDA_ERROR_INVALID_IMAGE, "a cut off fat binary", error);
  const auto size = fatbin_bytes({bytes, kFatbinHeaderBytes});
  if (!size) return refuse(CUDA_ERROR_INVALID_IMAGE, size.error(), error);
  if (!is_mapped(bytes, *size)) return refuse(CUDA_ERROR_INVALID_IMAGE, "the fat binary claims absent memory", error);
  return take_container({bytes, *size}, out, error);
}

CUresult read_library_image(const void* image, CodeImage& out, std::string& error) {
  if (image == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "no image", error);
  if (magic_of(image) != kFatbinWrapperMagic) return read_image(image, out, error);
  FatbinWrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  const bool readable = wrapper.data != nullptr && is_mapped(wrapper.data, sizeof kFatbinMagic);
  if (!readable || magic_of(wrapper.data) != kFatbinMagic) {
    return refuse(CUDA_ERROR_INVALID_IMAGE, "the wrapper points to no fat binary", error);
  }
  return read_image(wrapper.data, out, error);
}

CUresult read_image(std::span<const std::byte> image, CodeImage& out, std::string& error) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  if (text.starts_with(kElf)) return no_machine_code(error);
  std::uint32_t magic = 0;
  std::memcpy(&magic, image.data(), std::min(sizeof magic, image.size()));
  return magic == kFatbinMagic ? take_container(image, out, error) : take_text(text, out, error);
}

CUresult read_file(const char* path, std::vector<std::byte>& bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* first = reinterpret_cast<const std::byte*>(content.data());
  bytes.assign(first, first + content.size());
  return CUDA_SUCCESS;
}

CUresult choose_text(const CodeImage& image, int architecture, std::string_view& text, std::string& error) {
  const std::string device = "sm_" + std::to_string(architecture);
  ptx::Header best;
  bool found = false;
  for (const CodeImage::Text& candidate : image.texts) {
    const auto header = ptx::read_header(candidate.text);
    if (!header && image.is_container) continue;
    if (header && !ptx::runs_on(*header, architecture)) continue;
    if (found && header->architecture < best.architecture) continue;
    best = header.value_or(ptx::Header{});
    text = candidate.text;
    found = true;
  }
  if (!found && image.is_container) {
    return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fat binary has no PTX that runs on " + device, error);
  }
  if (!found) return refuse(CUDA_ERROR_INVALID_PTX, "the PTX is for an architecture newer than " + device, error);
  if (best.version > kNewestPtx) {
    return refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is of a version newer than 9.0", error);
  }
  return CUDA_SUCCESS;
}

}  // namespace softgpu
