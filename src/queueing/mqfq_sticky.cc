#include "queueing/mqfq_sticky.h"

#include <algorithm>

namespace fairlead {
namespace {

// The least charge for a flow that was never measured. With T = 0, T / 10 would be free.
constexpr Duration kMinFirstCharge = std::chrono::milliseconds(1);

}  // namespace

void MqfqSticky::add_flow(FlowId flow, const FlowShare& share) {
  flows_.add(flow, share);
}

void MqfqSticky::set_share(FlowId flow, const FlowShare& share) {
  const Slot slot = flows_.slot_of(flow);
  flows_.set_share(slot, share);
  settle(slot);
}

void MqfqSticky::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
  settle(slot);
}

void MqfqSticky::set_setup(FlowId flow, Duration setup) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].setup = setup;
  settle(slot);
}

void MqfqSticky::remove_flow(FlowId flow) {
  leave_heaps(flows_.slot_of(flow));
  flows_.remove(flow);
  advance_global();
}

void MqfqSticky::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_.arrive(now, slot, invocation);
  settle(slot);
}

bool MqfqSticky::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  if (!flows_.cancel(now, slot, invocation)) return false;
  settle(slot);
  return true;
}

std::optional<QueuePolicy::Choice> MqfqSticky::choose(Instant now, const Placeable& placeable) {
  const auto picked = pick_place(now, placeable);
  if (!picked) return std::nullopt;
  Flow& flow = flows_[picked->slot];
  const Duration charge = flow.cost(estimate(flow));
  const InvocationId invocation = flows_.dispatch(picked->slot, charge);
  flow.virtual_time += charge;
  settle(picked->slot);
  return Choice{flow.id, invocation, picked->gpu};
}

std::optional<FlowId> MqfqSticky::next_start(const Placeable& startable) {
  const auto slot = pick(startable);
  return slot ? std::optional(flows_[*slot].id) : std::nullopt;
}

std::optional<InvocationId> MqfqSticky::fail_head(Instant now, FlowId flow_id, Duration took) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  const auto head = flows_.drop_head(now, slot);
  flow.virtual_time += flow.cost(took);
  settle(slot);
  return head;
}

void MqfqSticky::on_completion(Instant now, FlowId flow_id, InvocationId invocation, Duration service) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  flow.virtual_time += flow.cost(options_.fixed_charge.value_or(service)) - flows_.finish(now, slot, invocation);
  flows_.record_service(slot, service);
  adapt_window(service);
  settle(slot);
}

void MqfqSticky::on_requeue(Instant, FlowId flow, InvocationId invocation) {
  const Slot slot = flows_.slot_of(flow);
  flows_[slot].virtual_time -= flows_.requeue(slot, invocation);
  settle(slot);
}

void MqfqSticky::on_failed_start(Instant now, FlowId flow_id, InvocationId invocation, Duration held) {
  const Slot slot = flows_.slot_of(flow_id);
  Flow& flow = flows_[slot];
  flow.virtual_time += flow.cost(held) - flows_.finish(now, slot, invocation);
  settle(slot);
}

FlowView MqfqSticky::view(FlowId flow) const {
  const Slot slot = flows_.slot_of(flow);
  return flows_.view(slot, !flows_[slot].queue.empty() && !within_window(flows_[slot]));
}

std::optional<MqfqSticky::Pick> MqfqSticky::pick_place(Instant, const Placeable& placeable) {
  const auto slot = pick(placeable);
  return slot ? std::optional(Pick{*slot}) : std::nullopt;
}

std::optional<MqfqSticky::Slot> MqfqSticky::pick(const Placeable& placeable) {
  return preferred_.find_first([&](Slot candidate) { return placeable.can_run(flows_[candidate].id); });
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
  if (options_.fixed_charge) return *options_.fixed_charge;
  return flow.service ? *flow.service : std::max(over_run_ / 10, kMinFirstCharge);
}

// Puts a flow whose queue, VT or in-flight count changed where it belongs.
void MqfqSticky::settle(Slot slot) {
  Flow& flow = flows_[slot];
  if (!flow.runnable()) {
    leave_heaps(slot);
  } else {
    const bool joins = !is_eligible(slot) && !throttled_.contains(slot);
    if (joins) flow.virtual_time = std::max(flow.virtual_time, global_);
    enter_heaps(slot);
  }
  advance_global();
}

void MqfqSticky::enter_heaps(Slot slot) {
  const Flow& flow = flows_[slot];
  const ByVirtualTime by_virtual_time{flow.virtual_time, flow.id};
  if (within_window(flow)) {
    throttled_.erase(slot);
    on_eligible(slot);
    least_served_.set(slot, by_virtual_time);
  } else {
    on_ineligible(slot);
    least_served_.erase(slot);
    throttled_.set(slot, by_virtual_time);
  }
}

void MqfqSticky::leave_heaps(Slot slot) {
  on_ineligible(slot);
  least_served_.erase(slot);
  throttled_.erase(slot);
}

// Global_VT follows the least VT upwards, and flows that come within T of it are eligible again. With no runnable flow
// it stays. Amortised: a flow is promoted at most once per time it was throttled.
void MqfqSticky::advance_global() {
  Duration least = Duration::max();
  if (!least_served_.empty()) least = least_served_.top_key().time;
  if (!throttled_.empty()) least = std::min(least, throttled_.top_key().time);
  if (least == Duration::max()) return;
  global_ = std::max(global_, least);
  while (!throttled_.empty() && throttled_.top_key().time - global_ <= over_run_) {
    enter_heaps(throttled_.top());
  }
}

// A window of so many mean services serves runs of about the same length on any workload.
void MqfqSticky::adapt_window(Duration service) {
  if (options_.over_run_services <= 0) return;
  mean_service_ = mean_service_ == Duration(0) ? service : mean_service_ + (service - mean_service_) / 100;
  const double services = options_.over_run_services * static_cast<double>(mean_service_.count());
  over_run_ = std::max(options_.over_run, Duration(static_cast<Duration::rep>(services)));
}

}  // namespace fairlead
