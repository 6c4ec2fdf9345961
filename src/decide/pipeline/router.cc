#include "decide/pipeline/router.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

std::string_view queue_order_name(QueueOrder order) {
  return order == QueueOrder::kDeadline ? "deadline" : "late_last";
}

Result<QueueOrder> queue_order_named(std::string_view name) {
  for (const QueueOrder one : {QueueOrder::kDeadline, QueueOrder::kLateLast}) {
    if (queue_order_name(one) == name) return one;
  }
  return fail(Errc::kInvalidArgument, "order is \"{}\", it must be deadline or late_last", name);
}

void RequestQueue::push(const QueuedRequest& request) {
  FL_CHECK(by_id_.try_emplace(request.id, request).second, "request {} waits already", request.id.value());
  open_.insert({request.adjusted(), request.id});
}

// Who cannot be met any more goes to the late.
void RequestQueue::settle(Instant now) {
  if (order_ == QueueOrder::kDeadline) return;
  while (!open_.empty() && open_.begin()->first < now) {
    const PipelineRequestId id = open_.begin()->second;
    open_.erase(open_.begin());
    late_.insert({by_id_.at(id).arrived, id});
  }
}

QueuedRequest RequestQueue::take(std::set<Key>& from, std::set<Key>::iterator one) {
  const PipelineRequestId id = one->second;
  from.erase(one);
  const QueuedRequest taken = by_id_.at(id);
  by_id_.erase(id);
  return taken;
}

std::optional<QueuedRequest> RequestQueue::pop(Instant now, Duration needs, bool late_too) {
  settle(now);
  if (by_id_.empty()) return std::nullopt;
  if (order_ == QueueOrder::kDeadline) return take(open_, open_.begin());
  const auto met = std::find_if(open_.begin(), open_.end(),
                                [&](const Key& one) { return by_id_.at(one.second).deadline - needs >= now; });
  if (late_.empty()) {
    owed_ = 0;
  } else {
    const bool turn = owed_ + late_share_ >= 1;
    if (turn || (late_too && met == open_.end())) {
      owed_ = turn ? owed_ + late_share_ - 1 : owed_;
      return take(late_, late_.begin());
    }
    if (met != open_.end()) owed_ += late_share_;
  }
  return met == open_.end() ? std::nullopt : std::optional(take(open_, met));
}

bool RequestQueue::remove(PipelineRequestId id) {
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return false;
  open_.erase({at->second.adjusted(), id});
  late_.erase({at->second.arrived, id});
  by_id_.erase(at);
  return true;
}

std::size_t RequestQueue::in_time(Instant now) {
  settle(now);
  if (order_ == QueueOrder::kLateLast) return open_.size();
  return static_cast<std::size_t>(
      std::count_if(open_.begin(), open_.end(), [&](const Key& one) { return one.first >= now; }));
}

std::optional<InstanceId> route(const std::vector<RoutedInstance>& instances) {
  const RoutedInstance* best = nullptr;
  for (const RoutedInstance& one : instances) {
    if (!one.takes_new || one.inside >= one.capacity) continue;
    const bool better = best == nullptr || (one.is_hot != best->is_hot ? one.is_hot : one.latency < best->latency);
    if (better) best = &one;
  }
  return best == nullptr ? std::nullopt : std::optional(best->id);
}

MoveToOne::Step MoveToOne::slice_free(bool pressure) {
  if (state_ != State::kPipeline || pressure) return Step::kNothing;
  state_ = State::kWarming;
  return Step::kStartOne;
}

MoveToOne::Step MoveToOne::one_is_warm() {
  if (state_ != State::kWarming) return Step::kNothing;
  state_ = State::kDraining;
  return Step::kRouteToOne;
}

MoveToOne::Step MoveToOne::pipeline_is_empty() {
  if (state_ != State::kDraining) return Step::kNothing;
  state_ = State::kOne;
  return Step::kRetirePipeline;
}

// Once new requests go to the one slice they stay there: only what is not warm yet is given up.
MoveToOne::Step MoveToOne::pressed() {
  if (state_ != State::kWarming) return Step::kNothing;
  state_ = State::kPipeline;
  return Step::kGiveUpOne;
}

// While the pipeline drains it is still there, and takes requests again.
MoveToOne::Step MoveToOne::one_is_lost() {
  if (state_ == State::kPipeline) return Step::kNothing;
  const bool had = state_ != State::kOne;
  state_ = State::kPipeline;
  return had ? Step::kGiveUpOne : Step::kNothing;
}

MoveToOne::Step MoveToOne::started_pipeline() {
  if (state_ == State::kOne) state_ = State::kPipeline;
  return Step::kNothing;
}

}  // namespace fairlead
