// Time and bytes as types. Integers throughout: a replay must not depend on the order of float additions. Floating point
// and unit names (`latency_ms`) appear only at the edges.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace fairlead {

using Duration = std::chrono::nanoseconds;

// The node's time line: monotonic in the daemon, virtual in the simulator. Deliberately without now(): only base/clock.h
// can tell the time, and the decision layers are handed it.
struct NodeTime {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<NodeTime>;
  static constexpr bool is_steady = true;
};
using Instant = NodeTime::time_point;

constexpr double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
constexpr double to_ms(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
constexpr double to_us(Duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}
constexpr Duration from_seconds(double s) {
  return Duration(static_cast<Duration::rep>(s * 1e9));
}

// A size in bytes. Signed, so that a difference is a Bytes too.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }
  constexpr double mib() const { return static_cast<double>(count_) / (1 << 20); }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return Bytes(count_ + other.count_); }
  constexpr Bytes operator-(Bytes other) const { return Bytes(count_ - other.count_); }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::int64_t count_ = 0;
};

constexpr Bytes kib(std::int64_t n) {
  return Bytes(n << 10);
}
constexpr Bytes mib(std::int64_t n) {
  return Bytes(n << 20);
}
constexpr Bytes gib(std::int64_t n) {
  return Bytes(n << 30);
}

}  // namespace fairlead
