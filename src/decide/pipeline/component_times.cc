#include "decide/pipeline/component_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fairlead {
namespace {

double nanoseconds(Duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// At least 1 ns: a time of 0 would make what follows it endless.
Duration duration(double ns) {
  const double most = nanoseconds(kMaxComponentTime);
  return Duration(std::llround(std::clamp(ns, 1.0, most)));
}

}  // namespace

ComponentTimes::Entry& ComponentTimes::entry(const std::string& content, const std::string& slice) {
  const std::pair key(content, slice);
  if (entries_.size() >= kMost && !entries_.contains(key)) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  Entry& its = entries_[key];
  its.used = ++uses_;
  return its;
}

void ComponentTimes::ran(const std::string& content, const std::string& slice, Duration time) {
  Entry& its = entry(content, slice);
  const double part = 1 / static_cast<double>(std::min(++its.runs, kWindow));
  const double off = nanoseconds(time) - its.mean_ns;
  its.mean_ns += part * off;
  its.variance = (1 - part) * (its.variance + part * off * off);
}

void ComponentTimes::learn(const std::string& content, const std::string& slice, const Seen& seen) {
  Entry& its = entry(content, slice);
  its.told = {.mean = duration(nanoseconds(seen.mean)), .deviation = seen.deviation, .runs = seen.runs};
}

std::optional<ComponentTimes::Seen> ComponentTimes::seen(const std::string& content, const std::string& slice) const {
  const auto known = entries_.find({content, slice});
  if (known == entries_.end()) return std::nullopt;
  const Entry& its = known->second;
  if (its.runs < kEnough) return its.told;
  return Seen{.mean = duration(its.mean_ns), .deviation = duration(std::sqrt(its.variance)), .runs = its.runs};
}

std::optional<double> ComponentTimes::longer_than(const std::string& content,
                                                  const std::vector<SliceTime>& said) const {
  double told = 0, seen_here = 0;
  int count_told = 0, count_here = 0;
  for (const SliceTime& time : said) {
    const auto known = entries_.find({content, time.slice});
    const std::optional<Seen> its = seen(content, time.slice);
    if (!its || time.mean <= Duration(0)) continue;
    const double longer = std::log(nanoseconds(its->mean) / nanoseconds(time.mean));
    const bool is_here = known->second.runs >= kEnough;
    (is_here ? seen_here : told) += longer;
    ++(is_here ? count_here : count_told);
  }
  if (count_here > 0) return seen_here / count_here;
  return count_told > 0 ? std::optional(told / count_told) : std::nullopt;
}

Dag ComponentTimes::applied(Dag dag, const std::vector<ComponentKind>& kinds) const {
  std::vector<std::optional<double>> longer(dag.components.size());
  double unsaid = 0;
  int count = 0;
  for (std::size_t c = 0; c < dag.components.size() && c < kinds.size(); ++c) {
    if (!dag.components[c].needs_gpu || kinds[c].content.empty()) continue;
    longer[c] = longer_than(kinds[c].content, dag.components[c].times);
    if (!longer[c] || kinds[c].is_said) continue;
    unsaid += *longer[c];
    ++count;
  }
  for (std::size_t c = 0; c < dag.components.size() && c < kinds.size(); ++c) {
    if (!dag.components[c].needs_gpu || kinds[c].content.empty()) continue;
    if (!longer[c] && !kinds[c].is_said && count > 0) longer[c] = unsaid / count;
    if (!longer[c]) continue;
    for (SliceTime& time : dag.components[c].times) {
      const std::optional<Seen> its = seen(kinds[c].content, time.slice);
      const Duration corrected = duration(std::exp(*longer[c]) * nanoseconds(time.mean));
      time = {.slice = time.slice,
              .mean = its ? its->mean : corrected,
              .deviation = its ? its->deviation : Duration(0),
              .seen = its ? its->runs : 0};
    }
  }
  return dag;
}

}  // namespace fairlead
