#include "decide/pipeline/planner.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "decide/pipeline/fill.h"

namespace fairlead {
namespace {

bool meets(const PlanRequest& request, Duration latency) {
  return request.objective == Duration(0) || latency <= request.objective;
}

double useful(const PlanRequest& request, double rate) {
  return request.wanted_per_s > 0 ? std::min(rate, request.wanted_per_s) : rate;
}

// What a choice is worth, compared in this order, more is better.
struct Worth {
  double first = 0;
  int compute = 0, count = 0;
  Duration latency{0};

  bool beats(const Worth& other) const {
    if (first > other.first * (1 + 1e-12)) return true;
    if (first < other.first * (1 - 1e-12)) return false;
    if (compute != other.compute) return compute < other.compute;
    if (count != other.count) return count < other.count;
    return latency < other.latency;
  }
};

// All ways to give each stage of a partition one slice, cut short where nothing better can follow.
class SingleSearch {
 public:
  enum class By { kRate, kRatePerCompute };

  SingleSearch(const PipelineModel& model, const PlanRequest& request, By by)
      : model_(model), request_(request), by_(by), free_(request.free) {}

  std::optional<PipelinePlan> best() {
    for (std::size_t i = 0; i < model_.partitions().size(); ++i) {
      partition_ = i;
      if (prepare()) choose(0, {}, Duration(0), Duration(0));
    }
    if (!found_) return std::nullopt;
    std::vector<std::vector<std::size_t>> slices;
    for (const std::size_t type : best_choice_) {
      slices.push_back(type == kNone ? std::vector<std::size_t>{} : std::vector{type});
    }
    return evaluate(model_, best_partition_, std::move(slices));
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::vector<StageShape>& stages() const { return model_.partitions()[partition_].stages; }

  // Least compute slices from each stage on; false where a stage fits nowhere.
  bool prepare() {
    const auto& all = stages();
    choice_.assign(all.size(), kNone);
    least_compute_.assign(all.size() + 1, 0);
    for (std::size_t i = all.size(); i-- > 0;) {
      int least = all[i].needs_slice ? -1 : 0;
      for (std::size_t type = 0; all[i].needs_slice && type < free_.size(); ++type) {
        if (!all[i].fits(type) || free_[type] == 0) continue;
        const int compute = model_.types()[type].compute;
        least = least < 0 ? compute : std::min(least, compute);
      }
      if (least < 0) return false;
      least_compute_[i] = least_compute_[i + 1] + least;
    }
    return true;
  }

  double first_of(Duration slowest, int compute) const {
    const double rate = useful(request_, slowest.count() > 0 ? 1 / to_seconds(slowest) : 1e9);
    return by_ == By::kRate ? rate : rate / std::max(1, compute);
  }

  // `passed`: the latency of the ranks before this stage's; `rank`: what its rank takes so far.
  void choose(std::size_t stage, Worth so_far, Duration slowest, Duration passed, Duration rank = Duration(0)) {
    const auto& all = stages();
    if (stage == all.size()) return keep(so_far, slowest, passed + rank);
    if (steps_left_ == 0)
      return;  // stages that are alike on every type have as many ways as types to the power of stages
    --steps_left_;
    if (stage > 0 && all[stage].rank != all[stage - 1].rank) {
      passed += rank;
      rank = Duration(0);
    }
    const StageShape& one = all[stage];
    if (!one.needs_slice) return choose(stage + 1, so_far, slowest, passed, std::max(rank, one.hop + one.host));
    for (std::size_t type = 0; type < free_.size(); ++type) {
      if (!one.fits(type) || free_[type] == 0) continue;
      const Duration now = std::max(rank, one.hop + *one.times[type]), slow = std::max(slowest, *one.times[type]);
      const int compute = so_far.compute + model_.types()[type].compute;
      if (!meets(request_, passed + now)) continue;
      if (found_ && first_of(slow, compute + least_compute_[stage + 1]) < best_.first * (1 - 1e-12)) continue;
      --free_[type];
      choice_[stage] = type;
      choose(stage + 1, {.compute = compute, .count = so_far.count + 1}, slow, passed, now);
      ++free_[type];
    }
    choice_[stage] = kNone;
  }

  void keep(Worth worth, Duration slowest, Duration latency) {
    worth.first = first_of(slowest, worth.compute);
    worth.latency = latency;
    if (found_ && !worth.beats(best_)) return;
    found_ = true;
    best_ = worth;
    best_partition_ = partition_;
    best_choice_ = choice_;
  }

  const PipelineModel& model_;
  const PlanRequest& request_;
  const By by_;
  std::vector<int> free_, least_compute_;
  std::vector<std::size_t> choice_, best_choice_;
  std::uint64_t steps_left_ = request_.steps;
  std::size_t partition_ = 0, best_partition_ = 0;
  bool found_ = false;
  Worth best_;
};

// One slice for each stage, the smallest that fits: nested needs, so what does not fit like this does not fit.
std::optional<std::vector<std::vector<std::size_t>>> first_fit(const Partition& partition, std::vector<int> free) {
  std::vector<std::vector<std::size_t>> slices;
  for (const StageShape& stage : partition.stages) {
    slices.emplace_back();
    for (std::size_t type = 0; stage.needs_slice && slices.back().empty(); ++type) {
      if (type == free.size()) return std::nullopt;
      if (!stage.fits(type) || free[type] == 0) continue;
      --free[type];
      slices.back() = {type};
    }
  }
  return slices;
}

bool is_whole(const Partition& partition) {
  return std::count_if(partition.stages.begin(), partition.stages.end(),
                       [](const StageShape& one) { return one.needs_slice; }) <= 1;
}

class CvPlanner final : public Planner {
 public:
  std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const override {
    for (std::size_t i = 0; i < model.partitions().size(); ++i) {
      auto slices = first_fit(model.partitions()[i], request.free);
      if (!slices) continue;
      PipelinePlan plan = evaluate(model, i, std::move(*slices));
      if (meets(request, plan.latency)) return plan;
    }
    return std::nullopt;
  }
};

class NeedPlanner final : public Planner {
 public:
  std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const override {
    return SingleSearch(model, request, SingleSearch::By::kRatePerCompute).best();
  }
};

class ExactPlanner final : public Planner {
 public:
  std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const override {
    return SingleSearch(model, request, SingleSearch::By::kRate).best();
  }
  PlanAnswer fill(const PipelineModel& model, const PlanRequest& request) const override {
    return fill_exactly(model, request);
  }
};

class ReplicaPlanner final : public Planner {
 public:
  std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const override {
    return SingleSearch(model, request, SingleSearch::By::kRatePerCompute).best();
  }
  PlanAnswer fill(const PipelineModel& model, const PlanRequest& request) const override {
    return fill_with_replicas(model, request);
  }
};

class WholePlanner final : public Planner {
 public:
  explicit WholePlanner(bool cheapest) : cheapest_(cheapest) {}
  std::optional<PipelinePlan> one(const PipelineModel& model, const PlanRequest& request) const override {
    std::optional<PipelinePlan> best;
    for (std::size_t i = 0; i < model.partitions().size(); ++i) {
      if (!is_whole(model.partitions()[i])) continue;
      for (std::size_t type = 0; type < request.free.size(); ++type) {
        std::vector<int> only(request.free.size());
        only[type] = request.free[type];
        auto slices = first_fit(model.partitions()[i], only);
        if (!slices) continue;
        PipelinePlan plan = evaluate(model, i, std::move(*slices));
        if (!meets(request, plan.latency)) continue;
        if (!best || (cheapest_ ? plan.compute < best->compute : plan.rate_per_s > best->rate_per_s)) best = plan;
      }
    }
    return best;
  }

