#include "decide/queueing/flow_table.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {
namespace {

// 0.9 old + 0.1 new; the first sample is taken as it is.
void average(std::optional<Duration>& mean, Duration sample) {
  mean = mean ? *mean + (sample - *mean) / 10 : sample;
}

// Never 0: a weight too small for the fixed point is the smallest one.
std::uint32_t fixed_point(double weight) {
  FL_CHECK(weight > 0 && weight < 65536, "weight={}", weight);
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::lround(weight * Flow::kWeightOne)));
}

}  // namespace

FlowTable::Row FlowTable::add(FlowId flow, const FlowShare& share) {
  Row row = static_cast<Row>(flows_.size());
  if (free_rows_.empty()) {
    flows_.emplace_back();
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
  }
  FL_CHECK(rows_.try_emplace(flow, row).second, "flow {} is there already", flow.value());
  flows_[row].id = flow;
  flows_[row].tenant = share.tenant;
  set_share(row, share);
  if (!share.family || share.family == flow) return row;
  const Row first = row_of(share.family);
  FlowFamily& family = families_.join(share.family, first, flows_[first].in_flight.size(), row);
  flows_[first].limit.family = flows_[row].limit.family = &family;
  flows_[row].virtual_time = flows_[first].virtual_time;
  return row;
}

void FlowTable::remove(FlowId flow) {
  const Row row = row_of(flow);
  count_queued(flows_[row], -static_cast<std::ptrdiff_t>(flows_[row].queue.size()));
  if (flows_[row].contending) --contending_;
  expiries_.erase(row);
  FlowFamily* const family = flows_[row].limit.family;
  if (family != nullptr && families_.leave(*family, row, flows_[row].in_flight.size())) {
    flows_[family->rows.front()].limit.family = nullptr;
    families_.dissolve(*family);
  }
  flows_[row] = Flow();
  rows_.erase(flow);
  free_rows_.push_back(row);
}

void FlowTable::set_share(Row row, const FlowShare& share) {
  FL_CHECK(share.width_percent >= 1 && share.width_percent <= 100, "width={}", share.width_percent);
  flows_[row].price = {fixed_point(share.weight), share.width_percent};
  flows_[row].objective = share.objective;
}

void FlowTable::arrive(Instant now, Row row, InvocationId invocation) {
  Flow& flow = flows_[row];
  if (flow.last_arrival) average(flow.inter_arrival, now - *flow.last_arrival);
  flow.last_arrival = now;
  flow.inactive = false;
  flow.queue.push_back({invocation, now, next_sequence_++});
  count_queued(flow, 1);
  expiries_.erase(row);
}

bool FlowTable::cancel(Instant now, Row row, InvocationId invocation) {
  const bool found =
      flows_[row].queue.remove_first([&](const QueuedInvocation& q) { return q.invocation == invocation; });
  if (!found) return false;
  count_queued(flows_[row], -1);
  start_ttl_if_empty(now, row);
  return true;
}

std::optional<InvocationId> FlowTable::drop_head(Instant now, Row row) {
  if (flows_[row].queue.empty()) return std::nullopt;
  count_queued(flows_[row], -1);
  const InvocationId head = flows_[row].queue.pop_front().invocation;
  start_ttl_if_empty(now, row);
  return head;
}

InvocationId FlowTable::dispatch(Row row, Duration charged, bool is_seated) {
  Flow& flow = flows_[row];
  flow.in_flight.push_back({flow.queue.pop_front(), charged, is_seated});
  if (flow.limit.family) ++flow.limit.family->in_flight;
  count_queued(flow, -1);
  return flow.in_flight.back().queued.invocation;
}

InFlight FlowTable::finish(Instant now, Row row, InvocationId invocation) {
  const InFlight ended = take_in_flight(row, invocation);
  start_ttl_if_empty(now, row);
  return ended;
}

