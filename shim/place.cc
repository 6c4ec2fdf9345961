#include "shim/place.h"

#include <atomic>

#include "shim/barrier.h"
#include "shim/futex.h"
#include "shim/gate.h"
#include "shim/gpu_time.h"
#include "shim/work_watch.h"

namespace fairlead::shim {
namespace {

// The node closes the gate when a place is over. Later than this it is late, and we close it. Shorter, and a place that the
// node is about to give for longer would be closed for nothing.
constexpr std::uint64_t kGraceNs = 250'000;
// A place that was not used for so long is given back: longer than a program takes from the end of a kernel to the next launch.
constexpr std::uint64_t kRestNs = 150'000;
constexpr std::uint64_t kLookNs = 100'000;      // at a place that is open
constexpr std::uint64_t kDrainLookNs = 50'000;  // at one that drains: others wait for it

// Of the watch's thread. What it saw last, to know whether a place was used meanwhile.
struct Seen {
  std::uint64_t gpu_time = 0;
  std::uint64_t since_ns = 0;  // idle; 0: not
};
constinit Seen seen;

constinit std::atomic<std::uint32_t> launches_ahead{0};

void ring(wire::ShimPage& shared) {
  shared.bell.fetch_add(1);
  futex_wake_all(shared.bell);
}

bool is_closed(const wire::ShimPage& shared) {
  return (shared.gate.load() & wire::kGateNode) != 0;
}

bool anything_in_flight() {
  return gpu_time_detail::busy_contexts.load() != 0;
}

// Idle since the last look but one, and for long enough.
bool is_not_used(const wire::ShimPage& shared, std::uint64_t now_ns) {
  const std::uint64_t gpu_time = shared.gpu_time_ns.load();
  const bool used = anything_in_flight() || gpu_time != seen.gpu_time || launches_ahead.load() != 0;
  seen.gpu_time = gpu_time;
  if (used) seen.since_ns = 0;
  if (!used && seen.since_ns == 0) seen.since_ns = now_ns;
  return seen.since_ns != 0 && now_ns - seen.since_ns >= kRestNs;
}

}  // namespace

void ask_for_place() {
  wire::ShimPage& shared = page();
  shared.asking.fetch_add(1);
  ring(shared);
}

// The watch is awake while there is a place: it may never be used.
void stop_asking() {
  page().asking.fetch_sub(1);
  watch_work();
}

LaunchAhead::LaunchAhead() {
  launches_ahead.fetch_add(1);
}
LaunchAhead::~LaunchAhead() {
  launches_ahead.fetch_sub(1);
}

void forget_launches_ahead() {
  launches_ahead.store(0);
}

void place_may_have_drained() {
  if (!has_places()) return;
  wire::ShimPage& shared = page();
  const std::uint32_t grant = shared.grant.load();
  if (shared.drained.load() == grant || !is_closed(shared) || anything_in_flight()) return;
  // Whoever saw the gate open has left by now, or is seen inside.
  order_all_threads();
  if (others_inside() || anything_in_flight() || !is_closed(shared) || shared.grant.load() != grant) return;
  shared.drained.store(grant);
  ring(shared);
}

std::uint64_t look_at_place(std::uint64_t now_ns) {
  if (!has_places()) return kNoPlace;
  wire::ShimPage& shared = page();
  if (!is_closed(shared)) {
    const bool is_over = now_ns >= shared.open_until_ns.load() + kGraceNs;
    if (!is_not_used(shared, now_ns) && !is_over) return kLookNs;
    shared.gate.fetch_or(wire::kGateNode);
  }
  seen.since_ns = 0;
  place_may_have_drained();
  return shared.drained.load() == shared.grant.load() ? kNoPlace : kDrainLookNs;
}

}  // namespace fairlead::shim
