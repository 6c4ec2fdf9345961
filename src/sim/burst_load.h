// Load that bursts to 2 to 5 times the usual within a second, as functions of Azure's traces do.
//
// Each function has a usual rate. Bursts come after exponential gaps of 20 s in the mean, reach 2 to 5 times the rate (uniform) within a second, last
// 3 to 10 s and fall within a second. Or ramps: every 200 s the rate rises to 4 times the usual within 60 s, stays for 30 s and falls within 60 s.
// Requests are Poisson.
//
// Threads: not thread-safe. Determinism: the same seed gives the same arrivals on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "base/units.h"
#include "sim/arrivals.h"

namespace fairlead::sim {

enum class LoadShape : std::uint8_t { kBursts, kRamps };

// Of one function.
class BurstLoad {
 public:
  BurstLoad(LoadShape shape, double usual, Duration length, std::uint64_t seed);

  double rate(Instant now) const;  // requests per second
  Instant next(Instant now);       // when the next request after `now` comes

 private:
  struct Rise {
    double begins, is_up, falls, ends;  // s
    double factor;
  };
  void add_bursts(double length_s);

  const double usual_;
  Rng rng_;
  std::vector<Rise> rises_;
};

// Of several, function 0, 1, 2, ... at these usual rates, for `length`. REQUIRES: each rate is above 0.
class BurstSource final : public ArrivalSource {
 public:
  BurstSource(const std::vector<double>& usual_rates, Duration length, std::uint64_t seed);
  std::optional<Arrival> next() override;

 private:
  const Duration length_;
  std::vector<BurstLoad> loads_;
  std::vector<Instant> next_;  // by function
};

// "NAME=RATE", requests per second. kInvalidArgument: it is not, with value and bound.
Result<std::pair<std::string, double>> named_rate(const std::string& text);

}  // namespace fairlead::sim
