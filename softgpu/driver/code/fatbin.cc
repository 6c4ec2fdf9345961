#include "softgpu/driver/code/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace softgpu {
namespace {

constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kElf = 2;
constexpr std::uint16_t kElfOfNewerTools = 16;
constexpr std::uint64_t kFlag64Bit = 0x1;
constexpr std::uint64_t kFlagLinux = 0x10;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t entries_bytes;
};
static_assert(sizeof(ContainerHeader) == kFatbinHeaderBytes);

// As on disk; the header may be longer (header_bytes), newer tools append to it.
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t padded_bytes;
  std::uint32_t compressed_bytes;  // 0 when the payload is plain
  std::uint32_t options_offset;    // of PtxOptions, from the entry's beginning on; 0 in machine code
  std::uint16_t code_minor, code_major;
  std::uint32_t architecture;
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t text_bytes;  // with its NUL; 0 when the payload is plain
};
static_assert(sizeof(EntryHeader) == 64);

// Follows the header of a PTX entry. NVIDIA's driver reads the text without asking whether it is there.
struct PtxOptions {
  std::uint32_t text_offset = sizeof(EntryHeader) + 8;  // from the entry's beginning on
  std::uint32_t reserved = 0;
  char text[8] = {};  // no options
};
static_assert(sizeof(PtxOptions) == 16);

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

FatbinEntry::Kind kind_of(std::uint16_t kind) {
  if (kind == kPtx) return FatbinEntry::Kind::kPtx;
  return kind == kElf || kind == kElfOfNewerTools ? FatbinEntry::Kind::kMachineCode : FatbinEntry::Kind::kOther;
}

auto problem(std::size_t offset, const std::string& what) {
  return failure("fat binary, byte " + std::to_string(offset) + ": " + what);
}

Result<FatbinEntry> read_entry(std::span<const std::byte> container, std::size_t at, std::size_t& next) {
  EntryHeader header;
  const std::size_t left = container.size() - at;
  if (left < sizeof header) return problem(at, "the entry's header is cut off");
  std::memcpy(&header, container.data() + at, sizeof header);
  if (header.header_bytes < sizeof header || header.header_bytes > left) {
    return problem(at, "an entry's header of " + std::to_string(header.header_bytes) + " bytes");
  }
  if (header.padded_bytes > left - header.header_bytes) return problem(at, "the entry's payload is cut off");
  const auto payload = container.subspan(at + header.header_bytes, header.padded_bytes);
  next = at + header.header_bytes + payload.size();
  FatbinEntry entry{kind_of(header.kind), header.architecture, Compression::kNone, payload.size(), payload};
  if (entry.kind != FatbinEntry::Kind::kPtx || (header.flags & (kFlagLz4 | kFlagZstd)) == 0) return entry;
  if (header.compressed_bytes > payload.size()) return problem(at, "more compressed bytes than the payload has");
  if (header.text_bytes > kLargestPtx) return problem(at, "a text of " + std::to_string(header.text_bytes) + " bytes");
  entry.compression = (header.flags & kFlagZstd) != 0 ? Compression::kZstd : Compression::kLz4;
  entry.text_bytes = header.text_bytes;
  if (header.compressed_bytes != 0) entry.payload = payload.first(header.compressed_bytes);
  return entry;
}

// The payload of a text, with a NUL as compilers embed it.
std::vector<std::byte> compress(const std::string& with_nul, Compression compression) {
  const std::string_view text(with_nul.c_str(), with_nul.size() + 1);
  std::vector<std::byte> out;
  if (compression == Compression::kZstd) {
    out.resize(ZSTD_compressBound(text.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT));
  } else if (compression == Compression::kLz4) {
    const int bytes = static_cast<int>(text.size());
    out.resize(static_cast<std::size_t>(LZ4_compressBound(bytes)));
    const int written =
        LZ4_compress_default(text.data(), reinterpret_cast<char*>(out.data()), bytes, static_cast<int>(out.size()));
    out.resize(static_cast<std::size_t>(written));
  } else {
    out.resize(text.size());
    std::memcpy(out.data(), text.data(), text.size());
  }
  return out;
}

