// How a page is changed while other threads count. The new page starts with a copy of the counters, then takes the old
// one's place in the address space, which the kernel does between two instructions of any thread, and then gets what was
// still added to the old one after the copy; that one is seen at a second address meanwhile. So no counter is ever too
// small on the way, and none is wrong at the end.
//
// A pointer to the current page would be simpler, and loses what a thread adds that was interrupted between reading the
// pointer and adding.
#include "shim/page.h"

#include <sys/mman.h>

#include "shim/futex.h"

namespace fairlead::shim {
namespace {

using Counter = std::atomic<std::uint64_t> wire::ShimPage::*;
constexpr Counter kCounters[] = {
    &wire::ShimPage::held,       &wire::ShimPage::resident,       &wire::ShimPage::away,
    &wire::ShimPage::fixed,      &wire::ShimPage::gpu_time_ns,    &wire::ShimPage::launches,
    &wire::ShimPage::gate_waits, &wire::ShimPage::passed_through, &wire::ShimPage::unhooked_functions,
    &wire::ShimPage::busy,       &wire::ShimPage::asking,
};
constexpr std::size_t kCounterCount = sizeof kCounters / sizeof kCounters[0];

wire::ShimPage* map(int descriptor) {
  void* const address = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return nullptr;
  auto* const mapped = static_cast<wire::ShimPage*>(address);
  const bool known = mapped->version >= wire::kOldestShimVersion && mapped->version <= wire::kShimVersion;
  if (mapped->magic == wire::kShimPageMagic && known) return mapped;
  ::munmap(address, kPageBytes);
  return nullptr;
}

// The page that is there now, at another address too. Null: the system has no room for it.
wire::ShimPage* second_view() {
  void* const address = ::mremap(&page_detail::frame, 0, kPageBytes, MREMAP_MAYMOVE);
  return address == MAP_FAILED ? nullptr : static_cast<wire::ShimPage*>(address);
}

bool put_in_place(int flags, int descriptor) {
  void* const place = &page_detail::frame;
  return ::mmap(place, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | flags, descriptor, 0) == place;
}

// False: `next`, which `descriptor` is of, could not be put in place; nothing has changed.
bool exchange(wire::ShimPage& before, wire::ShimPage& next, int descriptor) {
  std::uint64_t copied[kCounterCount];
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    copied[i] = (before.*kCounters[i]).load(std::memory_order_relaxed);
    (next.*kCounters[i]).store(copied[i], std::memory_order_relaxed);
  }
  next.gate.fetch_or(before.gate.load() & wire::kGateMemory);
  if (!put_in_place(0, descriptor)) return false;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const std::uint64_t late = (before.*kCounters[i]).load(std::memory_order_relaxed) - copied[i];
    (next.*kCounters[i]).fetch_add(late, std::memory_order_relaxed);
  }
  // Whoever waits at the old page's gate looks at the new one; whoever asks there asks here.
  before.pace.store(0);
  before.gate.store(0);
  futex_wake_all(before.gate);
  next.bell.fetch_add(1);
  futex_wake_all(next.bell);
  return true;
}

}  // namespace

namespace page_detail {
constinit Frame frame;
}

void begin_page() {
  put_in_place(MAP_ANONYMOUS, -1);
}

bool adopt_page(int descriptor) {
  wire::ShimPage* const next = map(descriptor);
  wire::ShimPage* const before = next != nullptr ? second_view() : nullptr;
  const bool adopted = before != nullptr && exchange(*before, *next, descriptor);
  if (before != nullptr) ::munmap(before, kPageBytes);
  if (next != nullptr) ::munmap(next, kPageBytes);
  return adopted;
}

}  // namespace fairlead::shim
