// What the node and a component without a GPU say to each other: one packet each, over the program's descriptor 3 (SOCK_SEQPACKET).
// Integers are little endian. Tensors are in rings (stage_ring.h), which both have mapped; python/fairlead/pipeline/serving.py is the
// program's end.
//
//   node -> program   'o' ring u64, slots u32, slot bytes u64, first slot at u64, from slot to slot u64; descriptor 0 is the memory
//                     'c' ring u64: closed
//                     'r' call u64, inputs u16, outputs u16, then for each ring u64, slot u32. Ring 0: the bytes are in descriptor `slot`
//                         of this packet, a memory file of its own
//   program -> node   'R' ready     'F' why it cannot run, text     'D' call u64: done     'E' call u64, why it failed, text
//
// Example: the node opens ring 7 and says 'r' with call 5, one input in slot 2 of ring 7, one output in slot 0 of ring 9; the program writes
// that slot and says 'D' 5.
//
// What a program says is a stranger's: bounded, and its texts are made printable.
//
// Threads: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/stage_ring.h"

namespace fairlead::wire {

inline constexpr std::size_t kMaxProgramText = 2048;  // of an error; what is longer is cut

struct ProgramTensor {
  std::uint64_t ring = 0;  // 0: slot is the number of a descriptor
  std::uint32_t slot = 0;
  bool operator==(const ProgramTensor&) const = default;
};

std::string encode_open_ring(std::uint64_t ring, const StageRingShape& shape);
std::string encode_close_ring(std::uint64_t ring);
std::string encode_program_call(std::uint64_t call, const std::vector<ProgramTensor>& inputs,
                                const std::vector<ProgramTensor>& outputs);

struct ProgramSaid {
  enum class Kind { kReady, kCannot, kDone, kFailed };
  Kind kind = Kind::kReady;
  std::uint64_t call = 0;  // of kDone, kFailed
  std::string text;        // of kCannot, kFailed: printable ASCII
  bool operator==(const ProgramSaid&) const = default;
};
// kCorrupt: it is none of the above.
Result<ProgramSaid> decode_program_said(std::string_view packet);

}  // namespace fairlead::wire
