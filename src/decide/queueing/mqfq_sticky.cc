#include "decide/queueing/mqfq_sticky.h"

#include <algorithm>

namespace fairlead {
namespace {

// The least charge for a flow that was never measured. With T = 0, T / 10 would be free.
constexpr Duration kMinFirstCharge = std::chrono::milliseconds(1);

// So many flows that cannot start for want of room are passed over in one search, so that a search stays short however
// many flows wait. Those behind them are looked at all the same, in a search of all flows once in kWideSearchEvery.
constexpr int kMaxPassedOver = 4;
constexpr Duration kWideSearchEvery = std::chrono::seconds(10);

// A claim empties a GPU, so it is for those that would else wait for ever: so many T. With 2 instead of 8 the mean latency of
// bench/scenarios/attack/sizes-mean-fcfs.toml, in which half of the functions need most of the device, is a quarter higher.
constexpr int kClaimAfterWindows = 8;

}  // namespace

MqfqSticky::MqfqSticky(FlowTable& flows, const PolicyOptions& options)
    : Order(flows),
      ByService(options.find(kFixedCharge)),
      least_over_run_(options.get(kOverRun)),
      over_run_services_(options.get(kOverRunServices)),
      over_run_(least_over_run_) {}

void MqfqSticky::remove(Row row) {
  if (claimant_ == row) claimant_.reset();
  leave_heaps(row);
  advance_global();
}

void MqfqSticky::began(const Pick& pick) {
  settle(pick.row);
  review_claim();
}

void MqfqSticky::ended(Row row, const Ended& end) {
  const bool another_window = end.answered && adapt_window(end.service);
  settle(row);
  if (another_window) advance_global();
}

// For one that is ready no more than T: the start of a flow that was not ahead leaves it within the window.
void MqfqSticky::charge_start(Flow& flow, Duration cost, bool is_ready) {
  catch_up(flow);
  flow.virtual_time += is_ready ? std::min(cost, over_run_) : cost;
}

// ---- who runs

std::optional<Order::Pick> MqfqSticky::pick(Instant now, const Placeable& placeable) {
  now_ = now;
  next_chance_.reset();
  one_waits_elsewhere_ = false;
  review_claim();
  auto picked = pick_place(now, placeable);
  while (set_aside_behind_starts() && !picked) picked = pick_place(now, placeable);  // others may be in the window now
  if (!picked) picked = pick_beyond_window(placeable);
  if (picked) picked->expected = estimate(flows_[picked->row]);
  return picked;
}

std::optional<Order::Pick> MqfqSticky::pick_place(Instant, const Placeable& placeable) {
  const auto row = first_preferred(placeable);
  return row ? std::optional(Pick{*row}) : std::nullopt;
}

std::optional<MqfqSticky::Row> MqfqSticky::first_preferred(const Placeable& placeable) {
  return preferred_.find_first([&](Row candidate) { return can_run(placeable, candidate); });
}

std::optional<GpuId> MqfqSticky::place_beyond_window(Row row, const Placeable& placeable) {
  return can_run(placeable, row) ? std::optional(GpuId()) : std::nullopt;
}

Obstacle MqfqSticky::look_at(const Placeable& placeable, Row row) {
  const Flow& flow = flows_[row];
  const bool can = placeable.can_run(flow.id);
  const Obstacle obstacle = can ? Obstacle::kNothing : placeable.obstacle(flow.id);
  one_waits_elsewhere_ |= obstacle == Obstacle::kMemory || obstacle == Obstacle::kSlots;
  if (flow.behind_starts != (obstacle == Obstacle::kStarts)) changed_standing_.push_back(row);
  may_claim(row, obstacle);
  return obstacle;
}

// ---- memory

void MqfqSticky::may_claim(Row row, Obstacle obstacle) {
  const bool waits_for_memory = obstacle == Obstacle::kMemory || obstacle == Obstacle::kStarts;
  if (!starts_ahead() || claimant_ || !waits_for_memory) return;
  if (now_ - flows_[row].waits_since() > kClaimAfterWindows * over_run_) claimant_ = row;
}

// A claim lasts, through the start of the flow, until all that it has queued was chosen, or it is ahead by more than the window:
// to empty the GPU for one call, and again for the next, would cost more than it gives.
void MqfqSticky::review_claim() {
  if (!claimant_) return;
  const Flow& flow = flows_[*claimant_];
  if (!flow.runnable() || !within_window(flow)) claimant_.reset();
}

// A flow whose instance waits for memory that starts have reserved waits for these starts, and nobody waits with it.
// True: that of some flow has changed.
bool MqfqSticky::set_aside_behind_starts() {
  const bool any = !changed_standing_.empty();
  for (const Row row : changed_standing_) {
    flows_[row].behind_starts = !flows_[row].behind_starts;
    settle(row);
  }
  changed_standing_.clear();
  return any;
}

// A slot is free and nobody within the window can use it. Where all of them wait on themselves (on their busy instance, on a
// start), the window moves; where one waits for memory, or is ready on another GPU, it keeps its place, and the slot is
// used once without moving the window.
std::optional<Order::Pick> MqfqSticky::pick_beyond_window(const Placeable& placeable) {
  if (!starts_ahead() || throttled_.empty()) return std::nullopt;
  std::optional<GpuId> gpu;
  const auto row = throttled_.find_first([&](Row candidate) {
    gpu = place_beyond_window(candidate, placeable);
    return gpu.has_value();
  });
  changed_standing_.clear();  // of flows within the window alone
  if (!row) return std::nullopt;
  if (one_waits_elsewhere_) {
    flows_[*row].borrowed = true;
  } else {
    move_window_to(*row);
  }
  return Pick{*row, *gpu};
}

// The flow comes within the window. Those that are passed wait on themselves: they stay at Global_VT.
void MqfqSticky::move_window_to(Row row) {
  global_ = std::max(global_, flows_[row].virtual_time - over_run_);
  for (auto* heap : {&least_served_, &throttled_, &throttled_starts_}) {
    while (!heap->empty() && heap->top_key().time < global_) {
      const Row passed = heap->top();
      if (flows_[passed].contending) catch_up(flows_[passed]);
      enter_heaps(passed);
    }
  }
  advance_global();
}

// ---- who starts

// The first of: who has waited for T, the oldest first; the policy's order; who could use a slot that idles.
std::optional<MqfqSticky::Row> MqfqSticky::pick_start(Instant now, const Placeable& startable) {
  now_ = now;
  if (!startable.may_start()) return std::nullopt;
  review_claim();
  begin_search();
  auto row = overdue_start(startable);
  if (!row) row = preferred_start(startable);
  if (!row && startable.has_free_slot()) row = start_for_free_slot(startable);
  if (!by_age_.empty() && !is_overdue(flows_[by_age_.top()])) {
    next_chance_ = by_age_.top_key().time + over_run_ + Duration(1);
  }
  if (some_not_looked_at_) next_chance_ = std::min(next_chance_.value_or(next_wide_search_), next_wide_search_);
  if (!row) return std::nullopt;
  flows_[*row].last_turn = now;
  settle(*row);
  return row;
}

void MqfqSticky::begin_search() {
  const bool wide = some_not_looked_at_ && now_ >= next_wide_search_;
  if (wide || !some_not_looked_at_) next_wide_search_ = now_ + kWideSearchEvery;
  most_passed_over_ = wide ? std::numeric_limits<int>::max() : kMaxPassedOver;
  some_not_looked_at_ = false;
}

// After one more flow has been passed over.
bool MqfqSticky::ends_search(int passed_over) {
  const bool ends = passed_over == most_passed_over_;
  some_not_looked_at_ |= ends;
  return ends;
}

std::optional<MqfqSticky::Row> MqfqSticky::overdue_start(const Placeable& startable) {
  int passed_over = 0;
  std::optional<Row> next;
  by_age_.find_first([&](Row candidate) {
    const Flow& flow = flows_[candidate];
    if (!is_overdue(flow)) return true;
    const Obstacle obstacle = startable.obstacle(flow.id);
    if (obstacle == Obstacle::kItself) return false;
    if (obstacle == Obstacle::kNothing) next = candidate;
    may_claim(candidate, obstacle);
    return next || ends_search(++passed_over);
  });
  return next;
}

std::optional<MqfqSticky::Row> MqfqSticky::preferred_start(const Placeable& startable) {
  int passed_over = 0;
  std::optional<Row> next;
  to_start_.find_first([&](Row candidate) {
    const Obstacle obstacle = startable.obstacle(flows_[candidate].id);
    if (obstacle == Obstacle::kItself) return false;
    if (obstacle == Obstacle::kNothing) next = candidate;
    return next || ends_search(++passed_over);
  });
  return next;
}

// One more instance where a slot idles: of a flow whose own are busy, or on another GPU; or the first of one beyond the
// window, where nobody within it waits for anything but itself.
std::optional<MqfqSticky::Row> MqfqSticky::start_for_free_slot(const Placeable& startable) {
  const auto can_start = [&](Row candidate) { return startable.can_run(flows_[candidate].id); };
  if (const auto next = preferred_.find_first(can_start)) return next;
  if (const auto next = find_indexed(can_start)) return next;
  int passed_over = 0;
  std::optional<Row> next;
  throttled_starts_.find_first([&](Row candidate) {
    if (can_start(candidate)) next = candidate;
    return next || ends_search(++passed_over);
  });
  if (next && !one_waits_elsewhere_) move_window_to(*next);
  return next;
}

// One comparison of the rank decides most.
MqfqSticky::Preference MqfqSticky::preference(const Flow& flow) const {
  const auto queued = static_cast<std::uint32_t>(flow.queue.size());
  return {static_cast<std::uint64_t>(flow.in_flight.size()) << 32 | static_cast<std::uint32_t>(~queued),
          flow.virtual_time, flow.id};
}

MqfqSticky::Preference MqfqSticky::objectives_first(const Flow& flow, std::uint64_t rank) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 63;
  if (!flow.objective) return {kNone | rank, flow.virtual_time, flow.id};
  const Instant due = flow.queue.front().arrived + *flow.objective;
  return {static_cast<std::uint64_t>(due.time_since_epoch().count()), flow.virtual_time, flow.id};
}