 private:
  const bool cheapest_;
};

struct Named {
  std::string_view name;
  const Planner* planner;
};
const std::vector<Named>& all_planners() {
  static const CvPlanner cv;
  static const NeedPlanner need;
  static const ExactPlanner exact;
  static const ReplicaPlanner replicas;
  static const WholePlanner esg(true), infless(false);
  static const std::vector<Named> all = {
      {"cv", &cv}, {"need", &need}, {"exact", &exact}, {"replicas", &replicas}, {"esg", &esg}, {"infless", &infless}};
  return all;
}

}  // namespace

int PipelinePlan::count() const {
  return std::accumulate(uses.begin(), uses.end(), 0);
}

PipelinePlan evaluate(const PipelineModel& model, std::size_t partition, std::vector<std::vector<std::size_t>> slices) {
  PipelinePlan plan{.partition = partition, .slices = std::move(slices), .rate_per_s = 1e9, .latency = {}, .uses = {}};
  plan.uses.assign(model.types().size(), 0);
  Duration rank{0};
  const auto& stages = model.partitions()[partition].stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0 && stages[i].rank != stages[i - 1].rank) plan.latency += std::exchange(rank, Duration(0));
    Duration slowest = stages[i].host;
    double rate = 0;
    auto& replicas = plan.slices[i];
    FL_CHECK(replicas.empty() != stages[i].needs_slice, "stage {} has {} slices", i, replicas.size());
    std::stable_sort(replicas.begin(), replicas.end(),
                     [&](std::size_t a, std::size_t b) { return stages[i].times[a] < stages[i].times[b]; });
    for (const std::size_t type : replicas) {
      FL_CHECK(stages[i].fits(type), "stage {} does not fit type {}", i, type);
      const Duration time = *stages[i].times[type];
      slowest = time;  // the last one is the slowest
      rate += time.count() > 0 ? 1 / to_seconds(time) : 1e9;
      ++plan.uses[type];
      plan.compute += model.types()[type].compute;
    }
    if (stages[i].needs_slice) plan.rate_per_s = std::min(plan.rate_per_s, rate);
    rank = std::max(rank, stages[i].hop + slowest);
  }
  plan.latency += rank;
  return plan;
}

