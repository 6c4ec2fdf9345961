// The expensive half of an asymmetric barrier: after order_all_threads() has returned, every other thread of the process
// has passed a full barrier since the call. The cheap half is then a compiler barrier (light_barrier), except where the
// kernel refuses membarrier(2): there both halves are fences.
#pragma once

#include <atomic>

namespace fairlead::shim {

// Whether light_barrier() must be a fence; set once by prepare_barrier().
extern std::atomic<bool> needs_fences;

// Once per process, before other threads rely on it; again in the child of a fork.
void prepare_barrier();
void order_all_threads();

inline void light_barrier() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (needs_fences.load(std::memory_order_relaxed)) std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace fairlead::shim
