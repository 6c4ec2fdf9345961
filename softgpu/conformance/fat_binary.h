// A fat binary, made by hand: a header of 16 bytes, then for each entry a header of 64 bytes and a payload padded to 8.
//
// Compression needs no library: an LZ4 block and a zstd frame may hold their bytes as literals. So that there is something
// to decompress, the text is followed by a run of line feeds, as a match (LZ4) or a run-length block (zstd).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace softgpu::conformance {

class FatBinary {
 public:
  enum class Packing { kPlain, kLz4, kZstd };
  // What cuModuleLoadFatBinary takes.
  struct Wrapper {
    std::uint32_t magic, version;
    const void* container;
    const void* unused;
  };

  FatBinary() : bytes_(kHeaderBytes, '\0') { finish(); }

  // For devices of at least this architecture, 70 for sm_70.
  void add_ptx(unsigned architecture, const std::string& text, Packing packing) {
    switch (packing) {
      case Packing::kPlain: return add(kPtx, architecture, text + '\0', 0, 0);
      case Packing::kLz4: return add(kPtx, architecture, lz4(text), kLz4Flag, text.size() + kRun);
      case Packing::kZstd: return add(kPtx, architecture, zstd(text), kZstdFlag, text.size() + kRun);
    }
  }
  void add_machine_code(unsigned architecture, const std::string& code) { add(kMachineCode, architecture, code, 0, 0); }

  // Both are valid while the object is, until the next add.
  const void* container() const { return bytes_.data(); }
  Wrapper wrapper() const { return {0x466243b1, 1, bytes_.data(), nullptr}; }

 private:
  static constexpr std::size_t kHeaderBytes = 16, kRun = 4000;
  static constexpr std::uint16_t kPtx = 1, kMachineCode = 2;
  static constexpr std::uint64_t kLz4Flag = 0x2000, kZstdFlag = 0x8000;

  struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t padded_bytes;
    std::uint32_t compressed_bytes, options;
    std::uint16_t minor, major;
    std::uint32_t architecture, name_offset, name_bytes;
    std::uint64_t flags, reserved, text_bytes;
  };
  static_assert(sizeof(Entry) == 64);

  template <class T>
  static void append(std::string& out, T value, std::size_t count = sizeof(T)) {
    out.append(reinterpret_cast<const char*>(&value), count);  // little endian
  }
  // The tail of a length whose first 15 are in the token.
  static void append_length(std::string& out, std::size_t length) {
    if (length < 15) return;
    for (length -= 15; length >= 255; length -= 255) out += '\xff';
    out += static_cast<char>(length);
  }
  // The text and one line feed as literals, a match that repeats it, the last five bytes as literals again.
  static std::string lz4(const std::string& text) {
    constexpr std::size_t kLast = 5;
    const std::size_t literals = text.size() + 1, match = kRun - 1 - kLast - 4;
    std::string out(1, static_cast<char>(std::min<std::size_t>(literals, 15) << 4 | 15));
    append_length(out, literals);
    out += text + '\n';
    append<std::uint16_t>(out, 1);
    append_length(out, match);
    out += static_cast<char>(kLast << 4);
    return out + std::string(kLast, '\n');
  }
  static std::string zstd(const std::string& text) {
    constexpr std::uint32_t kRaw = 0, kRunLength = 1, kLastBlock = 1;
    std::string out;
    append<std::uint32_t>(out, 0xfd2fb528);
    out += '\xa0';  // a single segment, its size in four bytes
    append<std::uint32_t>(out, static_cast<std::uint32_t>(text.size() + kRun));
    append<std::uint32_t>(out, static_cast<std::uint32_t>(text.size()) << 3 | kRaw << 1, 3);
    out += text;
    append<std::uint32_t>(out, kRun << 3 | kRunLength << 1 | kLastBlock, 3);
    return out + '\n';
  }
  void add(std::uint16_t kind, unsigned architecture, std::string payload, std::uint64_t flags,
           std::size_t text_bytes) {
    Entry entry{};
    entry.kind = kind, entry.version = 0x101, entry.header_bytes = sizeof entry;
    entry.padded_bytes = (payload.size() + 7) / 8 * 8;
    entry.compressed_bytes = text_bytes == 0 ? 0 : static_cast<std::uint32_t>(payload.size());
    entry.architecture = architecture;
    entry.flags = 0x11 | flags;  // 64 bits, Linux
    entry.text_bytes = text_bytes;
    payload.resize(entry.padded_bytes);
    append(bytes_, entry);
    bytes_ += payload;
    finish();
  }
  void finish() {
    std::string header;
    append<std::uint32_t>(header, 0xba55ed50);
    append<std::uint16_t>(header, 1);
    append<std::uint16_t>(header, kHeaderBytes);
    append<std::uint64_t>(header, bytes_.size() - kHeaderBytes);
    bytes_.replace(0, kHeaderBytes, header);
  }

  std::string bytes_;
};

}  // namespace softgpu::conformance
