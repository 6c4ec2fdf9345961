// Which request is next, and which instance answers it; and how a function moves from a pipeline to one slice and back.
//
// Order of a queue.
//   deadline    the paper's: adjusted deadline = deadline - expected execution - expected load, ascending. It serves the latest first: one burst
//               makes everything late, and it stays so.
//   late_last   ours: those that can still be met, by adjusted deadline; the late in the gaps, oldest first, and at least `late_share` of what is
//               served while any wait, so that none waits for ever.
//
// Routing. Exclusive hot instances, lowest latency first, each until it holds as many as its capacity; then the time-sharing instance.
//
// Migration (MoveToOne): a slice frees that holds the whole function -> an instance is started there -> once it is warm new requests go there, and
// the pipeline gets no more -> when the pipeline is empty it is retired. Under pressure before the new one is warm it is given up. A request is in
// one of the two at any time, and a client's requests that were sent to the pipeline are answered by it.
//
// Source: FluidFaaS (HPDC '25), 5.3; late_last and the way back are ours. Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "decide/pipeline/request_flow.h"

namespace fairlead {

enum class QueueOrder { kDeadline, kLateLast };
std::string_view queue_order_name(QueueOrder order);  // "deadline", "late_last"
Result<QueueOrder> queue_order_named(std::string_view name);

struct QueuedRequest {
  PipelineRequestId id;
  Instant arrived, deadline;
  Duration expected{0};  // execution, and load where it must be loaded
  Instant adjusted() const { return deadline - expected; }
};

class RequestQueue {
 public:
  explicit RequestQueue(QueueOrder order, double late_share = 0.05) : order_(order), late_share_(late_share) {}

  void push(const QueuedRequest& request);  // REQUIRES: an id that is not in it
  // The next one, which leaves the queue, for an instance that answers after `needs`. Nothing: empty; or, by kLateLast, all that can still be
  // met need a faster one, and `late_too` is false: it is kept for one that can. Their share the late have in any case.
  std::optional<QueuedRequest> pop(Instant now, Duration needs = Duration(0), bool late_too = true);
  bool remove(PipelineRequestId id);
  std::size_t size() const { return by_id_.size(); }
  bool empty() const { return by_id_.empty(); }
  // Those that can still be met.
  std::size_t in_time(Instant now);

 private:
  using Key = std::pair<Instant, PipelineRequestId>;
  void settle(Instant now);
  QueuedRequest take(std::set<Key>& from, std::set<Key>::iterator one);

  const QueueOrder order_;
  const double late_share_;
  std::map<PipelineRequestId, QueuedRequest> by_id_;
  std::set<Key> open_;  // by adjusted deadline
  std::set<Key> late_;  // by arrival; kLateLast only
  double owed_ = 0;     // to the late
};

struct RoutedInstance {
  InstanceId id;
  Duration latency{0};
  std::size_t inside = 0, capacity = 1;
  bool is_hot = true;     // or the time-sharing one
  bool takes_new = true;  // is ready and does not drain
};
// Nothing: all are full.
std::optional<InstanceId> route(const std::vector<RoutedInstance>& instances);

class MoveToOne {
 public:
  enum class State { kPipeline, kWarming, kDraining, kOne };
  enum class Step { kNothing, kStartOne, kGiveUpOne, kRouteToOne, kRetirePipeline };

  State state() const { return state_; }
  // `pressure`: others wait for slices.
  Step slice_free(bool pressure);
  Step one_is_warm();
  Step pipeline_is_empty();
  Step pressed();
  Step one_is_lost();
  Step started_pipeline();  // back again: the one slice went, or is too few
  // Where a new request goes.
  bool goes_to_one() const { return state_ == State::kDraining || state_ == State::kOne; }

 private:
  State state_ = State::kPipeline;
};

}  // namespace fairlead