Duration MqfqSticky::estimate(const Flow& flow) const {
  return flow.service ? *flow.service : std::max(over_run_ / 10, kMinFirstCharge);
}

// Puts a flow that changed where it belongs. One that had nothing to run and still has nothing is nowhere.
void MqfqSticky::settle(Row row) {
  Flow& flow = flows_[row];
  if (flows_.note_contention(row)) catch_up(flow);
  if (flow.runnable()) {
    enter_heaps(row);
  } else if (flow.in_heaps) {
    leave_heaps(row);
  } else {
    return;
  }
  advance_global();
}

// What it did not use, while it had nothing to run or nothing to run it on, is gone.
void MqfqSticky::catch_up(Flow& flow) {
  const Duration behind = std::max(Duration(0), global_ - flow.virtual_time);
  flow.virtual_time += behind;
  flow.passed += behind;
}

void MqfqSticky::enter_heaps(Row row) {
  Flow& flow = flows_[row];
  const ByVirtualTime by_virtual_time{flow.virtual_time, flow.id};
  const bool ready = flow.supply == Supply::kReady, eligible = within_window(flow);
  const auto put = [row](auto& heap, bool belongs, const auto& key) { belongs ? heap.set(row, key) : heap.erase(row); };
  flow.in_heaps = true;
  flow.borrowed &= !eligible;
  put(throttled_, !eligible && ready, by_virtual_time);
  put(throttled_starts_, !eligible && !ready, by_virtual_time);
  put(least_served_, eligible && flow.contending, by_virtual_time);
  put(by_age_, eligible && !ready, ByAge{flow.waits_since(), flow.id});
  put(to_start_, eligible && !ready, eligible && !ready ? preference(flow) : Preference{});
  eligible&& ready ? on_eligible(row) : on_ineligible(row);
}

