#include "decide/pipeline/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace fairlead {
namespace {

using Counts = std::vector<int>;

double seconds(Duration time) {
  return std::max(1e-9, to_seconds(time));
}

bool is_within(const Counts& uses, const Counts& free) {
  return std::equal(uses.begin(), uses.end(), free.begin(), [](int a, int b) { return a <= b; });
}

Counts minus(Counts from, const Counts& uses, int times = 1) {
  for (std::size_t type = 0; type < from.size(); ++type) from[type] -= times * uses[type];
  return from;
}

void add(PlanAnswer& answer, const PipelinePlan& plan, int times = 1) {
  for (int i = 0; i < times; ++i) answer.plans.push_back(plan);
  answer.rate_per_s += times * plan.rate_per_s;
}

Counts used_by(const PlanAnswer& answer, std::size_t types) {
  Counts all(types);
  for (const PipelinePlan& plan : answer.plans) {
    for (std::size_t type = 0; type < types; ++type) all[type] += plan.uses[type];
  }
  return all;
}

// Every choice of one slice for each stage that meets the objective; of equal multisets the best.
class Columns {
 public:
  Columns(const PipelineModel& model, const PlanRequest& request) : model_(model), request_(request) {}

  std::vector<PipelinePlan> all() {
    for (std::size_t i = 0; i < model_.partitions().size(); ++i) {
      slices_.assign(model_.partitions()[i].stages.size(), {});
      choose(i, 0, Counts(request_.free.size()));
    }
    std::vector<PipelinePlan> kept;
    for (const auto& [uses, plan] : best_) {
      const bool beaten = std::any_of(best_.begin(), best_.end(), [&](const auto& other) {
        return other.first != uses && is_within(other.first, uses) && other.second.rate_per_s >= plan.rate_per_s;
      });
      if (!beaten) kept.push_back(plan);
    }
    return kept;
  }

 private:
  void choose(std::size_t partition, std::size_t stage, Counts uses) {
    const auto& stages = model_.partitions()[partition].stages;
    if (stage == stages.size()) return keep(evaluate(model_, partition, slices_));
    if (!stages[stage].needs_slice) return choose(partition, stage + 1, std::move(uses));
    for (std::size_t type = 0; type < uses.size(); ++type) {
      if (!stages[stage].fits(type) || uses[type] == request_.free[type]) continue;
      slices_[stage] = {type};
      ++uses[type];
      choose(partition, stage + 1, uses);
      --uses[type];
    }
    slices_[stage].clear();
  }

  void keep(PipelinePlan plan) {
    if (request_.objective > Duration(0) && plan.latency > request_.objective) return;
    const auto [at, is_new] = best_.try_emplace(plan.uses, plan);
    if (is_new) return;
    const PipelinePlan& known = at->second;
    if (plan.rate_per_s < known.rate_per_s) return;
    if (plan.rate_per_s == known.rate_per_s && plan.latency >= known.latency) return;
    at->second = std::move(plan);
  }

  const PipelineModel& model_;
  const PlanRequest& request_;
  std::vector<std::vector<std::size_t>> slices_;
  std::map<Counts, PipelinePlan> best_;
};

// Numbers of slices as one index, the first type the fastest.
class StateSpace {
 public:
  explicit StateSpace(Counts free) : free_(std::move(free)) {
    std::size_t stride = 1;
    for (const int count : free_) {
      strides_.push_back(stride);
      stride *= static_cast<std::size_t>(count) + 1;
    }
    size_ = stride;
  }
  std::size_t size() const { return size_; }
  std::size_t index(const Counts& counts) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) at += strides_[i] * static_cast<std::size_t>(counts[i]);
    return at;
  }
  void next(Counts& counts) const {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i]++ < free_[i]) return;
      counts[i] = 0;
    }
  }

 private:
  Counts free_;
  std::vector<std::size_t> strides_;
  std::size_t size_ = 1;
};

struct Knapsack {
  std::vector<PipelinePlan> plans;
  double rate_per_s = 0;
};

