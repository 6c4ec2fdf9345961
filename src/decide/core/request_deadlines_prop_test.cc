#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "decide/core/core.h"
#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// A node that does what it is told and keeps what it was told, with clients that wait for a while or for ever.
class Clients {
 public:
  Clients(const CoreOptions& options, std::string_view policy) : core_(options, testing::policy_named(policy)) {
    for (; last_gpu_ < 2;) core_.add_gpu({.gpu = GpuId(++last_gpu_)});
    for (std::uint64_t i = 1; i <= 3; ++i) core_.add_function({.flow = FlowId(i), .timeout = 20s});
  }

  void arrive(FlowId flow, std::optional<Duration> patience) {
    const InvocationId id(++last_);
    const Instant until = patience ? now_ + *patience : Instant::max();
    deadlines_[id] = until;
    tell([&](Actions& out) { RC_ASSERT(core_.arrive(now_, id, flow, out, until).has_value()); });
  }
  void let_pass(Duration time) {
    const Instant until = now_ + time;
    for (auto next = core_.next_wakeup(); next && *next <= until; next = core_.next_wakeup()) {
      now_ = std::max(now_, *next);
      tell([&](Actions& out) { core_.wake(now_, out); });
    }
    now_ = until;
  }
  // Time passes, and nobody wakes the core: the next event comes first.
  void let_pass_unnoticed(Duration time) {
    now_ += time;
    is_late_ = true;
  }
  // What comes next of the n-th instance: it is ready, answers, asks for the next, or (`ends`) goes.
  void step(std::size_t n, bool ends) {
    if (instances_.empty()) return;
    auto& [id, is] = *std::next(instances_.begin(), static_cast<std::ptrdiff_t>(n % instances_.size()));
    const InstanceId instance = id;
    if (ends) {
      instances_.erase(instance);
      return tell([&](Actions& out) { core_.instance_gone(now_, instance, out); });
    }
    switch (std::exchange(is.state, is.state == State::kBusy ? State::kReturning : State::kIdle)) {
      case State::kStarting: return tell([&](Actions& out) { core_.instance_ready(now_, instance, out); });
      case State::kBusy: return tell([&, of = is.runs](Actions& out) { core_.answered(now_, of, false, 10ms, out); });
      case State::kReturning: return tell([&](Actions& out) { core_.instance_idle(now_, instance, out); });
      case State::kIdle: return;
    }
  }
  // The n-th device goes, and another comes.
  void swap_device(std::size_t n) {
    const std::vector<GpuView> there = core_.gpus();
    const GpuId goes = there[n % there.size()].gpu;
    tell([&](Actions& out) { core_.device(now_, DeviceWent{goes}, out); });
    tell([&](Actions& out) { core_.device(now_, DeviceAppeared{{.gpu = GpuId(++last_gpu_)}}, out); });
  }
  bool over() const { return core_.drained(); }
  void check_all_completed() const { RC_ASSERT(completed_.size() == deadlines_.size()); }

 private:
  enum class State { kStarting, kBusy, kReturning, kIdle };
  struct Is {
    State state = State::kStarting;
    InvocationId runs = {};
  };

  template <typename Event>
  void tell(Event event) {
    Actions out;
    event(out);
    for (const Action& action : out) std::visit([this](const auto& a) { act(a); }, action);
    is_late_ = core_.next_wakeup().value_or(Instant::max()) <= now_;
  }
  void act(const StartInstance& a) { instances_[a.instance] = {}; }
  void act(const StopInstance& a) { instances_.erase(a.instance); }
  void act(const Deliver& a) {
    RC_ASSERT(now_ < deadlines_.at(a.invocation));
    RC_ASSERT(a.deadline <= deadlines_.at(a.invocation));
    RC_ASSERT(completed_.count(a.invocation) == 0u);
    instances_.at(a.instance) = {State::kBusy, a.invocation};
  }
  void act(const Complete& a) {
    RC_ASSERT(completed_.insert(a.invocation).second);
    const Instant until = deadlines_.at(a.invocation);
    if (a.outcome == OutcomeKind::kExpired) RC_ASSERT(until <= now_);
    if (!is_late_) RC_ASSERT(now_ <= until);
  }
  template <typename Other>
  void act(const Other&) {}

  Core core_;
  Instant now_{};
  bool is_late_ = false;  // the core should have been woken already
  std::uint64_t last_ = 0, last_gpu_ = 0;
  std::map<InvocationId, Instant> deadlines_;
  std::set<InvocationId> completed_;
  std::map<InstanceId, Is> instances_;
};

RC_GTEST_PROP(RequestDeadlinesProp, EveryCallCompletesOnceAndNoneIsDeliveredAfterItsDeadline, ()) {
  const std::string_view policy = *rc::gen::elementOf(policy_names());
  CoreOptions options{.slots_per_gpu = 1, .instances_per_gpu = 2};
  options.starts_per_gpu = *rc::gen::element<std::size_t>(0, 2);
  Clients clients(options, policy);
  for (int i = 0, steps = *rc::gen::inRange(1, 150); i < steps; ++i) {
    const auto time = std::chrono::milliseconds(*rc::gen::inRange(0, 4000));
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
      case 1: clients.arrive(FlowId(*rc::gen::inRange<std::uint64_t>(1, 4)), time); break;
      case 2: clients.arrive(FlowId(*rc::gen::inRange<std::uint64_t>(1, 4)), std::nullopt); break;
      case 3: clients.let_pass(time); break;
      case 4: clients.let_pass_unnoticed(time); break;
      case 5: clients.swap_device(*rc::gen::inRange<std::size_t>(0, 4)); break;
      default: clients.step(*rc::gen::inRange<std::size_t>(0, 4), *rc::gen::inRange(0, 20) == 0);
    }
  }
  for (int i = 0; i < 2000 && !clients.over(); ++i) {
    clients.step(static_cast<std::size_t>(i), false);
    if (i % 4 == 0) clients.let_pass(100ms);
  }
  RC_ASSERT(clients.over());
  clients.check_all_completed();
}

}  // namespace
}  // namespace fairlead
