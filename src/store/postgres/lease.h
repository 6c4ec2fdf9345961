// What a node's threads share of its epoch (shared_store.h). Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "store/postgres/records.h"
#include "store/shared_store.h"

namespace fairlead::postgres {

class Lease {
 public:
  // Renewed, or begun, by a request that was sent at `asked`: what the store granted began no earlier.
  void renewed(Instant asked, std::int64_t ahead_ms) {
    valid_until_ = (asked + kStartsAfterRenewal).time_since_epoch().count();
    ahead_ms_ = ahead_ms;
  }
  void begun(std::int64_t epoch) { epoch_ = epoch; }
  bool is_valid(Instant now) const { return now.time_since_epoch().count() < valid_until_; }
  Writer writer() const { return {.epoch = epoch_, .ahead_ms = ahead_ms_}; }

 private:
  std::atomic<std::int64_t> epoch_ = 0, ahead_ms_ = 0;
  std::atomic<Instant::rep> valid_until_ = 0;
};

}  // namespace fairlead::postgres
