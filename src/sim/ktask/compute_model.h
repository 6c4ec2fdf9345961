// The SMs of a modelled GPU. Each request's kernels alone can use a share of the device; as long as the shares of those
// that run together fit, each runs as if alone, and beyond that all slow down alike. One stream is one request at a time.
//
// Example: kernels of 50 ms that use a quarter. One after the other four take 200 ms, together 50 ms, eight together 100 ms.
//
// Time: given. Determinism: integer nanoseconds of work, rounded up at each change.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

class ComputeModel {
 public:
  // `work`: alone on the device. REQUIRES: 0 < share <= 1.
  void start(Instant now, std::uint64_t request, Duration work, double share) {
    advance(now);
    running_.push_back({request, work, share});
    ++epoch_;
  }

  // When one ends, if nothing starts before; changes with epoch().
  std::optional<Instant> next_end() const {
    if (running_.empty()) return std::nullopt;
    return updated_ +
           Duration(static_cast<Duration::rep>(std::ceil(static_cast<double>(next()->left.count()) * slowdown())));
  }
  std::uint64_t epoch() const { return epoch_; }

  // The request that ends at next_end(), which is `now`.
  std::uint64_t finish(Instant now) {
    advance(now);
    const auto ended = next();
    const std::uint64_t request = ended->request;
    running_.erase(ended);
    ++epoch_;
    return request;
  }

  Duration busy() const { return busy_; }

 private:
  struct Running {
    std::uint64_t request;
    Duration left;
    double share;
  };

  double slowdown() const {
    double shares = 0;
    for (const Running& one : running_) shares += one.share;
    return std::max(1.0, shares);
  }

  std::vector<Running>::const_iterator next() const {
    return std::min_element(running_.begin(), running_.end(),
                            [](const Running& a, const Running& b) { return a.left < b.left; });
  }

  void advance(Instant now) {
    const double passed = static_cast<double>((now - updated_).count()) / slowdown();
    for (Running& one : running_) {
      one.left = std::max(Duration(0), one.left - Duration(static_cast<Duration::rep>(passed)));
    }
    if (!running_.empty()) busy_ += now - updated_;
    updated_ = now;
  }

  std::vector<Running> running_;  // in order of their starts
  Instant updated_{};
  Duration busy_{0};
  std::uint64_t epoch_ = 0;
};

}  // namespace fairlead::sim