// The most that `free` holds; of as much, or of enough where a rate is wanted, what uses the fewest compute slices.
Knapsack solve(const std::vector<PipelinePlan>& all, const Counts& free, double wanted) {
  const StateSpace space(free);
  std::vector<double> rate(space.size());
  std::vector<int> taken(space.size(), -1), compute(space.size());
  std::vector<std::size_t> offsets;
  for (const PipelinePlan& one : all) offsets.push_back(space.index(one.uses));
  Counts counts(free.size());
  std::size_t best = 0;
  const auto worth = [&](std::size_t state) { return wanted > 0 ? std::min(rate[state], wanted) : rate[state]; };
  for (std::size_t state = 0; state < space.size(); ++state, space.next(counts)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_within(all[i].uses, counts)) continue;
      const std::size_t before = state - offsets[i];
      const double value = rate[before] + all[i].rate_per_s;
      const int slices = compute[before] + all[i].compute;
      if (taken[state] >= 0 && (value < rate[state] || (value == rate[state] && slices >= compute[state]))) continue;
      rate[state] = value;
      compute[state] = slices;
      taken[state] = static_cast<int>(i);
    }
    const double gain = worth(state) - worth(best);
    if (gain > 1e-9 * worth(state) || (gain > -1e-9 * worth(state) && compute[state] < compute[best])) best = state;
  }
  Knapsack found{.plans = {}, .rate_per_s = rate[best]};
  for (std::size_t state = best; taken[state] >= 0;) {
    const auto i = static_cast<std::size_t>(taken[state]);
    found.plans.push_back(all[i]);
    state -= offsets[i];
  }
  return found;
}

std::uint64_t states_of(const Counts& free, int parts) {
  std::uint64_t all = 1;
  for (const int count : free) {
    const auto each = static_cast<std::uint64_t>(count / parts) + 1;
    if (all > std::numeric_limits<std::uint64_t>::max() / each / 2) return std::numeric_limits<std::uint64_t>::max();
    all *= each;
  }
  return all;
}

Counts divided(Counts free, int parts) {
  for (int& count : free) count /= parts;
  return free;
}

// Into how many equal parts a node is cut so that `cost` of one is within the steps.
template <typename Cost>
int parts_for(const Counts& free, Cost cost) {
  const int most = std::max(1, *std::max_element(free.begin(), free.end()));
  int parts = 1;
  while (parts < most && !cost(parts)) parts *= 2;
  return parts;
}

