// Fat binaries: the container in which compilers embed device code for several architectures.
//
// A wrapper (24 bytes: magic, version, pointer) points to the container: a header of 16 bytes that says how many bytes of
// entries follow, then entry after entry, each a header of 64 bytes or more and a payload. Payloads are PTX text with its
// NUL, plain or compressed as one LZ4 block or one zstd frame, or machine code, which this reader names and leaves alone.
// The header of a PTX entry has 80 bytes: the last 16 lead to the options the text is to be compiled with.
//
// Example: `.version 7.5 ...` of 4,998 bytes without compression is 16 + 80 + 5,000 bytes, payloads being padded to 8.
//
// Pure functions over bytes: no byte outside the span is read, whatever the headers claim. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/device/result.h"

namespace softgpu {

inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
inline constexpr std::size_t kFatbinHeaderBytes = 16;
// Larger claims are taken for corruption, so that a header of some bytes cannot make the reader allocate the computer.
inline constexpr std::uint64_t kLargestFatbin = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kLargestPtx = std::uint64_t{256} << 20;

enum class Compression { kNone, kLz4, kZstd };

struct FatbinEntry {
  enum class Kind { kPtx, kMachineCode, kOther };
  Kind kind = Kind::kOther;
  unsigned architecture = 0;  // 75 for sm_75
  Compression compression = Compression::kNone;
  std::size_t text_bytes = 0;          // of the payload once decompressed
  std::span<const std::byte> payload;  // in the container
};

// Bytes of the container whose first kFatbinHeaderBytes bytes are given. Error: it is no container, or claims too much.
Result<std::size_t> fatbin_bytes(std::span<const std::byte> header);

// The container's entries in order. Error: what is wrong at which offset. The entries point into `container`.
Result<std::vector<FatbinEntry>> read_fatbin(std::span<const std::byte> container);

// The text of a PTX entry, without the NUL bytes that may end it. Error: it cannot be decompressed.
Result<std::string> ptx_text(const FatbinEntry& entry);

// A container of PTX entries with these texts.
struct PtxForArchitecture {
  unsigned architecture = 0;
  std::string_view text;
  unsigned version = 0;  // of the language, 75 for 7.5
};
std::vector<std::byte> write_fatbin(std::span<const PtxForArchitecture> texts, Compression compression);

}  // namespace softgpu