InFlight FlowTable::requeue(Row row, InvocationId invocation) {
  const InFlight returned = take_in_flight(row, invocation);
  flows_[row].queue.push_front(returned.queued);
  count_queued(flows_[row], 1);
  return returned;
}

void FlowTable::record_service(Row row, Duration service) {
  average(flows_[row].service, service);
}

void FlowTable::set_supply(Row row, Supply supply) {
  supply_is_told_ |= supply != Supply::kSeats && flows_[row].supply != Supply::kSeats;
  const auto waits = static_cast<std::ptrdiff_t>(flows_[row].queue.size());
  count_queued(flows_[row], -waits);
  flows_[row].supply = supply;
  count_queued(flows_[row], waits);
  if (supply != Supply::kReady) flows_[row].behind_starts = false;
}

bool FlowTable::note_contention(Row row) {
  Flow& flow = flows_[row];
  const bool contends = flow.contends();
  if (contends == flow.contending) return false;
  flow.contending = contends;
  contending_ += contends ? 1 : -1;
  return contends;
}

std::optional<Instant> FlowTable::next_expiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.top_key().at;
}

void FlowTable::expire(Instant now) {
  while (!expiries_.empty() && expiries_.top_key().at <= now) {
    flows_[expiries_.top()].inactive = true;
    expiries_.erase(expiries_.top());
  }
}

std::string_view flow_state_name(FlowState state) {
  switch (state) {
    case FlowState::kActive: return "active";
    case FlowState::kThrottled: return "throttled";
    case FlowState::kInactive: return "inactive";
  }
  return "unknown";
}

std::size_t FlowTable::queued(FlowId flow) const {
  const Row* found = rows_.find(flow);
  return found == nullptr ? 0 : flows_[*found].queue.size();
}

FlowView FlowTable::view(Row row, bool throttled) const {
  const Flow& flow = flows_[row];
  return {.flow = flow.id,
          .state = state(row, throttled),
          .queued = flow.queue.size(),
          .in_flight = flow.in_flight.size(),
          .virtual_time = flow.virtual_time,
          .service_estimate = flow.service.value_or(Duration(0)),
          .contends = flow.contending && !flow.borrowed,
          .passed = flow.passed,
          .pace = flow.inter_arrival ? ArrivalPace{*flow.inter_arrival, *flow.last_arrival} : ArrivalPace{}};
}

void FlowTable::count_queued(const Flow& flow, std::ptrdiff_t change) {
  queued_ += static_cast<std::size_t>(change);
  if (flow.supply == Supply::kSeats) queued_for_seats_ += static_cast<std::size_t>(change);
}

InFlight FlowTable::take_in_flight(Row row, InvocationId invocation) {
  std::vector<InFlight>& running = flows_[row].in_flight;
  const auto found = std::find_if(running.begin(), running.end(),
                                  [&](const InFlight& r) { return r.queued.invocation == invocation; });
  FL_CHECK(found != running.end(), "invocation {} is not in flight", invocation.value());
  const InFlight taken = *found;
  *found = running.back();
  running.pop_back();
  if (flows_[row].limit.family) --flows_[row].limit.family->in_flight;
  return taken;
}

void FlowTable::start_ttl_if_empty(Instant now, Row row) {
  const Flow& flow = flows_[row];
  if (flow.queue.empty() && flow.in_flight.empty()) expiries_.set(row, {now + ttl(flow), flow.id});
}

Duration FlowTable::ttl(const Flow& flow) const {
  if (options_.fixed_ttl) return *options_.fixed_ttl;
  if (!flow.inter_arrival) return options_.initial_ttl;
  const double ns = options_.ttl_factor * static_cast<double>(flow.inter_arrival->count());
  if (ns >= static_cast<double>(options_.max_ttl.count())) return options_.max_ttl;
  return std::max(options_.min_ttl, Duration(static_cast<Duration::rep>(ns)));
}

}  // namespace fairlead
