// The messages between the node and the shim inside one process of an instance. One frame is one packet of a
// SOCK_SEQPACKET unix socket; both ends are on one machine, so fields are in native layout.
//
//   shim  Hello ─────────────> node       once per process, at its first use of the driver; a forked child says its own
//   shim <──────────── Welcome node       with two descriptors (SCM_RIGHTS): the page (shim_page.h), the staging arena
//   shim <──── SwapOut, SwapIn node       one at a time; a later one may be sent before `Moved`, and is done after it
//   shim Moved ──────────────> node
//   shim NeedRoom ───────────> node       an allocation, or memory that must return, found the device full
//   shim <───────────── Room   node       try again, or give up
//   shim NeedStaging ────────> node       a part of the arena to copy into
//   shim <────────── Staging   node
//   shim ReturnStaging ──────> node
//   shim WantMemory ─────────> node       a thread waits at the gate for memory that is away and nobody asked to return
//
// A closed socket means, to the node: the process is gone, its memory and staging are free once its pid is dead, not
// before; to the shim: no node, so bring everything back, open the gate, connect again in a while.
// Freestanding: included by the shim, which has libc only.
#pragma once

#include <cstdint>
#include <type_traits>

namespace fairlead::wire {

enum class FrameKind : std::uint32_t {
  kHello = 1,
  kWelcome,
  kSwapOut,
  kSwapIn,
  kMoved,
  kNeedRoom,
  kRoom,
  kNeedStaging,
  kStaging,
  kReturnStaging,
  kWantMemory,
};

// How a process's device memory can move.
enum class MemoryBackend : std::uint32_t {
  kNone,  // not at all; counted only
  kVmm,   // unmapped under its address
  kUvm,   // managed memory, prefetched
  // Whole processes, by the node with the driver's checkpoints. No shim is told so: to it, it is kNone.
  kCheckpoint,
};
// Managed memory only: what is done beside allocating it (figure 4 of the paper).
enum class UvmMode : std::uint32_t { kPlain, kAdvise, kPrefetch, kPrefetchSwap };

enum class MoveResult : std::uint32_t {
  kDone,
  kPartly,   // out: less than asked for could be moved; in: the device is full, some is back
  kBusy,     // work did not end before the deadline (capture, a kernel that waits for the host): nothing was moved
  kNoRoom,   // in: the device is full; out: no staging
  kNothing,  // nothing to move
  kFailed,   // no shim says so: the driver refused to move the process
};

struct Hello {
  std::uint64_t token;  // of the instance: $FAIRLEAD_SHIM_TOKEN
  std::uint32_t version, pid;
};
struct Welcome {
  std::uint64_t arena_bytes;  // 0: no arena, contents go to memory of the process
  MemoryBackend backend;
  UvmMode uvm;
};
struct SwapOut {
  std::uint64_t bytes;        // at least so much device memory, if there is that much; all: UINT64_MAX
  std::uint64_t deadline_ns;  // to quiesce, from receipt
};
struct SwapIn {};
struct Moved {
  FrameKind answered;  // kSwapOut or kSwapIn
  MoveResult result;
  std::uint64_t bytes;     // moved
  std::uint64_t move_ns;   // spent copying
  std::uint64_t total_ns;  // from receipt to here
};
struct NeedRoom {
  std::uint64_t bytes;
  std::uint64_t request;  // echoed by Room
};
struct Room {
  std::uint64_t request;
  std::uint64_t granted;  // 0: there is none, return the driver's out of memory; else try again
};
struct NeedStaging {
  std::uint64_t bytes;    // a multiple of kStagingGranule
  std::uint64_t request;  // echoed by Staging
};
struct Staging {
  std::uint64_t request;
  std::uint64_t offset;  // in the arena
  std::uint64_t bytes;   // 0: none is left
};
struct ReturnStaging {
  std::uint64_t offset, bytes;  // as given
};
struct WantMemory {};

inline constexpr std::uint64_t kStagingGranule = std::uint64_t{2} << 20;

struct Frame {
  FrameKind kind;
  std::uint32_t reserved = 0;
  union Body {
    Hello hello;
    Welcome welcome;
    SwapOut swap_out;
    SwapIn swap_in;
    Moved moved;
    NeedRoom need_room;
    Room room;
    NeedStaging need_staging;
    Staging staging;
    ReturnStaging return_staging;
    WantMemory want_memory;
  } body;
};
static_assert(std::is_trivially_copyable_v<Frame> && sizeof(Frame) == 40);

// Of the environment of a program: the socket's path as the program sees it, and the instance's token in decimal. Without
// the first there is no node: the shim counts, caps by $FAIRLEAD_SHIM_MEMORY_CAP (bytes) and moves nothing.
inline constexpr char kShimSocketVariable[] = "FAIRLEAD_SHIM_SOCKET";
inline constexpr char kShimTokenVariable[] = "FAIRLEAD_SHIM_TOKEN";

}  // namespace fairlead::wire
