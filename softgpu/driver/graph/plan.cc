#include "softgpu/driver/graph/plan.h"

#include <algorithm>
#include <optional>

namespace softgpu::graph {
namespace {

class Planner {
 public:
  explicit Planner(const std::vector<PlanStep>& steps) : steps_(steps), dependents_(steps.size()) {
    for (const PlanStep& step : steps) {
      for (const std::size_t before : step.after) ++dependents_[before];
    }
    plan_.segment_of.resize(steps.size());
  }

  Plan make() {
    for (std::size_t step = 0; step < steps_.size(); ++step) place(step);
    plan_.lanes = std::max<std::size_t>(1, lanes_.size());
    return std::move(plan_);
  }

 private:
  struct Lane {
    std::size_t last_step = 0;
    std::size_t last_segment = 0;
    bool open = true;  // the last segment takes more steps
  };

  void place(std::size_t index) {
    const PlanStep& step = steps_[index];
    const std::size_t lane = choose_lane(step);
    std::vector<std::size_t> after = foreign_segments(step, lane);
    const bool fresh = lane == lanes_.size();
    if (fresh) lanes_.emplace_back();
    for (const std::size_t segment : after) close(segment);
    Lane& own = lanes_[lane];
    if (fresh || !own.open || step.begins_segment || !after.empty()) {
      plan_.segments.push_back({lane, {}, std::move(after)});
      own.last_segment = plan_.segments.size() - 1;
    }
    plan_.segments[own.last_segment].steps.push_back(index);
    plan_.segment_of[index] = own.last_segment;
    own.last_step = index;
    own.open = !step.ends_segment && dependents_[index] <= 1;
  }

  // The lane whose end this step continues; else a new lane, or the one that has had least to do.
  std::size_t choose_lane(const PlanStep& step) const {
    for (const std::size_t before : step.after) {
      const std::size_t lane = plan_.segments[plan_.segment_of[before]].lane;
      if (lanes_[lane].last_step == before) return lane;
    }
    if (lanes_.size() < kMaxLanes) return lanes_.size();
    const auto oldest = std::min_element(lanes_.begin(), lanes_.end(),
                                         [](const Lane& a, const Lane& b) { return a.last_step < b.last_step; });
    return static_cast<std::size_t>(oldest - lanes_.begin());
  }

  // Nothing is added to a segment that another lane waits for: it would wait for that too.
  void close(std::size_t segment) {
    Lane& lane = lanes_[plan_.segments[segment].lane];
    if (lane.last_segment == segment) lane.open = false;
  }

  std::vector<std::size_t> foreign_segments(const PlanStep& step, std::size_t lane) const {
    std::vector<std::size_t> segments;
    for (const std::size_t before : step.after) {
      const std::size_t segment = plan_.segment_of[before];
      if (plan_.segments[segment].lane != lane) segments.push_back(segment);
    }
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    return segments;
  }

  const std::vector<PlanStep>& steps_;
  std::vector<std::size_t> dependents_;
  std::vector<Lane> lanes_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const std::vector<PlanStep>& steps) {
  return Planner(steps).make();
}

}  // namespace softgpu::graph
