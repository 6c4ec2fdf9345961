#include "decide/scaling/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fairlead {
namespace {

constexpr double kRounding = 1e-9;
constexpr std::size_t kMostRejected = 4;

InstanceSize at(const ThroughputModel& model, int width, int quota) {
  return {width, quota, model.rate_per_s(width, quota), model.execution(width)};
}

double efficiency(const InstanceSize& size) {
  return size.rate_per_s / size.area();
}

std::vector<InstanceSize> usable(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms,
                                 SizeChoice& choice) {
  std::vector<InstanceSize> kept;
  for (const InstanceSize& size : sizes) {
    std::string why = why_unusable(size, terms);
    if (why.empty()) {
      kept.push_back(size);
    } else if (choice.rejected.size() < kMostRejected) {
      choice.rejected.push_back(std::move(why));
    }
  }
  return kept;
}

void finish(SizeChoice& choice, const FunctionTerms& terms) {
  choice.devices = devices_of(choice.sizes, terms);
  choice.rate_per_s = 0;
  for (const SizedCount& one : choice.sizes) choice.rate_per_s += one.instances * one.size.rate_per_s;
}

// n of the most efficient size, then the smallest that covers the rest. `larger`: which of two quotas wins a tie.
SizeChoice by_efficiency(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms,
                         bool larger, SizeChoice choice) {
  if (sizes.empty() || rate_per_s <= 0) return choice;
  const auto better = [larger](const InstanceSize& a, const InstanceSize& b) {
    const double difference = efficiency(a) - efficiency(b);
    if (std::abs(difference) > kRounding * efficiency(b)) return difference < 0;
    return larger ? a.quota_percent < b.quota_percent : a.quota_percent > b.quota_percent;
  };
  const InstanceSize best = *std::max_element(sizes.begin(), sizes.end(), better);
  const int whole = static_cast<int>(rate_per_s / best.rate_per_s + kRounding);
  if (whole > 0) choice.sizes.push_back({best, whole});
  const double rest = rate_per_s - whole * best.rate_per_s;
  if (rest > kRounding * rate_per_s) {
    const InstanceSize* least = nullptr;
    for (const InstanceSize& size : sizes) {
      if (size.rate_per_s < rest) continue;
      if (least == nullptr || std::tuple(size.rate_per_s, size.area()) < std::tuple(least->rate_per_s, least->area())) {
        least = &size;
      }
    }
    choice.sizes.push_back({least == nullptr ? best : *least, 1});
  }
  finish(choice, terms);
  return choice;
}

// For every throughput that may be left: the cheapest size that covers it, by area and by what else it takes.
class Cheapest {
 public:
  Cheapest(std::vector<InstanceSize> sizes, const FunctionTerms& terms) : terms_(terms), sizes_(std::move(sizes)) {
    std::sort(sizes_.begin(), sizes_.end(), [](const InstanceSize& a, const InstanceSize& b) {
      return std::tuple(a.area(), -a.quota_percent, -a.rate_per_s) <
             std::tuple(b.area(), -b.quota_percent, -b.rate_per_s);
    });
    // A size that has less throughput than one with as little area is never better.
    std::vector<InstanceSize> front;
    for (const InstanceSize& size : sizes_) {
      if (front.empty() || size.rate_per_s > front.back().rate_per_s * (1 + kRounding)) front.push_back(size);
    }
    sizes_ = std::move(front);
  }

  const std::vector<InstanceSize>& sizes() const { return sizes_; }

  // The least area that covers `rest`; nothing where one is not enough.
  const InstanceSize* covers(double rest) const {
    const auto found = std::partition_point(sizes_.begin(), sizes_.end(), [&](const InstanceSize& size) {
      return size.rate_per_s < rest * (1 - kRounding);
    });
    return found == sizes_.end() ? nullptr : &*found;
  }

  void consider(std::vector<SizedCount> counts, SizeChoice& best) const {
    const double devices = devices_of(counts, terms_);
    if (!best.sizes.empty() && devices > best.devices * (1 - 1e-6)) return;
    best.sizes = std::move(counts);
    best.devices = devices;
  }

