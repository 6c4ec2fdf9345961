// A fat binary, made by hand: a header of 16 bytes, then for each entry a header of 64 bytes and a payload padded to 8. A
// PTX entry's header has 16 more bytes, which lead to the options of its compilation: where they are missing, a driver
// takes the entry's first word for their place, and crashes.
//
// Compression needs no library: an LZ4 block and a zstd frame may hold their bytes as literals. So that there is something
// to decompress, the text is followed by a run of line feeds, as a match (LZ4) or a run-length block (zstd), and a NUL.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace softgpu::conformance {

class FatBinary {
 public:
  enum class Packing { kPlain, kLz4, kZstd };
  // What compilers register with the runtime. cuModuleLoad* take the container instead.
  struct Wrapper {
    std::uint32_t magic, version;
    const void* container;
    const void* unused;
  };

  FatBinary() : bytes_(kHeaderBytes, '\0') { finish(); }

  // For devices of at least this architecture, 70 for sm_70. REQUIRES: the text begins with `.version`.
  void add_ptx(unsigned architecture, const std::string& text, Packing packing) {
    Entry entry{};
    unsigned major = 0, minor = 0;
    std::sscanf(text.c_str(), ".version %u.%u", &major, &minor);
    entry.kind = kPtx, entry.architecture = architecture;
    entry.header_bytes = sizeof entry + sizeof(Options), entry.options = sizeof entry;
    entry.major = static_cast<std::uint16_t>(major), entry.minor = static_cast<std::uint16_t>(minor);
    if (packing == Packing::kPlain) return add(entry, text + '\0');
    entry.flags = packing == Packing::kLz4 ? kLz4Flag : kZstdFlag;
    entry.text_bytes = text.size() + kRun;
    add(entry, packing == Packing::kLz4 ? lz4(text) : zstd(text));
  }
  void add_machine_code(unsigned architecture, const std::string& code) {
    Entry entry{};
    entry.kind = kMachineCode, entry.architecture = architecture, entry.header_bytes = sizeof entry;
    add(entry, code);
  }

  // Both are valid while the object is, until the next add.
  const void* container() const { return bytes_.data(); }
  Wrapper wrapper() const { return {0x466243b1, 1, bytes_.data(), nullptr}; }

 private:
  static constexpr std::size_t kHeaderBytes = 16, kRun = 4000;  // line feeds and a NUL
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
  // After the header of a PTX entry: where, from the entry's beginning on, the options are; and none of them.
  struct Options {
    std::uint32_t text = sizeof(Entry) + 8, reserved = 0;
    char none[8] = {};
  };

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
  // The text and one line feed as literals, a match that repeats it, the last five bytes as literals again: line feeds and
  // the NUL.
  static std::string lz4(const std::string& text) {
    constexpr std::size_t kLast = 5;
    const std::size_t literals = text.size() + 1, match = kRun - 1 - kLast - 4;
    std::string out(1, static_cast<char>(std::min<std::size_t>(literals, 15) << 4 | 15));
    append_length(out, literals);
    out += text + '\n';
    append<std::uint16_t>(out, 1);
    append_length(out, match);
    out += static_cast<char>(kLast << 4);
    return out + std::string(kLast - 1, '\n') + '\0';
  }
  static std::string zstd(const std::string& text) {
    constexpr std::uint32_t kRaw = 0, kRunLength = 1, kLastBlock = 1;
    std::string out;
    append<std::uint32_t>(out, 0xfd2fb528);
    out += '\xa0';  // a single segment, its size in four bytes
    append<std::uint32_t>(out, static_cast<std::uint32_t>(text.size() + kRun));
    append<std::uint32_t>(out, static_cast<std::uint32_t>(text.size()) << 3 | kRaw << 1, 3);
    out += text;
    append<std::uint32_t>(out, (kRun - 1) << 3 | kRunLength << 1, 3);
    out += '\n';
    append<std::uint32_t>(out, 1 << 3 | kRaw << 1 | kLastBlock, 3);
    return out + '\0';
  }
  // Fills in what all entries have, and what follows from the payload.
  void add(Entry entry, std::string payload) {
    entry.version = 0x101;
    entry.padded_bytes = (payload.size() + 7) / 8 * 8;
    entry.compressed_bytes = entry.text_bytes == 0 ? 0 : static_cast<std::uint32_t>(payload.size());
    entry.flags |= 0x11;  // 64 bits, Linux
    payload.resize(entry.padded_bytes);
    append(bytes_, entry);
    if (entry.options != 0) append(bytes_, Options{});
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
