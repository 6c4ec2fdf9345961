// A Core and shorthand for its events; each gives the actions that followed, as short lines without times.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "decide/core/core.h"

namespace fairlead::testing {

inline std::unique_ptr<FlowQueue> policy_named(std::string_view name, const PolicyOptions& options = {}) {
  auto policy = make_policy(name, options);
  FL_CHECK(policy, "{}", policy.error().message);
  return std::move(*policy);
}

// "start instance=1 flow=1 gpu=1", "deliver invocation=1 instance=1", "complete invocation=1 success",
// "stop instance=1 evicted", "out instance=1 gib=4", "in instance=1", "room instance=1 request=1 granted".
inline std::string brief(const Action& action) {
  struct Brief {
    std::string operator()(const StartInstance& a) const { return to_string(a); }
    std::string operator()(const SeatChange& a) const { return to_string(a); }
    std::string operator()(const StopInstance& a) const {
      return fmt::format("stop instance={} {}", a.instance.value(), stop_reason_name(a.reason));
    }
    std::string operator()(const Deliver& a) const {
      return fmt::format("deliver invocation={} instance={}", a.invocation.value(), a.instance.value());
    }
    std::string operator()(const Complete& a) const {
      return fmt::format("complete invocation={} {}", a.invocation.value(), outcome_name(a.outcome));
    }
    std::string operator()(const Charge& a) const { return fmt::format("charge invocation={}", a.invocation.value()); }
    std::string operator()(const DeviceChange& a) const { return to_string(a); }
    std::string operator()(const SwapOutMemory& a) const {
      return fmt::format("out instance={} gib={}", a.instance.value(), a.bytes.mib() / 1024);
    }
    std::string operator()(const SwapInMemory& a) const { return fmt::format("in instance={}", a.instance.value()); }
    std::string operator()(const GrantRoom& a) const {
      return fmt::format("room instance={} request={} {}", a.instance.value(), a.request,
                         a.granted ? "granted" : "refused");
    }
  };
  return std::visit(Brief(), action);
}

class CoreTest : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void use(CoreOptions options, std::uint64_t gpus = 1) {
    core_ = std::make_unique<Core>(options, policy_named("mqfq-sticky"));
    for (std::uint64_t i = 1; i <= gpus; ++i) core_->add_gpu({.gpu = GpuId(i)});
  }

  void add(FlowId flow) { core_->add_function({.flow = flow}); }

  // Events. Without a time they happen at the time of the last one.
  Lines arrive(std::uint64_t invocation, FlowId flow, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { EXPECT_TRUE(core_->arrive(now_, InvocationId(invocation), flow, out)); });
  }
  std::string refusal(std::uint64_t invocation, FlowId flow) {
    Actions out;
    const Status status = core_->arrive(now_, InvocationId(invocation), flow, out);
    EXPECT_TRUE(out.empty());
    return status ? "accepted" : status.error().message;
  }
  Lines ready(std::uint64_t instance, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->instance_ready(now_, InstanceId(instance), out); });
  }
  Lines idle(std::uint64_t instance, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->instance_idle(now_, InstanceId(instance), out); });
  }
  Lines gone(std::uint64_t instance, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->instance_gone(now_, InstanceId(instance), out); });
  }
  Lines answered(std::uint64_t invocation, std::optional<Duration> at = {}, std::optional<Duration> gpu_time = {},
                 bool is_error = false) {
    return lines(at, [&](Actions& out) { core_->answered(now_, InvocationId(invocation), is_error, gpu_time, out); });
  }
  Lines answered_early(std::uint64_t invocation, std::optional<Duration> at = {}, Duration gpu_time = {}) {
    return lines(at,
                 [&](Actions& out) { core_->answered_early(now_, InvocationId(invocation), false, gpu_time, out); });
  }
  Lines work_ended(std::uint64_t instance, std::optional<Duration> at = {}, std::optional<Duration> gpu_time = {}) {
    return lines(at, [&](Actions& out) { core_->work_ended(now_, InstanceId(instance), gpu_time, out); });
  }
  Lines report(std::uint64_t instance, const MemoryUse& use, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->memory_report(now_, InstanceId(instance), use, out); });
  }
  Lines moved(std::uint64_t instance, MoveDirection direction, MoveOutcome outcome = MoveOutcome::kDone,
              std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->memory_moved(now_, InstanceId(instance), direction, outcome, out); });
  }
  Lines needs_room(std::uint64_t instance, std::uint64_t request, Bytes bytes, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->needs_room(now_, InstanceId(instance), request, bytes, out); });
  }
  Lines device_used(std::uint64_t gpu, Bytes used) {
    return lines({}, [&](Actions& out) { core_->device_memory_used(now_, GpuId(gpu), used, out); });
  }
  Lines wants_memory(std::uint64_t instance, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->wants_memory(now_, InstanceId(instance), out); });
  }
  Lines cancel(std::uint64_t invocation, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->cancel(now_, InvocationId(invocation), out); });
  }
  Lines limit(FlowId flow, std::optional<std::size_t> limit) {
    return lines({}, [&](Actions& out) { core_->set_max_concurrency(now_, flow, limit, out); });
  }
  Lines update(const FlowSpec& spec, std::optional<Duration> at = {}) {
    return lines(at, [&](Actions& out) { core_->update_function(now_, spec, out); });
  }
  Lines remove(FlowId flow) {
    return lines({}, [&](Actions& out) { core_->remove_function(now_, flow, out); });
  }
  Lines wake(Duration at) {
    return lines(at, [&](Actions& out) { core_->wake(now_, out); });
  }
  Lines set_slots(std::uint64_t gpu, std::size_t slots) {
    return lines({}, [&](Actions& out) { core_->retune(now_, {.slots = {{GpuId(gpu), slots}}}, out); });
  }
  Lines drain_gpu(std::uint64_t gpu) {
    return lines({}, [&](Actions& out) { core_->drain_gpu(now_, GpuId(gpu), out); });
  }
  Lines restore_gpu(std::uint64_t gpu) {
    return lines({}, [&](Actions& out) { core_->restore_gpu(now_, GpuId(gpu), out); });
  }
  Lines drain() {
    return lines({}, [&](Actions& out) { core_->drain(now_, out); });
  }
  Lines shut_down() {
    return lines({}, [&](Actions& out) { core_->shut_down(now_, out); });
  }

  // Of any event.
  template <typename Event>
  Lines lines(std::optional<Duration> at, Event event) {
    if (at) now_ = Instant(*at);
    last_.clear();
    event(last_);
    Lines all;
    for (const Action& action : last_) all.push_back(brief(action));
    return all;
  }

  // A started instance becomes ready, answers at once and waits for the next.
  void run_to_idle(std::uint64_t instance, std::uint64_t invocation, Duration at) {
    ready(instance, at);
    answered(invocation, at);
    idle(instance, at);
  }

  // The last event's actions in full.
  Lines in_full() const {
    Lines all;
    for (const Action& action : last_) all.push_back(to_string(action));
    return all;
  }

  std::unique_ptr<Core> core_;
  Instant now_{};
  Actions last_;
};

}  // namespace fairlead::testing