PlanAnswer Planner::fill(const PipelineModel& model, const PlanRequest& request) const {
  PlanAnswer answer;
  PlanRequest left = request;
  while (request.wanted_per_s <= 0 || answer.rate_per_s < request.wanted_per_s) {
    left.wanted_per_s = request.wanted_per_s > 0 ? request.wanted_per_s - answer.rate_per_s : 0;
    auto plan = one(model, left);
    if (!plan || plan->count() == 0) break;
    for (std::size_t type = 0; type < left.free.size(); ++type) left.free[type] -= plan->uses[type];
    answer.rate_per_s += plan->rate_per_s;
    answer.plans.push_back(std::move(*plan));
  }
  return answer;
}

std::vector<std::string_view> planners() {
  std::vector<std::string_view> names;
  for (const Named& one : all_planners()) names.push_back(one.name);
  return names;
}

Result<const Planner*> planner_named(std::string_view name) {
  for (const Named& one : all_planners()) {
    if (one.name == name) return one.planner;
  }
  return fail(Errc::kInvalidArgument, "planner is \"{}\", it must be one of {}", name, fmt::join(planners(), ", "));
}

std::vector<PlanConsidered> explain(const PipelineModel& model, const PlanRequest& request,
                                    const std::optional<PipelinePlan>& plan) {
  std::vector<PlanConsidered> all;
  for (std::size_t i = 0; i < model.partitions().size(); ++i) {
    const Partition& partition = model.partitions()[i];
    PlanConsidered one{.partition = partition.text(model.dag()), .why = {}, .cv = partition.cv};
    const auto slices = first_fit(partition, request.free);
    const auto nowhere = std::find_if(partition.stages.begin(), partition.stages.end(), [&](const StageShape& stage) {
      const auto fits = [&](std::size_t type) { return request.free[type] > 0 && stage.fits(type); };
      bool any = !stage.needs_slice;
      for (std::size_t type = 0; type < request.free.size(); ++type) any = any || fits(type);
      return !any;
    });
    PlanRequest only = request;
    if (plan && plan->partition == i) {
      one.why = "";
    } else if (nowhere != partition.stages.end()) {
      one.why = fmt::format("stage {} needs {:.0f} MiB and a time on a type that is free",
                            nowhere - partition.stages.begin(), nowhere->memory.mib());
    } else if (!slices) {
      one.why = "more large slices are needed than are free";
    } else {
      const PipelinePlan found = evaluate(model, i, *slices);
      const bool late = !meets(request, found.latency);
      one.why = fmt::format("{:.1f}/s in {:.1f} ms on {} compute slices, smallest first{}", found.rate_per_s,
                            to_ms(found.latency), found.compute, late ? ": later than the objective" : "");
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace fairlead
