// Random pipelines under random orders of reports, failures, losses, deadlines and time: each request is answered exactly once, no slot has two
// owners, no replica two runs, and everything comes to its end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "decide/pipeline/dag_testing.h"
#include "decide/pipeline/request_flow.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

template <typename T>
T up_to(T most) {
  return *rc::gen::inRange<T>(0, most);
}

Dag some_dag() {
  switch (up_to(3)) {
    case 0: return three_in_a_row();
    case 1: return one_with_a_branch();
    default: return one_side_by_side();
  }
}

std::vector<FlowStage> some_stages(const Dag& dag) {
  std::vector<FlowStage> stages;
  for (const std::size_t one : topological_order(dag)) {
    if (stages.empty() || up_to(2) == 0) stages.push_back({{}, 1 + up_to<std::size_t>(3)});
    stages.back().components.push_back(one);
  }
  return stages;
}

class World {
 public:
  World()
      : flow_([] {
          Dag dag = some_dag();
          auto stages = some_stages(dag);
          return *RequestFlow::make(
              std::move(dag), std::move(stages),
              {.ring_depth = 1 + up_to<std::size_t>(3), .retries = up_to(3u), .stage_limit = 50ms});
        }()) {}

  void step() {
    switch (up_to(8)) {
      case 0:
      case 1:
        if (flow_.has_room()) {
          offered_.insert(++last_);
          const auto deadline = up_to(3) == 0 ? std::optional(now_ + Duration(1ms) * up_to(40)) : std::nullopt;
          tell([&](auto& out) { flow_.offer(now_, PipelineRequestId(last_), deadline, out); });
        }
        return;
      case 2: {
        if (running_.empty()) return;
        auto at = running_.begin();
        std::advance(at, up_to(static_cast<int>(running_.size())));
        return lose(at->first);
      }
      case 3: now_ += Duration(1ms) * up_to(30); return tell([&](auto& out) { flow_.wake(now_, out); });
      case 4:
        if (last_ > 0) tell([&](auto& out) { flow_.cancel(now_, PipelineRequestId(1 + up_to(last_)), out); });
        return;
      case 5: return take_some();
      case 6: return come_back();
      default: return end_one(up_to(10) == 0);
    }
  }

  void finish() {
    for (int left = 10000; left > 0 && !flow_.is_empty(); --left) {
      come_back();
      take_some();
      end_one(false);
    }
    RC_ASSERT(flow_.is_empty());
    RC_ASSERT(answered_ == offered_);
    for (std::size_t stage = 0; stage < flow_.stages(); ++stage) RC_ASSERT(flow_.slots_used(stage) == 0u);
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // stage, replica

  template <typename Call>
  void tell(Call call) {
    RequestFlow::Actions out;
    call(out);
    for (const RequestFlow::Action& action : out) {
      if (const auto* run = std::get_if<RequestFlow::Run>(&action)) {
        const Place place{run->stage, run->replica};
        RC_ASSERT(!running_.contains(place) && !gone_.contains(place) && !run->components.empty());
        for (const auto& [other, one] : running_) RC_ASSERT(!(one.writes == run->writes));
        for (const auto& [slots, one] : untaken_) {
          for (const RingSlot& slot : one) RC_ASSERT(!(slot == run->writes));
        }
        running_[place] = *run;
      } else if (const auto* answer = std::get_if<RequestFlow::Answer>(&action)) {
        RC_ASSERT(answered_.insert(answer->request.value()).second);
        if (answer->end == FlowEnd::kAnswered) untaken_[answer->request] = answer->outputs;
      } else {
        const auto& kill = std::get<RequestFlow::Kill>(action);
        killed_.insert({kill.stage, kill.replica});
      }
    }
    const auto killed = std::exchange(killed_, {});
    for (const Place& place : killed) lose(place);
  }

  void lose(Place place) {
    running_.erase(place);
    gone_.insert(place);
    tell([&](auto& out) { flow_.lost(now_, place.first, place.second, "lost", out); });
  }

  void come_back() {
    const auto gone = std::exchange(gone_, {});
    for (const Place& place : gone) tell([&](auto& out) { flow_.ready(now_, place.first, place.second, out); });
  }

  void take_some() {
    const auto untaken = std::exchange(untaken_, {});
    for (const auto& [id, slots] : untaken) tell([&, id = id](auto& out) { flow_.taken(now_, id, out); });
  }

  void end_one(bool badly) {
    if (running_.empty()) return;
    auto at = running_.begin();
    std::advance(at, up_to(static_cast<int>(running_.size())));
    const RequestFlow::Run run = at->second;
    running_.erase(at);
    if (badly) return tell([&](auto& out) { flow_.failed(now_, run.stage, run.replica, run.tried, "failed", out); });
    tell([&](auto& out) { flow_.done(now_, run.stage, run.replica, run.tried, report_of(run), out); });
  }

  // What an honest stage says.
  StageReport report_of(const RequestFlow::Run& run) {
    StageReport report;
    for (const std::size_t one : run.components) {
      const Component& component = flow_.dag().components[one];
      if (component.when) {
        const auto known = std::find_if(report.scalars.begin(), report.scalars.end(),
                                        [&](const auto& scalar) { return scalar.first == component.when->value; });
        if (known != report.scalars.end() && known->second != component.when->is) continue;
      }
      report.ran.push_back(one);
      for (std::size_t port = 0; port < component.outputs.size(); ++port) {
        if (component.outputs[port].name == "is_low") report.scalars.push_back({{one, port}, up_to(2) == 0});
      }
    }
    return report;
  }

  RequestFlow flow_;
  Instant now_{};
  std::uint64_t last_ = 0;
  std::set<std::uint64_t> offered_, answered_;
  std::map<Place, RequestFlow::Run> running_;
  std::set<Place> gone_, killed_;
  std::map<PipelineRequestId, std::vector<RingSlot>> untaken_;
};

RC_GTEST_PROP(RequestFlow, EveryRequestIsAnsweredOnceAndNothingIsLeft, ()) {
  World world;
  for (int left = up_to(200); left > 0; --left) world.step();
  world.finish();
}

}  // namespace
}  // namespace fairlead
