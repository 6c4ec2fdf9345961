// What a monitor sees of modelled GPUs, once each period: utilisation as NVML has it, the share of the time in which something ran,
// however much of the GPU it filled.
//
// Example: every 200 ms; something ran for 50 ms of the last ones: 0.25.
#pragma once

#include <map>
#include <utility>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead::sim {

class GpuWatch {
 public:
  void start(Duration period) { period_ = period; }  // REQUIRES: above 0
  bool is_on() const { return period_ > Duration(0); }
  Duration period() const { return period_; }

  // Over the period that ends now; `busy`: something has run for so long, ever. REQUIRES: is_on().
  double utilisation(GpuId gpu, Duration busy) {
    const Duration lately = busy - std::exchange(busy_[gpu], busy);
    return to_seconds(lately) / to_seconds(period_);
  }

 private:
  Duration period_{0};
  std::map<GpuId, Duration> busy_;  // at the last look
};

}  // namespace fairlead::sim
