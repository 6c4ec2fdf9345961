// The initial bytes of a module's variables in few words: most of a large array is 0, and the text that declares it is short.
//
//   1 MiB whose byte 70 is 7, the rest 0    one piece {64, "\0\0\0\0\0\0\7..."} of 64 bytes
//
// Pure. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "wire/device_frames.h"

namespace fairlead {

using VariablePieces = std::vector<wire::ModulesFenced::Bytes>;

// What is not 0, in ascending pieces that do not touch.
VariablePieces pieces_of(std::span<const std::byte> image);
// The same with fewer pieces: neighbours become one, zeros between them included, as far as that has at most `most` bytes.
// So copying them to a device takes few steps. kCorrupt: a piece is not within `bytes`, or not behind the one before it.
Result<VariablePieces> joined(const VariablePieces& pieces, std::uint64_t bytes, std::uint64_t most);

}  // namespace fairlead
