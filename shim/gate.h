// The gate in the launch path. Every hooked call that puts work on the device passes it; whoever must keep kernels from
// starting closes it and waits until no call is inside.
//
//   call:   entered = 1; gate == 0 ? driver's function : wait;  entered = 0        two plain stores and one load
//   close:  gate |= bit; membarrier(); wait until no thread has entered set        as in read-copy-update: the cost of
//                                                                                  ordering is paid by the rare side
// Threads: any. Signal and fork safe.
#pragma once

#include <cstdint>

#include "shim/barrier.h"
#include "shim/page.h"

namespace fairlead::shim {

// What a thread says of itself to whoever closes the gate. Never freed; a thread that ends leaves its own to the next. Two
// cache lines, because processors fetch them in pairs.
struct alignas(128) ThreadSlot {
  std::atomic<std::uint32_t> entered{0};
  std::atomic<std::uint32_t> owned{0};
  std::atomic<std::uint64_t> launches{0};  // written by the owner only
  std::uint64_t launches_published = 0;    // of the owner: how many of them are in the page already
};

namespace gate_detail {
struct ThisThread {
  ThreadSlot* slot = nullptr;
  std::uint32_t depth = 0;  // of hooked calls; > 0: further ones go straight to the driver
  // gpu_time.h: where this thread last put work, and when. Here because a launch has this structure at hand.
  const void* last_stream = nullptr;
  std::uint64_t last_epoch = 0;  // 0: nowhere
};
extern thread_local constinit ThisThread this_thread;
ThreadSlot* claim_slot();  // this thread's first hooked call; starts the process's part if it is the first
void wait_until_open(ThreadSlot* slot);  // entered is 1 before and after, 0 while it waits
}  // namespace gate_detail

// Hooked calls of this thread go straight to the driver while one of these lives: calls that the driver makes of its own
// exported functions, and the shim's own work.
class Bypass {
 public:
  Bypass() { ++gate_detail::this_thread.depth; }
  ~Bypass() { --gate_detail::this_thread.depth; }
  Bypass(const Bypass&) = delete;
  Bypass& operator=(const Bypass&) = delete;
};
inline bool bypassed() {
  return gate_detail::this_thread.depth != 0;
}

// Held by a hooked call for as long as it is inside the driver. Nests (a hooked call made by the driver or by the shim
// itself passes at once). May block while the gate is closed; asks the node for memory that is away.
class Passage {
 public:
  Passage() {
    gate_detail::ThisThread& thread = gate_detail::this_thread;
    if (thread.depth++ != 0) return;
    slot_ = thread.slot != nullptr ? thread.slot : gate_detail::claim_slot();
    slot_->entered.store(1, std::memory_order_relaxed);
    light_barrier();
    if (page().gate.load(std::memory_order_acquire) != 0) gate_detail::wait_until_open(slot_);
  }
  ~Passage() {
    --gate_detail::this_thread.depth;
    if (slot_ != nullptr) slot_->entered.store(0, std::memory_order_release);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // Null: the call is inside another one, which has been counted.
  ThreadSlot* slot() const { return slot_; }

 private:
  ThreadSlot* slot_ = nullptr;
};

// The process's part is started by its first hooked call; for hooks that do not pass the gate.
inline void enter_process() {
  if (gate_detail::this_thread.slot == nullptr && !bypassed()) gate_detail::claim_slot();
}

// A launch of this thread: counted in its slot, and in the page once in a while and at publish_launches().
inline constexpr std::uint64_t kLaunchesPerPublication = 256;
void publish_launches(ThreadSlot* slot);
inline void count_launch(ThreadSlot* slot) {
  const std::uint64_t count = slot->launches.load(std::memory_order_relaxed) + 1;
  slot->launches.store(count, std::memory_order_relaxed);
  if (count % kLaunchesPerPublication == 0) publish_launches(slot);
}
// At points where the thread waits for the device anyway.
inline void publish_launches() {
  if (gate_detail::this_thread.slot != nullptr) publish_launches(gate_detail::this_thread.slot);
}

// Whether another thread is inside a hooked call. After order_all_threads(): of those that are not, all have left before.
bool others_inside();

// Whether a thread waits at the gate now.
bool somebody_waits();

// In the child of a fork: the other threads are not there.
void forget_threads();

// Closes the gate for `bit` (wire::kGateMemory) and waits until all calls that are inside have left. False: not within
// `deadline_ns` from now; the gate is open again then, and nothing has changed.
bool close_gate(std::uint32_t bit, std::uint64_t deadline_ns);
void open_gate(std::uint32_t bit);

}  // namespace fairlead::shim
