// Every symbol of the table exists: those that no other file defines are these weak functions, which count the call and
// return CUDA_ERROR_NOT_SUPPORTED. They ignore their arguments, whatever they are.
#include <atomic>
#include <set>
#include <string>

#include "softgpu/driver/entry/unsupported.h"
#include "softgpu/driver/log.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

constexpr int kNotSupported = 801;

std::atomic<unsigned long> g_calls = 0;

bool first_call(const char* symbol) {
  static auto* mutex = new Mutex;
  static auto* seen SOFTGPU_GUARDED_BY(mutex) = new std::set<std::string>;
  const LockGuard guard(*mutex);
  return seen->insert(symbol).second;
}

}  // namespace

int count_unsupported(const char* symbol) {
  g_calls.fetch_add(1, std::memory_order_relaxed);
  if (first_call(symbol)) log_line(std::string(symbol) + " is not supported");
  return kNotSupported;
}

unsigned long unsupported_calls() {
  return g_calls.load(std::memory_order_relaxed);
}

}  // namespace softgpu

extern "C" {
#define SYMBOL(base, suffix, since, symbol)                   \
  __attribute__((weak, visibility("default"))) int symbol() { \
    return softgpu::count_unsupported(#symbol);               \
  }
#include "symbols.inc"
#undef SYMBOL
}
