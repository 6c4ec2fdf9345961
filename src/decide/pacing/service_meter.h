// What an instance was given of a device, as people ask for it: in the last second, in the last minute, and how long it waited for
// a place.
//
// Example: a total of 400 ms at 1.0 s and of 800 ms at 2.0 s: the last second had 400 ms.
//
// Time: handed in. Threads: not thread-safe. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace fairlead {

class ServiceMeter {
 public:
  // `total`: service since the beginning, at `now`; called again and again, at best oftener than every 25 ms. It may fall a little:
  // what counts as used until the instance has told may turn out less.
  void note(Instant now, Duration total) {
    last_ = total;
    fine_.note(now, total);
    coarse_.note(now, total);
  }
  Duration total() const { return last_; }
  Duration in_last_second(Instant now) const { return since(fine_, now - std::chrono::seconds(1)); }
  Duration in_last_minute(Instant now) const { return since(coarse_, now - std::chrono::minutes(1)); }

 private:
  // The totals at the ends of steps, the last of each.
  template <std::size_t kSteps>
  struct Samples {
    Duration step;
    struct Sample {
      std::int64_t number = -1;  // of the step
      Duration total{0};
    };
    std::array<Sample, kSteps> ring{};

    void note(Instant now, Duration total) {
      const std::int64_t number = now.time_since_epoch() / step;
      ring[static_cast<std::size_t>(number) % kSteps] = {number, total};
    }
    // At the end of the last step that was over by `then`; 0 before the first.
    Duration at(Instant then) const {
      const std::int64_t number = then.time_since_epoch() / step - 1;
      const Sample* latest = nullptr;
      for (const Sample& sample : ring) {
        const bool is_before = sample.number >= 0 && sample.number <= number;
        if (is_before && (latest == nullptr || sample.number > latest->number)) latest = &sample;
      }
      return latest == nullptr ? Duration(0) : latest->total;
    }
  };

  template <std::size_t kSteps>
  Duration since(const Samples<kSteps>& samples, Instant then) const {
    return std::max(Duration(0), last_ - samples.at(then));
  }

  Samples<64> fine_{std::chrono::milliseconds(25)};
  Samples<80> coarse_{std::chrono::seconds(1)};
  Duration last_{0};
};

// Waits at the gate, by powers of two of a microsecond: bucket 0 is below 1 us, bucket i below 2^i us, the last all the rest.
class WaitHistogram {
 public:
  static constexpr std::size_t kBuckets = 24;
  void add(Duration wait) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(wait.count() / 1000, 0));
    ++buckets_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), kBuckets - 1)];
    total_ += wait;
    ++count_;
  }
  void add(const WaitHistogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    total_ += other.total_;
    count_ += other.count_;
  }
  const std::array<std::uint64_t, kBuckets>& buckets() const { return buckets_; }
  std::uint64_t count() const { return count_; }
  Duration total() const { return total_; }

 private:
  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  Duration total_{0};
};

}  // namespace fairlead
