// The question "which invocation is next?" as an interface. A policy orders flows (one per function); it never starts,
// moves or times anything and knows nothing of HTTP, processes or CUDA. One strategy per file beside this one.
//
// Time: every entry point takes `now`; no policy holds a clock.
// Threads: not thread-safe; owned by the core thread.
// Determinism: ties break by FlowId; the same calls in the same order give the same choices.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "model/policy_options.h"

namespace fairlead {

// Memory follows the queues (spec/1, "state of a flow"): active means keep near, throttled and inactive mean may leave.
enum class FlowState { kActive, kThrottled, kInactive };
std::string_view flow_state_name(FlowState state);

// What people see of a flow (`top`, metrics, reports).
struct FlowView {
  FlowId flow;
  FlowState state = FlowState::kInactive;
  std::size_t queued = 0;
  std::size_t in_flight = 0;
  Duration virtual_time{0};
  Duration service_estimate{0};  // tau
};

// Whether the core could run the head of this flow right now: a free token, and a warm instance or room for a new one.
// Passed into choose() so that flow and device are chosen together. Reserved concurrency is not its concern: the policy
// keeps that itself (set_max_concurrency).
class Placeable {
 public:
  virtual ~Placeable() = default;
  virtual bool can_run(FlowId flow) const = 0;
  virtual bool has_warm_instance(FlowId flow) const = 0;
};

class QueuePolicy {
 public:
  virtual ~QueuePolicy() = default;
  virtual std::string_view name() const = 0;

  // Flows. weight > 0. Removing a flow drops what it had queued: the core has already answered those invocations.
  virtual void add_flow(FlowId flow, double weight) = 0;
  virtual void set_weight(FlowId flow, double weight) = 0;
  // Reserved concurrency: at most so many in flight; empty: no limit (the default). A flow at its limit is passed over
  // and, as it waits on nobody but itself, holds no other flow back.
  virtual void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) = 0;
  virtual void remove_flow(FlowId flow) = 0;

  // A queued invocation arrives, or leaves without having been chosen (cancelled). REQUIRES: the flow was added.
  virtual void on_arrival(Instant now, FlowId flow, InvocationId invocation) = 0;
  virtual bool cancel(Instant now, FlowId flow, InvocationId invocation) = 0;  // false: it was not queued

  // Chooses the next invocation, removes it from its queue and charges its flow for the dispatch. Empty when no flow is
  // both eligible and placeable. Work-conserving: never empty while an eligible, placeable flow has work.
  struct Choice {
    FlowId flow;
    InvocationId invocation;
  };
  virtual std::optional<Choice> choose(Instant now, const Placeable& placeable) = 0;

  // The chosen invocation ended after `service` of GPU time.
  virtual void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) = 0;

  // The chosen invocation could not be delivered: its charge is taken back, and it is at the head of its queue again.
  virtual void on_requeue(Instant now, FlowId flow, InvocationId invocation) = 0;

  // The chosen invocation ended unserved because its instance never started. Its flow is charged the time it held its
  // token instead of the estimate (a full refund would let a function that cannot start keep others out for ever), and
  // its service estimate stays.
  virtual void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) = 0;

  // Flow states change with time alone (a TTL runs out). The core calls expire() no later than next_expiry().
  virtual std::optional<Instant> next_expiry() const = 0;
  virtual void expire(Instant now) = 0;

  virtual std::size_t queued() const = 0;  // over all flows
  virtual FlowView view(FlowId flow) const = 0;
  virtual Duration global_virtual_time() const = 0;
};

// "mqfq-sticky" or "fcfs". Fails with the list of names for any other.
Result<std::unique_ptr<QueuePolicy>> make_policy(std::string_view name, const PolicyOptions& options);

// The names make_policy knows, the default first.
std::vector<std::string_view> policy_names();

}  // namespace fairlead
