#include "softgpu/device/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

constexpr std::size_t kMaxRanges = 64;

struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

// Read by the handler: entries below the count never change.
Range g_ranges[kMaxRanges];
std::atomic<std::size_t> g_range_count = 0;
std::atomic<bool> g_lost = false;
struct sigaction g_previous;
std::size_t g_page_bytes = 4096;

bool guarded(std::uintptr_t address) {
  const std::size_t count = g_range_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (address - g_ranges[i].begin < g_ranges[i].bytes) return true;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the instruction is repeated and ends the process
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t page = address & ~(g_page_bytes - 1);
  if (guarded(address) && ::mmap(reinterpret_cast<void*>(page), g_page_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    g_lost.store(true, std::memory_order_relaxed);
  } else {
    pass_on(signal, info, context);
  }
  errno = saved_errno;
}

void install() {
  g_page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_previous);
}

}  // namespace

void guard_mapping(void* begin, std::size_t bytes) {
  static Mutex mutex;
  const LockGuard guard(mutex);
  const std::size_t count = g_range_count.load();
  if (count == 0) install();
  if (count == kMaxRanges) return;
  g_ranges[count] = {reinterpret_cast<std::uintptr_t>(begin), bytes};
  g_range_count.store(count + 1, std::memory_order_release);
}

bool mapping_lost() {
  return g_lost.load(std::memory_order_relaxed);
}

}  // namespace softgpu
