// How a page is changed while other threads count. The new page starts with a copy of the counters, then becomes the
// current one, and then gets what was still added to the old one after the copy: a thread that had read the old pointer
// is through with its one instruction when the barrier returns. So no counter is ever too small on the way, and none is
// wrong at the end.
#include "shim/page.h"

#include <sys/mman.h>

#include "shim/barrier.h"
#include "shim/futex.h"

namespace fairlead::shim {
namespace {

constexpr std::size_t kPageBytes = 4096;

constinit wire::ShimPage own_page;

using Counter = std::atomic<std::uint64_t> wire::ShimPage::*;
constexpr Counter kCounters[] = {
    &wire::ShimPage::held,       &wire::ShimPage::resident,       &wire::ShimPage::away,
    &wire::ShimPage::fixed,      &wire::ShimPage::gpu_time_ns,    &wire::ShimPage::launches,
    &wire::ShimPage::gate_waits, &wire::ShimPage::passed_through, &wire::ShimPage::unhooked_functions,
};
constexpr std::size_t kCounterCount = sizeof kCounters / sizeof kCounters[0];

wire::ShimPage* map(int descriptor) {
  void* const address = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return nullptr;
  auto* const mapped = static_cast<wire::ShimPage*>(address);
  if (mapped->magic == wire::kShimPageMagic && mapped->version == wire::kShimVersion) return mapped;
  ::munmap(address, kPageBytes);
  return nullptr;
}

}  // namespace

namespace page_detail {
constinit std::atomic<wire::ShimPage*> current{&own_page};
}

bool adopt_page(int descriptor) {
  wire::ShimPage* const next = map(descriptor);
  if (next == nullptr) return false;
  wire::ShimPage& before = page();
  std::uint64_t copied[kCounterCount];
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    copied[i] = (before.*kCounters[i]).load(std::memory_order_relaxed);
    (next->*kCounters[i]).store(copied[i], std::memory_order_relaxed);
  }
  next->gate.fetch_or(before.gate.load() & wire::kGateMemory);
  page_detail::current.store(next, std::memory_order_release);
  order_all_threads();
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const std::uint64_t late = (before.*kCounters[i]).load(std::memory_order_relaxed) - copied[i];
    (next->*kCounters[i]).fetch_add(late, std::memory_order_relaxed);
  }
  // Whoever waits at the old page's gate looks at the new one; the old page stays mapped for them.
  before.gate.store(0);
  futex_wake_all(before.gate);
  return true;
}

void leave_page() {
  for (const Counter counter : kCounters) (own_page.*counter).store(0, std::memory_order_relaxed);
  own_page.gate.store(0);
  own_page.memory_cap.store(0);
  page_detail::current.store(&own_page, std::memory_order_release);
}

}  // namespace fairlead::shim