void MqfqSticky::leave_heaps(Row row) {
  flows_[row].in_heaps = false;
  on_ineligible(row);
  to_start_.erase(row);
  by_age_.erase(row);
  least_served_.erase(row);
  throttled_.erase(row);
  throttled_starts_.erase(row);
}

// Whom Global_VT follows: those that contend, and where nobody does, whoever is beyond the window.
std::optional<Duration> MqfqSticky::least_virtual_time() const {
  if (!least_served_.empty()) return least_served_.top_key().time;
  std::optional<Duration> least;
  for (const auto* throttled : {&throttled_, &throttled_starts_}) {
    if (!throttled->empty()) least = std::min(least.value_or(Duration::max()), throttled->top_key().time);
  }
  return least;
}

// Global_VT follows the least VT upwards, and flows that come within T of it are eligible again. With no runnable flow
// it stays. Amortised: a flow is promoted at most once per time it was throttled.
void MqfqSticky::advance_global() {
  while (const auto least = least_virtual_time()) {
    global_ = std::max(global_, *least);
    const bool some = promote(throttled_), more = promote(throttled_starts_);
    if (!some && !more) return;
  }
}

bool MqfqSticky::promote(IndexedHeap<ByVirtualTime>& throttled) {
  bool any = false;
  while (!throttled.empty() && throttled.top_key().time - global_ <= over_run_) {
    enter_heaps(throttled.top());
    any = true;
  }
  return any;
}

// A window of so many mean services serves runs of about the same length on any workload. True: it may have changed.
bool MqfqSticky::adapt_window(Duration service) {
  if (over_run_services_ <= 0) return false;
  mean_service_ = mean_service_ == Duration(0) ? service : mean_service_ + (service - mean_service_) / 100;
  const double services = over_run_services_ * static_cast<double>(mean_service_.count());
  over_run_ = std::max(least_over_run_, Duration(static_cast<Duration::rep>(services)));
  return true;
}

constinit const Policy mqfq_sticky_policy{
    .name = "mqfq-sticky",
    .next_is = "within the fairness window: fewest in flight, then longest queue, then least served",
    .make = make_order<MqfqSticky>,
    .parameters = {&kOverRun, &kOverRunServices, &kFixedCharge}};

}  // namespace fairlead
