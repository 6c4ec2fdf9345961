#include "softgpu/device/time/busy_meter.h"

#include <algorithm>
#include <ctime>

namespace softgpu {
namespace {

constexpr std::uint64_t kBucketNs = 20'000'000;
constexpr std::uint64_t kWindowBuckets = 50;
constexpr std::uint64_t kWindowNs = kBucketNs * kWindowBuckets;
static_assert(kWindowBuckets < kBusyBuckets);

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

BusyBucket& BusyMeter::bucket(std::uint64_t index) {
  BusyBucket& bucket = control_.buckets[index % kBusyBuckets];
  if (bucket.index.load(std::memory_order_relaxed) != index) {
    bucket.busy_ns.store(0, std::memory_order_relaxed);
    bucket.bytes.store(0, std::memory_order_relaxed);
    bucket.index.store(index, std::memory_order_relaxed);
  }
  return bucket;
}

void BusyMeter::begin(std::uint64_t now_ns) {
  control_.busy_since_ns.store(now_ns);
}

void BusyMeter::end(std::uint64_t now_ns) {
  const std::uint64_t since = control_.busy_since_ns.exchange(0);
  if (since == 0 || since >= now_ns) return;
  control_.busy_total_ns.fetch_add(now_ns - since);
  std::uint64_t at = std::max(since, now_ns - std::min(now_ns, kWindowNs));
  while (at < now_ns) {
    const std::uint64_t index = at / kBucketNs;
    const std::uint64_t until = std::min(now_ns, (index + 1) * kBucketNs);
    bucket(index).busy_ns.fetch_add(until - at, std::memory_order_relaxed);
    at = until;
  }
}

void BusyMeter::moved(std::uint64_t bytes, std::uint64_t now_ns) {
  bucket(now_ns / kBucketNs).bytes.fetch_add(bytes, std::memory_order_relaxed);
}

BusyMeter::Sample BusyMeter::sample(std::uint64_t now_ns, bool running) const {
  const std::uint64_t current = now_ns / kBucketNs;
  std::uint64_t busy = 0;
  std::uint64_t bytes = 0;
  for (const BusyBucket& bucket : control_.buckets) {
    const std::uint64_t index = bucket.index.load(std::memory_order_relaxed);
    if (index > current || index + kWindowBuckets <= current) continue;
    busy += bucket.busy_ns.load(std::memory_order_relaxed);
    bytes += bucket.bytes.load(std::memory_order_relaxed);
  }
  const std::uint64_t since = control_.busy_since_ns.load();
  if (running && since != 0 && since < now_ns) busy += std::min(now_ns - since, kWindowNs);
  return {std::min(1.0, static_cast<double>(busy) / kWindowNs), static_cast<double>(bytes) * 1e9 / kWindowNs};
}

std::vector<BusyMeter::Moment> BusyMeter::history(std::uint64_t now_ns) const {
  const std::uint64_t current = now_ns / kBucketNs;
  std::vector<Moment> moments;
  for (std::uint64_t index = current - std::min(current, kWindowBuckets); index < current; ++index) {
    const BusyBucket& bucket = control_.buckets[index % kBusyBuckets];
    Moment moment{(index + 1) * kBucketNs, 0, 0};
    if (bucket.index.load(std::memory_order_relaxed) == index) {
      const auto busy_ns = static_cast<double>(bucket.busy_ns.load(std::memory_order_relaxed));
      moment.busy = std::min(1.0, busy_ns / kBucketNs);
      moment.bytes_per_second = static_cast<double>(bucket.bytes.load(std::memory_order_relaxed)) * 1e9 / kBucketNs;
    }
    moments.push_back(moment);
  }
  return moments;
}

}  // namespace softgpu