 private:
  const FunctionTerms& terms_;
  std::vector<InstanceSize> sizes_;
};

}  // namespace

double FunctionTerms::memory_part() const {
  double part = 0;
  if (device_memory > Bytes(0)) part = static_cast<double>(memory.count()) / static_cast<double>(device_memory.count());
  if (device_clients > 0) part = std::max(part, 1.0 / device_clients);
  return part;
}

double FunctionTerms::cost(const InstanceSize& size) const {
  return std::max(size.area(), memory_part());
}

std::vector<InstanceSize> coarse_grid(const ThroughputModel& model) {
  std::vector<InstanceSize> sizes;
  for (const int width : {6, 12, 24, 50, 60, 80, 100}) {
    for (int quota = 20; quota <= 100; quota += 20) sizes.push_back(at(model, width, quota));
  }
  return sizes;
}

std::vector<InstanceSize> fine_grid(const ThroughputModel& model) {
  std::vector<InstanceSize> sizes;
  for (int width = 4; width <= 100; width += 4) {
    for (int quota = 5; quota <= 100; quota += 5) sizes.push_back(at(model, width, quota));
  }
  return sizes;
}

std::string why_unusable(const InstanceSize& size, const FunctionTerms& terms) {
  if (terms.objective <= Duration(0)) return {};
  const double wait_ms = (1 - size.quota_percent / 100.0) * to_ms(terms.window);
  const double worst_ms = to_ms(size.execution) + wait_ms;
  if (worst_ms <= to_ms(terms.objective) + 1e-6) return {};
  return fmt::format(
      "{} % of the SMs x {} % of the time: {:.0f} ms to run and up to {:.0f} ms to wait, the objective is {:.0f} ms",
      size.width_percent, size.quota_percent, to_ms(size.execution), wait_ms, to_ms(terms.objective));
}

double devices_of(const std::vector<SizedCount>& counts, const FunctionTerms& terms) {
  double area = 0, parts = 0;
  for (const SizedCount& one : counts) {
    area += one.instances * one.size.area();
    parts += one.instances * terms.memory_part();
  }
  return std::max(area, parts);
}

SizeChoice printed_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms) {
  return by_efficiency(sizes, rate_per_s, terms, false, {});
}

SizeChoice filtered_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms) {
  SizeChoice choice;
  const std::vector<InstanceSize> kept = usable(sizes, terms, choice);
  return by_efficiency(kept, rate_per_s, terms, true, std::move(choice));
}

SizeChoice cheapest_choice(const std::vector<InstanceSize>& sizes, double rate_per_s, const FunctionTerms& terms) {
  SizeChoice best;
  const Cheapest all(usable(sizes, terms, best), terms);
  if (rate_per_s <= 0) return best;
  for (const InstanceSize& size : all.sizes()) {
    const int most = static_cast<int>(std::ceil(rate_per_s / size.rate_per_s - kRounding));
    for (int n = most; n >= std::max(0, most - 2); --n) {
      const double rest = rate_per_s - n * size.rate_per_s;
      std::vector<SizedCount> counts;
      if (n > 0) counts.push_back({size, n});
      if (rest <= kRounding * rate_per_s) {
        all.consider(std::move(counts), best);
        continue;
      }
      if (const InstanceSize* one = all.covers(rest)) {
        counts.push_back({*one, 1});
        all.consider(counts, best);
        counts.pop_back();
      }
      for (const InstanceSize& first : all.sizes()) {
        if (first.rate_per_s >= rest) break;
        const InstanceSize* second = all.covers(rest - first.rate_per_s);
        if (second == nullptr) continue;
        counts.push_back({first, 1});
        counts.push_back({*second, 1});
        all.consider(counts, best);
        counts.resize(counts.size() - 2);
      }
    }
  }
  finish(best, terms);
  return best;
}

}  // namespace fairlead
