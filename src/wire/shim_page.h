// What the node and the shim inside one process of an instance share without messages: a page of memory. The node makes
// it (a memfd, sealed against shrinking), the shim maps it; either side may die at any time, so nothing in it is a lock.
//
//   gate         closed by whoever must keep kernels from starting: the shim itself while memory is away, the node for
//                time tokens. The launch path reads it once; a closed gate is waited for with a futex on this word.
//   accounting   written by the shim with plain atomic stores, read by the node whenever it likes.
//   places       since version 3: when the process may put kernels on the device (docs/explanation/pacer.md).
//
//     shim   asking += 1, bell += 1, wake(bell)         a thread waits at the node's gate
//     node   open_until = t; grant += 1; gate &= ~node  a place; wake(gate) only if somebody asks
//     node   open_until = t + 2 ms                      the place is held for longer: one store
//     either gate |= node                               the place is over: its time is, or nothing is left to do
//     shim   drained = grant, bell += 1, wake(bell)     nothing of it is in flight, and no thread is inside a launch
//
// Freestanding: included by the shim, which has libc only. All words are lock-free atomics in native byte order.
// Threads: every field is safe to read and write from any thread of both processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fairlead::wire {

inline constexpr std::uint32_t kShimPageMagic = 0x464c5350;  // "FLSP"
inline constexpr std::uint32_t kShimVersion = 3;             // of this page and of the frames
// The oldest that either side still speaks: it lacks the words of places, so that nobody paces such a process.
inline constexpr std::uint32_t kOldestShimVersion = 2;
inline constexpr std::uint32_t kShimVersionOfPlaces = 3;

// Bits of ShimPage::gate; 0 is open. Each bit has one owner, who sets it with fetch_or, clears it with fetch_and and
// then wakes all waiters of the futex.
inline constexpr std::uint32_t kGateMemory = 1;  // the shim: memory leaves, is away or returns
inline constexpr std::uint32_t kGateNode = 2;    // the node: no place. The shim sets it too, to end a place early

// Bits of ShimPage::pace; 0: there are no places, and the node's gate is open.
inline constexpr std::uint32_t kPacePlaces = 1;  // work needs a place: ask for it, say when it has drained
inline constexpr std::uint32_t kPaceLeash = 2;   // others may want the device: little is to be in flight at a time

struct ShimPage {
  std::uint32_t magic = kShimPageMagic;
  std::uint32_t version = kShimVersion;

  // Written by the node.
  alignas(64) std::atomic<std::uint32_t> gate{0};
  std::atomic<std::uint64_t> memory_cap{0};  // bytes of device memory this process may hold; 0: no cap

  // Written by the shim. Bytes as the program asked for them, unless said otherwise.
  alignas(64) std::atomic<std::uint64_t> held{0};  // allocated and not freed, wherever it is; what the cap counts
  std::atomic<std::uint64_t> resident{0};  // device memory behind it, in whole granules: what the device has given
  std::atomic<std::uint64_t> away{0};      // contents in host memory alone: nothing of `resident` is behind them
  std::atomic<std::uint64_t> fixed{0};     // part of `resident` that cannot move (exported, registered, arrays, pools)
  std::atomic<std::uint64_t> gpu_time_ns{0};  // of the device, as events measured it, since the process started
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> gate_waits{0};          // launches that found the gate closed
  std::atomic<std::uint64_t> passed_through{0};      // calls left to the driver because something was in doubt
  std::atomic<std::uint64_t> unhooked_functions{0};  // entry points handed out that no hook is known for
  std::atomic<std::uint64_t> busy{0};  // contexts whose work on the device has not ended, as far as is known

  // Written by the node, from version 3 on.
  alignas(64) std::atomic<std::uint32_t> pace{0};
  std::atomic<std::uint32_t> grant{0};          // number of the place that was given last
  std::atomic<std::uint64_t> open_until_ns{0};  // of that place: CLOCK_MONOTONIC

  // Written by the shim, from version 3 on.
  alignas(64) std::atomic<std::uint32_t> bell{0};  // changes, and is woken, whenever the node should look
  std::atomic<std::uint32_t> drained{0};           // number of the last place of which nothing is in flight
  std::atomic<std::uint64_t> asking{0};            // threads that wait for a place
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(ShimPage) <= 4096);
static_assert(offsetof(ShimPage, pace) >= offsetof(ShimPage, busy) + sizeof(std::uint64_t));

}  // namespace fairlead::wire
