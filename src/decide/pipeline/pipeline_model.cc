#include "decide/pipeline/pipeline_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

Duration scaled(Duration time, double part) {
  return part >= 1 ? time : Duration(std::llround(static_cast<double>(time.count()) * part));
}

Duration host_time(const Component& component) {
  return component.times.empty() ? Duration(0) : component.times.front().mean;
}

// Those for which a component runs: of requests, as its own condition says. What comes after it in the same branch has none of its own, so
// counts as always: never less than it is.
double part_of(const Component& component) {
  return component.when ? component.when->part : 1;
}

}  // namespace

Duration HopCosts::of(Bytes bytes) const {
  if (bytes_per_s <= 0) return fixed;
  return fixed + from_seconds(static_cast<double>(bytes.count()) / bytes_per_s);
}

HopCosts paper_hop(Duration fixed) {
  return {.fixed = fixed, .bytes_per_s = 0};
}

std::string Partition::text(const Dag& dag) const {
  std::string all;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) all += stages[i].rank == stages[i - 1].rank ? " | " : " ";
    std::string names;
    for (const std::size_t one : stages[i].components) names += (names.empty() ? "" : ", ") + dag.components[one].name;
    all += stages[i].needs_slice ? "[" + names + "]" : "(" + names + ")";
  }
  return all;
}

PipelineModel::PipelineModel(Dag dag, std::vector<SliceType> types, HopCosts hop)
    : dag_(std::move(dag)), types_(std::move(types)), hop_(hop), groups_(linearise(dag_)) {
  FL_CHECK(!types_.empty() && types_.size() <= kMaxSliceTypes, "{} types", types_.size());
  merge_groups();
  cut_everywhere();
}

std::optional<Duration> PipelineModel::alone(std::size_t type) const {
  Duration all{0};
  for (const Partition& partition : partitions_) {
    const auto slices = std::count_if(partition.stages.begin(), partition.stages.end(),
                                      [](const StageShape& stage) { return stage.needs_slice; });
    if (slices > 1) continue;
    for (const StageShape& stage : partition.stages) {
      if (stage.needs_slice && !stage.fits(type)) return std::nullopt;
      all += stage.needs_slice ? *stage.times[type] : stage.host;
    }
    return all;
  }
  return std::nullopt;
}

std::optional<Duration> PipelineModel::alone_on_least() const {
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if (const auto time = alone(type)) return time;
  }
  return std::nullopt;
}

std::optional<Duration> PipelineModel::time_on(const Component& component, const SliceType& type) const {
  const std::string& name = type.times.empty() ? type.name : type.times;
  for (const SliceTime& time : component.times) {
    if (time.slice == name) return scaled(time.mean, part_of(component));
  }
  return std::nullopt;
}

StageShape PipelineModel::shape(std::vector<std::size_t> components) const {
  StageShape made;
  made.needs_slice = false;
  Bytes beyond{0};
  for (const std::size_t one : components) {
    const Component& component = dag_.components[one];
    if (!component.needs_gpu) {
      made.host += scaled(host_time(component), part_of(component));
      continue;
    }
    made.needs_slice = true;
    made.memory += component.weights;
    beyond = std::max(beyond, component.peak - component.weights);
  }
  made.memory += beyond;
  for (const SliceType& type : types_) {
    std::optional<Duration> all = made.host;
    for (const std::size_t one : components) {
      if (!dag_.components[one].needs_gpu || !all) continue;
      const auto time = time_on(dag_.components[one], type);
      all = time ? std::optional(*all + *time) : std::nullopt;
    }
    if (made.memory > type.memory || !made.needs_slice) all.reset();
    made.times.push_back(all);
  }
  made.reads = bytes_from_outside(components);
  made.components = std::move(components);
  return made;
}

Bytes PipelineModel::bytes_from_outside(const std::vector<std::size_t>& components) const {
  const auto outside = [&](const TensorSource& source) {
    return source.component && std::find(components.begin(), components.end(), *source.component) == components.end();
  };
  std::set<std::pair<std::size_t, std::size_t>> counted;
  Bytes all{0};
  for (const std::size_t one : components) {
    for (const ComponentInput& input : dag_.components[one].inputs) {
      // Of a join one comes; its sources are alike.
      for (const TensorSource& source : input.sources) {
        if (!outside(source)) continue;
        if (counted.insert({*source.component, source.port}).second) all += dag_.port(source).bytes();
        break;
      }
    }
  }
  return all;
}

double PipelineModel::weight_of(const DagGroup& group) const {
  double seconds = 0;
  for (const std::size_t one : group.components) {
    const Component& component = dag_.components[one];
    if (!component.times.empty()) seconds += to_seconds(component.times.front().mean);
  }
  return seconds;
}

