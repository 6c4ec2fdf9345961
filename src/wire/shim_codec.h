// The node's end of the shim's frames (shim_frames.h). What arrives comes from inside a sandbox, from any code that found
// the socket: nothing in it is believed before it was checked here.
//
// Threads: free functions, any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "wire/shim_frames.h"

namespace fairlead::wire {

// Above every size and below every overflow: sums of thousands of such numbers still fit 64 bits.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kMaxFrameTimeNs = std::uint64_t{1} << 50;  // 13 days

std::string_view frame_kind_name(FrameKind kind);      // "Hello"; "?" for a number that is none
std::string_view move_result_name(MoveResult result);  // "done", "partly", ...

// A packet as a frame. kCorrupt when a shim does not send such a thing: another size than a frame's, a kind that only
// the node sends, an enumerator, a size or a time out of its bounds. The message names field, value and bound.
Result<Frame> decode_shim_frame(std::string_view packet);

// A frame of this kind, all of its bytes zero: padding goes to the function's process too.
Frame make_frame(FrameKind kind);

// The packet of a frame: its own bytes. Lives as long as `frame`.
std::string_view packet_of(const Frame& frame);

}  // namespace fairlead::wire
