// The connection to the node (wire/shim_frames.h): one socket, one thread that reads it, one that moves memory when told.
//
// Threads: any. Requests wait for the node's answer, at most kAnswerSeconds; without a node they are refused at once. Room
// may take others' memory to leave first: it is waited for as long as the node lets it take (ResidencyOptions::room_deadline).
#pragma once

#include <cstdint>

namespace fairlead::shim {

inline constexpr int kAnswerSeconds = 10;
inline constexpr int kRoomSeconds = 32;

// Room for `bytes` on the device. True: the node has made some, try again. False: there is none, or no node.
bool ask_for_room(std::uint64_t bytes);

// A part of the staging arena; `bytes` is a multiple of wire::kStagingGranule. Nothing given: bytes == 0.
struct StagingPart {
  std::uint64_t offset = 0;  // in the arena
  std::uint64_t bytes = 0;   // as asked
};
StagingPart ask_for_staging(std::uint64_t bytes);
void return_staging(StagingPart part);

// A thread waits at the gate for memory that is away. Told to the node once, until the memory moves again.
void want_memory();

// Registers with the node at `path` and takes its page; waits for its answer. False: no node, or it does not answer.
// From then on the link's own thread serves it, and registers again whenever it comes back.
bool join_node(const char* path, std::uint64_t token);

// In the child of a fork: the connection is the parent's.
void leave_node();

}  // namespace fairlead::shim
