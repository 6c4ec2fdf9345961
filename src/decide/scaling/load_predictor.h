// How many requests per second will come: four ways, one interface.
//
//   last-window   what came in the last whole second
//   ewma          a moving average over about a second
//   holt          level and trend (Holt 1957): a rise is followed upwards before it is over
//   histogram     how long the gaps between calls are (Shahrad et al. 2020): for functions that are called seldom
//
// Example: 100 requests per second, and from second 10 on 20 more every second. At second 20 ewma says about 280, holt, asked for a second
// ahead, about 320; 320 is right.
//
// Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class LoadPredictor {
 public:
  virtual ~LoadPredictor() = default;
  // `arrived` came since the last call. REQUIRES: `now` does not go back.
  virtual void observe(Instant now, std::uint64_t arrived) = 0;
  // Requests per second, in the mean from `now` to `now + ahead`; 0 before anything was observed.
  virtual double rate(Instant now, Duration ahead) const = 0;
};

std::vector<std::string_view> load_predictors();
// kInvalidArgument lists the names.
Result<std::unique_ptr<LoadPredictor>> make_load_predictor(std::string_view name);

}  // namespace fairlead