// A partition whose stages may have as many slices as they like, of types that its thresholds allow.
class Covering {
 public:
  // `slowest[s]`: the time above which a slice is not taken for stage s.
  Covering(const PipelineModel& model, std::size_t partition, const std::vector<Duration>& slowest, Counts free)
      : model_(model), partition_(partition), free_(std::move(free)) {
    last_ = static_cast<std::size_t>(std::max_element(free_.begin(), free_.end()) - free_.begin());
    others_ = free_;
    others_[last_] = 0;
    const auto& stages = model.partitions()[partition].stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (!stages[i].needs_slice) continue;
      Row row{.stage = i, .rates = std::vector<double>(free_.size())};
      for (std::size_t type = 0; type < free_.size(); ++type) {
        const bool may = stages[i].fits(type) && *stages[i].times[type] <= slowest[i];
        row.rates[type] = may ? 1 / seconds(*stages[i].times[type]) : 0;
      }
      rows_.push_back(std::move(row));
    }
  }

  // The same prices as fluid_bound(), for this partition and these types alone: the rate it cannot pass.
  double most(const std::vector<double>& prices) const {
    double cost = 0, worth = 0;
    for (const Row& row : rows_) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t type = 0; type < prices.size(); ++type) {
        if (row.rates[type] > 0) least = std::min(least, prices[type] / row.rates[type]);
      }
      cost += least;
    }
    for (std::size_t type = 0; type < prices.size(); ++type) worth += prices[type] * free_[type];
    return cost > 0 ? worth / cost : 0;
  }

  std::uint64_t cost() const {
    const auto states = static_cast<std::uint64_t>(StateSpace(others_).size());
    return states * states * rows_.size();
  }

  // Slices for each stage so that each reaches `rate`; empty: there are not enough.
  std::vector<Counts> cover(double rate) const {
    const StateSpace space(others_);
    constexpr int kNever = std::numeric_limits<int>::max() / 2;
    std::vector<int> needed(space.size(), kNever);  // of the last type, by how many of the others are used
    needed[0] = 0;
    std::vector<std::vector<int>> chosen;  // by row and state
    std::vector<std::vector<Counts>> choices;
    for (const Row& row : rows_) {
      choices.push_back(choices_of(row, rate));
      std::vector<int> next(space.size(), kNever), from(space.size(), -1);
      Counts counts(free_.size());
      for (std::size_t state = 0; state < space.size(); ++state, space.next(counts)) {
        if (needed[state] > free_[last_]) continue;
        for (std::size_t i = 0; i < choices.back().size(); ++i) {
          const Counts& choice = choices.back()[i];
          const int last = needed[state] + choice[last_];
          if (last > free_[last_] || !fits_beside(counts, choice)) continue;
          const std::size_t to = state + index_of_others(space, choice);
          if (last >= next[to]) continue;
          next[to] = last;
          from[to] = static_cast<int>(i);
        }
      }
      needed = std::move(next);
      chosen.push_back(std::move(from));
    }
    // The one with the fewest compute slices.
    std::size_t best = space.size();
    int least = kNever;
    Counts counts(free_.size());
    for (std::size_t state = 0; state < space.size(); ++state, space.next(counts)) {
      if (needed[state] > free_[last_]) continue;
      int compute = needed[state] * model_.types()[last_].compute;
      for (std::size_t type = 0; type < counts.size(); ++type) compute += counts[type] * model_.types()[type].compute;
      if (compute >= least) continue;
      least = compute;
      best = state;
    }
    std::vector<Counts> found;
    for (std::size_t row = rows_.size(); best < space.size() && row-- > 0;) {
      found.push_back(choices[row][static_cast<std::size_t>(chosen[row][best])]);
      best -= index_of_others(space, found.back());
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  PipelinePlan plan_of(const std::vector<Counts>& cover) const {
    std::vector<std::vector<std::size_t>> slices(model_.partitions()[partition_].stages.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t type = 0; type < free_.size(); ++type) {
        slices[rows_[row].stage].insert(slices[rows_[row].stage].end(), static_cast<std::size_t>(cover[row][type]),
                                        type);
      }
    }
    return evaluate(model_, partition_, std::move(slices));
  }

 private:
  struct Row {
    std::size_t stage = 0;
    std::vector<double> rates;  // by type; 0: not there
  };

  bool fits_beside(const Counts& counts, const Counts& choice) const {
    for (std::size_t type = 0; type < counts.size(); ++type) {
      if (type != last_ && counts[type] + choice[type] > free_[type]) return false;
    }
    return true;
  }
  std::size_t index_of_others(const StateSpace& space, Counts counts) const {
    counts[last_] = 0;
    return space.index(counts);
  }

  // Numbers of slices that reach the rate, of which none could be left out.
  std::vector<Counts> choices_of(const Row& row, double rate) const {
    std::vector<Counts> all;
    const StateSpace space(others_);
    Counts counts(free_.size());
    for (std::size_t state = 0; state < space.size(); ++state, space.next(counts)) {
      double reached = 0, least = std::numeric_limits<double>::infinity();
      bool useless = false;
      for (std::size_t type = 0; type < counts.size(); ++type) {
        if (counts[type] == 0) continue;
        useless = useless || row.rates[type] <= 0;
        reached += counts[type] * row.rates[type];
        least = std::min(least, row.rates[type]);
      }
      const double missing = rate * (1 - 1e-9) - reached;
      if (useless || -missing >= least) continue;
      Counts choice = counts;
      if (missing > 0) {
        if (row.rates[last_] <= 0) continue;
        const double more = std::ceil(missing / row.rates[last_]);
        if (more > free_[last_]) continue;
        choice[last_] = static_cast<int>(more);
      }
      all.push_back(std::move(choice));
    }
    return all;
  }

  const PipelineModel& model_;
  const std::size_t partition_;
  const Counts free_;
  Counts others_;
  std::size_t last_ = 0;
  std::vector<Row> rows_;
};

