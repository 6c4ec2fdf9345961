// Durations counted in buckets of 1.6 % width, so that the memory of a run does not grow with its length: 64 buckets per
// power of two from 1 us to 2^31 us (36 minutes), about 2,000 in all, of which it holds those up to the greatest seen: most
// of 10,000 functions are called rarely. A percentile is right to within one bucket; the mean
// and the greatest are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

class Histogram {
 public:
  void add(Duration value) { add(value, bucket_of(value)); }
  // The same for several histograms. REQUIRES: bucket == bucket_of(value).
  void add(Duration value, std::size_t bucket);
  static std::size_t bucket_of(Duration value);
  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  double mean_seconds() const { return count_ == 0 ? 0 : sum_seconds_ / static_cast<double>(count_); }
  // Standard deviation, right to within a bucket.
  double deviation_seconds() const;
  Duration greatest() const { return greatest_; }
  // The least value that `share` of all do not exceed. REQUIRES: 0 <= share <= 1.
  Duration percentile(double share) const;

 private:
  static constexpr int kPerPower = 64, kPowers = 32;
  static Duration upper_end(std::size_t bucket);

  std::vector<std::uint32_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_seconds_ = 0;
  Duration greatest_{0};
};

}  // namespace fairlead::sim
