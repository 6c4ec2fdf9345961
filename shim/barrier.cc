#include "shim/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fairlead::shim {

// Until the kernel has said that it will do without, threads use fences.
constinit std::atomic<bool> needs_fences{true};

void prepare_barrier() {
  const long registered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  needs_fences.store(registered != 0, std::memory_order_relaxed);
}

void order_all_threads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace fairlead::shim