// Prices of the types, of which the bound is the least that a descent by coordinates finds. They stay as they began where nothing is better.
std::vector<double> prices_of(const PipelineModel& model, const Counts& free, double& bound) {
  const auto bound_at = [&](const std::vector<double>& prices) {
    double cheapest = std::numeric_limits<double>::infinity(), worth = 0;
    for (const Partition& partition : model.partitions()) {
      double cost = 0;
      for (const StageShape& stage : partition.stages) {
        if (!stage.needs_slice) continue;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t type = 0; type < free.size(); ++type) {
          if (free[type] > 0 && stage.fits(type)) least = std::min(least, prices[type] * seconds(*stage.times[type]));
        }
        cost += least;
      }
      cheapest = std::min(cheapest, cost);
    }
    for (std::size_t type = 0; type < free.size(); ++type) worth += prices[type] * free[type];
    return cheapest < std::numeric_limits<double>::infinity() && cheapest > 0 ? worth / cheapest : 0;
  };
  std::vector<double> prices;
  for (const SliceType& type : model.types()) prices.push_back(type.compute);
  bound = bound_at(prices);
  for (double factor = 2; factor > 1.002; factor = std::sqrt(factor)) {
    for (int round = 0; round < 4; ++round) {
      for (double& price : prices) {
        const double before = price;
        for (const double tried : {before * factor, before / factor}) {
          price = tried;
          const double found = bound_at(prices);
          if (found < bound * (1 - 1e-12)) {
            bound = found;
            break;
          }
          price = before;
        }
      }
    }
  }
  return prices;
}

// For each stage the slowest slice that may be taken, such that a request that meets them all is in time: those of which no other allows more.
std::vector<std::vector<Duration>> thresholds_of(const PipelineModel& model, std::size_t partition,
                                                 Duration objective) {
  const auto& stages = model.partitions()[partition].stages;
  std::vector<std::vector<Duration>> all = {{}};
  for (const StageShape& stage : stages) {
    std::vector<std::vector<Duration>> longer;
    for (const auto& before : all) {
      std::vector<Duration> options;
      if (!stage.needs_slice) options = {stage.host};
      for (const auto& time : stage.times) {
        if (time) options.push_back(*time);
      }
      if (objective == Duration(0) && !options.empty()) options = {*std::max_element(options.begin(), options.end())};
      for (const Duration one : options) {
        longer.push_back(before);
        longer.back().push_back(one);
      }
    }
    all = std::move(longer);
    if (all.size() > 4096) all.resize(4096);
  }
  const auto latency = [&](const std::vector<Duration>& times) {
    Duration sum{0}, rank{0};
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (i > 0 && stages[i].rank != stages[i - 1].rank) sum += std::exchange(rank, Duration(0));
      rank = std::max(rank, stages[i].hop + times[i]);
    }
    return sum + rank;
  };
  if (objective > Duration(0)) std::erase_if(all, [&](const auto& one) { return latency(one) > objective; });
  std::vector<std::vector<Duration>> kept;
  for (const auto& one : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const auto& other) {
      return other != one &&
             std::equal(one.begin(), one.end(), other.begin(), [](Duration a, Duration b) { return a <= b; });
    });
    if (!beaten) kept.push_back(one);
  }
  return kept;
}

// The best pipeline with replicas on `free`, if it passes `least`.
class ReplicaSearch {
 public:
  ReplicaSearch(const PipelineModel& model, const PlanRequest& request, std::vector<double> prices)
      : model_(model), request_(request), prices_(std::move(prices)), steps_(request.steps) {}

  std::optional<PipelinePlan> best(const Counts& free, double least) {
    best_.reset();
    least_ = least;
    for (std::size_t i = 0; i < model_.partitions().size(); ++i) {
      for (const auto& slowest : thresholds_of(model_, i, request_.objective)) try_one(i, slowest, free);
    }
    return best_;
  }
  bool is_cut_short() const { return is_cut_short_; }

 private:
  void try_one(std::size_t partition, const std::vector<Duration>& slowest, const Counts& free) {
    const Covering covering(model_, partition, slowest, free);
    double low = least_, high = covering.most(prices_);
    if (request_.wanted_per_s > 0) high = std::min(high, request_.wanted_per_s);
    for (int round = 0; round < 14 && high > low * 1.002; ++round) {
      if (steps_ < covering.cost()) {
        is_cut_short_ = true;
        return;
      }
      steps_ -= covering.cost();
      // First whether this partition is any better; then how much.
      const double rate = round == 0 ? low * 1.002 + 1e-9 : (low + high) / 2;
      const auto cover = covering.cover(rate);
      if (cover.empty()) {
        if (round == 0) return;
        high = rate;
        continue;
      }
      best_ = covering.plan_of(cover);
      low = least_ = std::max(rate, best_->rate_per_s);
    }
  }

