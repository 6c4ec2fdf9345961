#include "sim/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fairlead::sim {

void Histogram::add(Duration value, std::size_t bucket) {
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  sum_seconds_ += to_seconds(value);
  greatest_ = std::max(greatest_, value);
}

void Histogram::merge(const Histogram& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_seconds_ += other.sum_seconds_;
  greatest_ = std::max(greatest_, other.greatest_);
}

double Histogram::deviation_seconds() const {
  if (count_ == 0) return 0;
  double squares = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0) continue;
    const double from = i == 0 ? 0 : to_seconds(upper_end(i - 1));
    const double distance = (from + to_seconds(upper_end(i))) / 2 - mean_seconds();
    squares += static_cast<double>(buckets_[i]) * distance * distance;
  }
  return std::sqrt(squares / static_cast<double>(count_));
}

Duration Histogram::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen > 0) return std::min(upper_end(i), greatest_);
  }
  return greatest_;
}

// Below 64 us one bucket per microsecond; above, the six bits after the leading one.
std::size_t Histogram::bucket_of(Duration value) {
  const auto us = static_cast<std::uint64_t>(std::max<Duration::rep>(0, value.count() / 1000));
  if (us < kPerPower) return static_cast<std::size_t>(us);
  const int power = std::bit_width(us) - 1;  // 6 or more
  const std::size_t bucket =
      static_cast<std::size_t>(power - 5) * kPerPower + static_cast<std::size_t>((us >> (power - 6)) - kPerPower);
  return std::min<std::size_t>(bucket, kPerPower * kPowers - 1);
}

Duration Histogram::upper_end(std::size_t bucket) {
  const std::uint64_t power = bucket / kPerPower, part = bucket % kPerPower;
  const std::uint64_t us = power == 0 ? part + 1 : (kPerPower + part + 1) << (power - 1);
  return std::chrono::microseconds(us);
}

}  // namespace fairlead::sim
