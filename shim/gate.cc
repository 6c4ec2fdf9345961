#include "shim/gate.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <utility>

#include "shim/clock.h"
#include "shim/futex.h"
#include "shim/node_link.h"
#include "shim/place.h"
#include "shim/process.h"

namespace fairlead::shim {
namespace {

// Slots are in blocks that are added and never taken away, so that whoever closes the gate may walk them without a lock.
struct Block {
  static constexpr int kSlots = 127;
  ThreadSlot slots[kSlots];
  std::atomic<int> used{0};  // slots from here on were never claimed
  std::atomic<Block*> next{nullptr};
};

constinit Block first_block;
constinit std::atomic<std::uint32_t> waiting{0};
pthread_key_t thread_end;
constinit std::atomic<bool> has_thread_end{false};

// A waiter looks again after so long even if nobody wakes it: the page it waits on may have been replaced.
constexpr long kLookAgainMs = 500;
constexpr int kYields = 64;
constexpr long kPollNs = 20000;

template <typename Visit>
void for_each_slot(Visit visit) {
  for (Block* block = &first_block; block != nullptr; block = block->next.load(std::memory_order_acquire)) {
    const int used = block->used.load(std::memory_order_acquire);
    for (int i = 0; i < used; ++i) visit(block->slots[i]);
  }
}

ThreadSlot* claim_in(Block& block) {
  for (int i = 0; i < Block::kSlots; ++i) {
    ThreadSlot& slot = block.slots[i];
    std::uint32_t free = 0;
    if (slot.owned.load(std::memory_order_relaxed) != 0 || !slot.owned.compare_exchange_strong(free, 1)) continue;
    int used = block.used.load();
    while (used <= i && !block.used.compare_exchange_weak(used, i + 1)) {
    }
    return &slot;
  }
  return nullptr;
}

Block* block_after(Block& block) {
  Block* next = block.next.load(std::memory_order_acquire);
  if (next != nullptr) return next;
  void* const memory = ::mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                              0);  // all slots zero: free
  if (memory == MAP_FAILED) return nullptr;
  auto* const made = static_cast<Block*>(memory);
  if (block.next.compare_exchange_strong(next, made)) return made;
  ::munmap(memory, sizeof(Block));
  return next;
}

ThreadSlot* free_slot() {
  Block* block = &first_block;
  while (block != nullptr) {
    if (ThreadSlot* const slot = claim_in(*block)) return slot;
    block = block_after(*block);
  }
  // No memory for a word per thread: threads share one, and closing the gate may wait for too little.
  count_passed_through();
  return &first_block.slots[0];
}

void end_thread(void* memory) {
  auto* const slot = static_cast<ThreadSlot*>(memory);
  publish_launches(slot);
  slot->entered.store(0, std::memory_order_release);
  slot->owned.store(0, std::memory_order_release);
  gate_detail::this_thread.slot = nullptr;
}

void watch_thread_end(ThreadSlot* slot) {
  static constinit std::atomic<int> making{0};
  if (making.exchange(1) == 0) has_thread_end.store(::pthread_key_create(&thread_end, end_thread) == 0);
  if (has_thread_end.load()) ::pthread_setspecific(thread_end, slot);
}

void pause(int round) {
  if (round < kYields) {
    ::sched_yield();
    return;
  }
  const timespec nap = {0, kPollNs};
  ::nanosleep(&nap, nullptr);
}

}  // namespace

namespace gate_detail {

thread_local constinit ThisThread this_thread;

ThreadSlot* claim_slot() {
  const Bypass own_work;
  start_process();
  ThreadSlot* const slot = free_slot();
  this_thread.slot = slot;
  watch_thread_end(slot);
  return slot;
}

void wait_until_open(ThreadSlot* slot) {
  page().gate_waits.fetch_add(1, std::memory_order_relaxed);
  publish_launches(slot);
  waiting.fetch_add(1);
  bool asks = false;
  do {
    slot->entered.store(0, std::memory_order_release);
    for (;;) {
      wire::ShimPage& shared = page();
      const std::uint32_t word = shared.gate.load();
      if (word == 0) break;
      // While its memory is away it has no use for a place: others may have it.
      const bool may_use_place = (word & wire::kGateMemory) == 0;
      if (!may_use_place) {
        want_memory();
        if (std::exchange(asks, false)) stop_asking();
      }
      if ((word & wire::kGateNode) != 0 && has_places()) {
        if (may_use_place && !std::exchange(asks, true)) ask_for_place();
        place_may_have_drained();  // one that was over before we had woken
      }
      futex_wait(shared.gate, word, kLookAgainMs);
    }
    slot->entered.store(1, std::memory_order_relaxed);
    light_barrier();
  } while (page().gate.load(std::memory_order_acquire) != 0);
  if (asks) stop_asking();
  waiting.fetch_sub(1);
}

}  // namespace gate_detail

void publish_launches(ThreadSlot* slot) {
  const std::uint64_t count = slot->launches.load(std::memory_order_relaxed);
  if (count == slot->launches_published) return;
  page().launches.fetch_add(count - slot->launches_published, std::memory_order_relaxed);
  slot->launches_published = count;
}

bool others_inside() {
  bool inside = false;
  for_each_slot([&](ThreadSlot& slot) {
    if (&slot != gate_detail::this_thread.slot && slot.entered.load(std::memory_order_acquire) != 0) inside = true;
  });
  return inside;
}

bool somebody_waits() {
  return waiting.load() != 0;
}

void forget_threads() {
  for_each_slot([](ThreadSlot& slot) {
    slot.entered.store(0);
    slot.owned.store(0);
    slot.launches_published = slot.launches.load();
  });
  waiting.store(0);
  gate_detail::this_thread.slot = nullptr;
}

bool close_gate(std::uint32_t bit, std::uint64_t deadline_ns) {
  const std::uint64_t start = now_ns();
  page().gate.fetch_or(bit);
  order_all_threads();
  for (int round = 0; others_inside(); ++round) {
    if (now_ns() - start >= deadline_ns) {
      open_gate(bit);
      return false;
    }
    pause(round);
  }
  return true;
}

void open_gate(std::uint32_t bit) {
  page().gate.fetch_and(~bit);
  futex_wake_all(page().gate);
}

}  // namespace fairlead::shim