EntryHeader header_of(const PtxForArchitecture& ptx, std::size_t payload_bytes, Compression compression) {
  EntryHeader header{};
  header.kind = kPtx;
  header.version = 0x101;
  header.header_bytes = sizeof header + sizeof(PtxOptions);
  header.options_offset = sizeof header;
  header.padded_bytes = padded(payload_bytes);
  header.code_major = static_cast<std::uint16_t>(ptx.version / 10);
  header.code_minor = static_cast<std::uint16_t>(ptx.version % 10);
  header.architecture = ptx.architecture;
  header.flags = kFlag64Bit | kFlagLinux;
  if (compression == Compression::kNone) return header;
  header.flags |= compression == Compression::kZstd ? kFlagZstd : kFlagLz4;
  header.compressed_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.text_bytes = ptx.text.size() + 1;
  return header;
}

}  // namespace

Result<std::size_t> fatbin_bytes(std::span<const std::byte> bytes) {
  ContainerHeader header;
  if (bytes.size() < sizeof header) return problem(0, "the header is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kFatbinMagic) return problem(0, "no fat binary");
  if (header.header_bytes < sizeof header) return problem(6, "a header of less than 16 bytes");
  if (header.entries_bytes > kLargestFatbin) return problem(8, "it claims more than 4 GiB");
  return header.header_bytes + header.entries_bytes;
}

Result<std::vector<FatbinEntry>> read_fatbin(std::span<const std::byte> container) {
  const auto bytes = fatbin_bytes(container);
  if (!bytes) return failure(bytes.error());
  if (*bytes > container.size()) return problem(container.size(), "the container is cut off");
  container = container.first(*bytes);
  std::uint16_t at = 0;
  std::memcpy(&at, container.data() + offsetof(ContainerHeader, header_bytes), sizeof at);
  std::vector<FatbinEntry> entries;
  for (std::size_t next = at; next < container.size();) {
    auto entry = read_entry(container, next, next);
    if (!entry) return failure(entry.error());
    entries.push_back(*entry);
  }
  return entries;
}

Result<std::string> ptx_text(const FatbinEntry& entry) {
  std::string text(entry.text_bytes, '\0');
  const auto* source = reinterpret_cast<const char*>(entry.payload.data());
  std::size_t written = entry.payload.size();
  if (entry.compression == Compression::kNone) {
    text.assign(source, written);
  } else if (entry.compression == Compression::kZstd) {
    written = ZSTD_decompress(text.data(), text.size(), source, entry.payload.size());
    if (ZSTD_isError(written) != 0) return failure(std::string("fat binary: zstd: ") + ZSTD_getErrorName(written));
  } else {
    if (entry.payload.size() > LZ4_MAX_INPUT_SIZE)
      return failure("fat binary: an LZ4 block larger than the format has");
    const int result =
        LZ4_decompress_safe(source, text.data(), static_cast<int>(entry.payload.size()), static_cast<int>(text.size()));
    if (result < 0) return failure("fat binary: corrupt LZ4 block");
    written = static_cast<std::size_t>(result);
  }
  text.resize(std::min(written, text.find('\0')));
  return text;
}

std::vector<std::byte> write_fatbin(std::span<const PtxForArchitecture> texts, Compression compression) {
  std::vector<std::byte> out(kFatbinHeaderBytes);
  for (const PtxForArchitecture& ptx : texts) {
    const std::vector<std::byte> payload = compress(std::string(ptx.text), compression);
    const EntryHeader header = header_of(ptx, payload.size(), compression);
    const PtxOptions options;
    const std::size_t at = out.size();
    out.resize(at + header.header_bytes + header.padded_bytes);
    std::memcpy(out.data() + at, &header, sizeof header);
    std::memcpy(out.data() + at + sizeof header, &options, sizeof options);
    std::memcpy(out.data() + at + header.header_bytes, payload.data(), payload.size());
  }
  const ContainerHeader header{kFatbinMagic, 1, kFatbinHeaderBytes, out.size() - kFatbinHeaderBytes};
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

}  // namespace softgpu