  const PipelineModel& model_;
  const PlanRequest& request_;
  const std::vector<double> prices_;
  std::uint64_t steps_;
  double least_ = 0;
  bool is_cut_short_ = false;
  std::optional<PipelinePlan> best_;
};

double reached(const PlanRequest& request, double rate) {
  return request.wanted_per_s > 0 ? std::min(rate, request.wanted_per_s) : rate;
}

}  // namespace

double fluid_bound(const PipelineModel& model, const std::vector<int>& free) {
  double bound = 0;
  prices_of(model, free, bound);
  return bound;
}

std::vector<PipelinePlan> columns(const PipelineModel& model, const PlanRequest& request) {
  return Columns(model, request).all();
}

PlanAnswer fill_exactly(const PipelineModel& model, const PlanRequest& request) {
  PlanAnswer answer;
  answer.bound_per_s = fluid_bound(model, request.free);
  const std::vector<PipelinePlan> all = columns(model, request);
  if (all.empty()) {
    answer.is_exact = true;
    return answer;
  }
  const int parts = parts_for(request.free, [&](int tried) {
    const std::uint64_t states = states_of(request.free, tried);
    return states <= request.steps / all.size();
  });
  const Knapsack each = solve(all, divided(request.free, parts), request.wanted_per_s / parts);
  for (int i = 0; i < parts; ++i) {
    for (const PipelinePlan& plan : each.plans) add(answer, plan);
  }
  answer.is_exact = parts == 1;
  if (parts == 1) return answer;
  PlanRequest rest = request;
  rest.free = minus(request.free, used_by(answer, request.free.size()));
  rest.wanted_per_s = request.wanted_per_s > 0 ? std::max(1e-9, request.wanted_per_s - answer.rate_per_s) : 0;
  const PlanAnswer more = (*planner_named("need"))->fill(model, rest);
  if (request.wanted_per_s <= 0 || answer.rate_per_s < request.wanted_per_s) {
    for (const PipelinePlan& plan : more.plans) add(answer, plan);
  }
  return answer;
}

PlanAnswer fill_with_replicas(const PipelineModel& model, const PlanRequest& request) {
  PlanRequest single = request;
  single.steps = request.steps / 2;
  PlanAnswer best = fill_exactly(model, single);
  if (best.rate_per_s >= best.bound_per_s * (1 - 1e-9)) return best;
  if (request.wanted_per_s > 0 && best.rate_per_s >= request.wanted_per_s) return best;
  double bound = 0;
  ReplicaSearch search(model, request, prices_of(model, request.free, bound));
  const auto finish = [&](PlanAnswer tried, const Counts& left) {
    PlanRequest rest = single;
    rest.free = left;
    rest.steps = request.steps / 8;
    if (request.wanted_per_s > 0) rest.wanted_per_s = std::max(1e-9, request.wanted_per_s - tried.rate_per_s);
    const PlanAnswer more = fill_exactly(model, rest);
    for (const PipelinePlan& plan : more.plans) add(tried, plan);
    tried.bound_per_s = bound;
    if (reached(request, tried.rate_per_s) > reached(request, best.rate_per_s) * (1 + 1e-9)) best = std::move(tried);
  };
  // How many slices of the one type that holds the whole function have it whole: none, half of them, all.
  std::vector<PipelinePlan> whole;
  for (const PipelinePlan& one : columns(model, request)) {
    if (one.count() == 1) whole.push_back(one);
  }
  const auto with = [&](const PipelinePlan* alone, int times) {
    PlanAnswer tried;
    Counts left = request.free;
    if (alone != nullptr) {
      add(tried, *alone, times);
      left = minus(left, alone->uses, times);
    }
    while (auto plan = search.best(left, 0)) {
      left = minus(left, plan->uses);
      add(tried, *plan);
    }
    finish(std::move(tried), left);
  };
  with(nullptr, 0);
  for (const PipelinePlan& one : whole) {
    int count = 0;
    for (std::size_t type = 0; type < one.uses.size(); ++type) count += one.uses[type] * request.free[type];
    with(&one, count);
    if (count > 1) with(&one, count / 2);
  }
  best.is_exact = best.rate_per_s >= bound * (1 - 1e-6);
  return best;
}

}  // namespace fairlead