void PipelineModel::merge_groups() {
  while (groups_.size() > kMaxGroups) {
    std::size_t least = 0;
    const auto both = [&](std::size_t i) { return weight_of(groups_[i]) + weight_of(groups_[i + 1]); };
    for (std::size_t i = 1; i + 1 < groups_.size(); ++i) {
      if (both(i) < both(least)) least = i;
    }
    DagGroup& first = groups_[least];
    const DagGroup& second = groups_[least + 1];
    first.components.insert(first.components.end(), second.components.begin(), second.components.end());
    first.branches.clear();
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(least) + 1);
  }
}

void PipelineModel::add_peeled(const std::vector<std::size_t>& components, std::vector<StageShape>& stages) const {
  const auto gpu = [&](std::size_t one) { return dag_.components[one].needs_gpu; };
  const auto first = std::find_if(components.begin(), components.end(), gpu);
  const auto last = std::find_if(components.rbegin(), components.rend(), gpu).base();
  const auto add = [&](auto from, auto to) {
    if (from == to) return;
    stages.push_back(shape({from, to}));
    stages.back().rank = stages.size() == 1 ? 0 : stages[stages.size() - 2].rank + 1;
  };
  if (first == components.end()) return add(components.begin(), components.end());
  add(components.begin(), first);
  add(first, last);
  add(last, components.end());
}

void PipelineModel::add_part(std::size_t first, std::size_t last, bool side_by_side,
                             std::vector<StageShape>& stages) const {
  if (side_by_side) {
    const std::size_t rank = stages.empty() ? 0 : stages.back().rank + 1;
    for (const auto& branch : groups_[first].branches) {
      stages.push_back(shape(branch));
      stages.back().rank = rank;
    }
    return;
  }
  std::vector<std::size_t> components;
  for (std::size_t group = first; group <= last; ++group) {
    components.insert(components.end(), groups_[group].components.begin(), groups_[group].components.end());
  }
  add_peeled(components, stages);
}

void PipelineModel::cut_everywhere() {
  const std::size_t count = groups_.size();
  std::set<std::vector<std::pair<std::size_t, std::vector<std::size_t>>>> known;
  const auto keep = [&](Partition partition) {
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> key;
    for (const StageShape& stage : partition.stages) key.emplace_back(stage.rank, stage.components);
    if (!known.insert(std::move(key)).second) return;
    finish(partition);
    partitions_.push_back(std::move(partition));
  };
  for (std::uint32_t cuts = 0; cuts < (1u << (count - 1)); ++cuts) {
    // Each part that is one parallel group alone may also run side by side: all of them do, or none does.
    for (const bool side_by_side : {false, true}) {
      Partition partition;
      for (std::size_t first = 0, at = 0; at < count; ++at) {
        if (at + 1 < count && (cuts >> at & 1) == 0) continue;
        add_part(first, at, side_by_side && first == at && !groups_[at].branches.empty(), partition.stages);
        first = at + 1;
      }
      keep(std::move(partition));
    }
  }
  std::stable_sort(partitions_.begin(), partitions_.end(), [](const Partition& a, const Partition& b) {
    return a.cv != b.cv ? a.cv < b.cv : a.stages.size() < b.stages.size();
  });
}

void PipelineModel::finish(Partition& partition) const {
  for (StageShape& stage : partition.stages) {
    if (stage.rank > 0) stage.hop = hop_.of(stage.reads);
  }
  // The paper's one time per stage: on the smallest type, whether or not it fits there; branches of one rank count as the slowest.
  const auto seconds_on = [&](const StageShape& stage, const SliceType& type) -> std::optional<double> {
    double all = to_seconds(stage.host);
    for (const std::size_t one : stage.components) {
      if (!dag_.components[one].needs_gpu) continue;
      const auto time = time_on(dag_.components[one], type);
      if (!time) return std::nullopt;
      all += to_seconds(*time);
    }
    return all;
  };
  for (const SliceType& type : types_) {
    std::map<std::size_t, double> ranks;
    bool known = true;
    for (const StageShape& stage : partition.stages) {
      if (!stage.needs_slice) continue;
      const auto seconds = seconds_on(stage, type);
      known = known && seconds;
      ranks[stage.rank] = std::max(ranks[stage.rank], seconds.value_or(0));
    }
    if (!known || ranks.empty()) continue;
    double sum = 0, squares = 0;
    for (const auto& [rank, one] : ranks) sum += one;
    const double mean = sum / static_cast<double>(ranks.size());
    for (const auto& [rank, one] : ranks) squares += (one - mean) * (one - mean);
    partition.cv = mean > 0 ? std::sqrt(squares / static_cast<double>(ranks.size())) / mean : 0;
    return;
  }
}

}  // namespace fairlead
