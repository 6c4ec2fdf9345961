#include "decide/pipeline/component_times.h"

#include <algorithm>
#include <cmath>

namespace fairlead {
namespace {

double nanoseconds(Duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// At least 1 ns: a time of 0 would make what follows it endless.
Duration duration(double ns) {
  return std::clamp(Duration(std::llround(std::max(ns, 1.0))), Duration(1), kMaxComponentTime);
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
  if (!std::exchange(its.is_warm, true)) return;
  const double part = 1 / static_cast<double>(std::min(++its.runs, kWindow));
  const double off = nanoseconds(time) - its.mean_ns;
  its.mean_ns += part * off;
  its.variance = (1 - part) * (its.variance + part * off * off);
}

void ComponentTimes::learn(const std::string& content, const std::string& slice, const Seen& seen) {
  Entry& its = entry(content, slice);
  if (!its.told) its.told = seen;
}

std::optional<ComponentTimes::Seen> ComponentTimes::seen(const std::string& content, const std::string& slice) const {
  const auto known = entries_.find({content, slice});
  if (known == entries_.end()) return std::nullopt;
  const Entry& its = known->second;
  if (its.runs < kEnough) return its.told;
  return Seen{.mean = duration(its.mean_ns), .deviation = duration(std::sqrt(its.variance)), .runs = its.runs};
}

Dag ComponentTimes::applied(Dag dag, const std::vector<std::string>& contents) const {
  for (std::size_t c = 0; c < dag.components.size() && c < contents.size(); ++c) {
    Component& component = dag.components[c];
    if (!component.needs_gpu || contents[c].empty()) continue;
    double off = 0;  // logarithm of seen / said, summed
    int known = 0;
    std::vector<std::optional<Seen>> all;
    for (const SliceTime& said : component.times) {
      all.push_back(seen(contents[c], said.slice));
      if (!all.back() || said.mean <= Duration(0)) continue;
      off += std::log(nanoseconds(all.back()->mean) / nanoseconds(said.mean));
      ++known;
    }
    const double factor = known > 0 ? std::exp(off / known) : 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SliceTime& time = component.times[i];
      if (all[i]) {
        time = {.slice = time.slice, .mean = all[i]->mean, .deviation = all[i]->deviation, .seen = all[i]->runs};
      } else if (known > 0) {
        time = {.slice = time.slice, .mean = duration(factor * nanoseconds(time.mean)), .deviation = {}, .seen = 0};
      }
    }
  }
  return dag;
}

}  // namespace fairlead
