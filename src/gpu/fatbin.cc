// Fat binaries: a header of 16 bytes (magic number, version, its own bytes, bytes of all entries), then entry after entry,
// each a header of 64 bytes or more and a payload. A payload is PTX text or a cubin for one architecture, plain, one LZ4
// block or one zstd frame.
//
//   50 ed 55 ba 01 00 10 00 ...                  the container
//   01 00 01 01 50 00 00 00 ...                  an entry: PTX, its header has 80 bytes
#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "gpu/image_formats.h"

namespace fairlead {
namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kElf = 2;
constexpr std::uint16_t kElfOfNewerTools = 16;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t entries_bytes;
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t padded_bytes;
  std::uint32_t compressed_bytes, options_offset;
  std::uint16_t code_minor, code_major;
  std::uint32_t architecture;
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags, reserved;
  std::uint64_t plain_bytes;  // of a compressed payload
};
static_assert(sizeof(EntryHeader) == 64);

template <typename... Args>
tl::unexpected<Error> refused(std::size_t offset, fmt::format_string<Args...> format, Args&&... args) {
  return fail(Errc::kInvalidArgument, "fat binary, byte {}: {}", offset,
              fmt::format(format, std::forward<Args>(args)...));
}

// Empty: it is no such thing.
std::string decompressed(const EntryHeader& header, std::string_view payload) {
  std::string out(header.plain_bytes, '\0');
  if ((header.flags & kFlagZstd) != 0) {
    const std::size_t written = ZSTD_decompress(out.data(), out.size(), payload.data(), payload.size());
    return ZSTD_isError(written) == 0 && written == out.size() ? out : "";
  }
  if (payload.size() > LZ4_MAX_INPUT_SIZE) return "";
  const int written =
      LZ4_decompress_safe(payload.data(), out.data(), static_cast<int>(payload.size()), static_cast<int>(out.size()));
  return std::cmp_equal(written, out.size()) ? out : "";
}

class FatbinReader {
 public:
  explicit FatbinReader(std::string_view image) : image_(image) {}

  Result<std::vector<std::string>> read() {
    ContainerHeader header{};
    if (image_.size() < sizeof header) return refused(0, "the header is cut off");
    std::memcpy(&header, image_.data(), sizeof header);
    if (header.header_bytes < sizeof header || header.header_bytes > image_.size() ||
        header.entries_bytes > image_.size() - header.header_bytes) {
      return refused(0, "a header of {} bytes and entries of {}, but the file has {}", header.header_bytes,
                     header.entries_bytes, image_.size());
    }
    image_ = image_.substr(0, header.header_bytes + header.entries_bytes);
    for (at_ = header.header_bytes; at_ < image_.size();) {
      if (Status status = read_entry(); !status) return fail(status.error());
    }
    if (images_.empty()) return refused(at_, "no PTX and no machine code in it");
    return std::move(images_);
  }

 private:
  Status read_entry() {
    EntryHeader header{};
    const std::size_t left = image_.size() - at_;
    if (left < sizeof header) return refused(at_, "an entry's header is cut off");
    std::memcpy(&header, image_.data() + at_, sizeof header);
    if (header.header_bytes < sizeof header || header.header_bytes > left ||
        header.padded_bytes > left - header.header_bytes) {
      return refused(at_, "an entry's header of {} bytes and payload of {}, but {} are left", header.header_bytes,
                     header.padded_bytes, left);
    }
    const std::string_view payload = image_.substr(at_ + header.header_bytes, header.padded_bytes);
    if (header.kind == kPtx || header.kind == kElf || header.kind == kElfOfNewerTools) {
      if (Status status = unpack(header, payload); !status) return status;
    }
    at_ += header.header_bytes + header.padded_bytes;
    return {};
  }

  Status unpack(const EntryHeader& header, std::string_view payload) {
    const bool is_compressed = (header.flags & (kFlagLz4 | kFlagZstd)) != 0;
    if (!is_compressed) {
      images_.emplace_back(payload);
      return {};
    }
    if (header.compressed_bytes > payload.size()) {
      return refused(at_, "{} compressed bytes in a payload of {}", header.compressed_bytes, payload.size());
    }
    if (header.plain_bytes == 0 || header.plain_bytes > bytes_left_) {
      return refused(at_, "a payload of {} bytes; all of a file together may have 1 to {}", header.plain_bytes,
                     kMaxDecompressedBytes);
    }
    bytes_left_ -= header.plain_bytes;
    if (header.compressed_bytes != 0) payload = payload.substr(0, header.compressed_bytes);
    images_.push_back(decompressed(header, payload));
    if (!images_.back().empty()) return {};
    return refused(at_, "the payload cannot be decompressed to {} bytes", header.plain_bytes);
  }

  std::string_view image_;
  std::size_t at_ = 0;
  std::size_t bytes_left_ = kMaxDecompressedBytes;
  std::vector<std::string> images_;
};

}  // namespace

bool is_fatbin(std::string_view image) {
  std::uint32_t magic = 0;
  if (image.size() < sizeof magic) return false;
  std::memcpy(&magic, image.data(), sizeof magic);
  return magic == kMagic;
}

Result<std::vector<std::string>> unpack_fatbin(std::string_view image) {
  return FatbinReader(image).read();
}

}  // namespace fairlead
