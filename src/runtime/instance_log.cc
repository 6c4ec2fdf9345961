#include "runtime/instance_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fairlead {

void InstanceLog::emit(std::string_view bytes) {
  file_.append(bytes);
  if (bytes.size() >= kTailBytes) {
    tail_.assign(bytes.substr(bytes.size() - kTailBytes));
    return;
  }
  // Trimmed only when twice as long: amortised over many short lines.
  if (tail_.size() + bytes.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() + bytes.size() - kTailBytes);
  tail_.append(bytes);
}

std::string_view InstanceLog::tail() const {
  const std::string_view all = tail_;
  return all.substr(all.size() - std::min(all.size(), kTailBytes));
}

void InstanceLog::close() {
  if (dropped_ == 0) return;
  emit(fmt::format("\n[fairlead] dropped {} bytes of output: the limit is {} bytes per second\n", dropped_, rate_));
  dropped_ = 0;
}

void InstanceLog::roll(Instant now) {
  if (now - second_ < std::chrono::seconds(1)) return;
  close();
  second_ = now;
  taken_ = 0;
}

std::int64_t InstanceLog::taken_this_second(Instant now) {
  roll(now);
  return taken_;
}

void InstanceLog::output(std::string_view bytes, Instant now) {
  roll(now);
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t kept = std::clamp<std::int64_t>(rate_ - taken_, 0, size);
  taken_ += size;
  dropped_ += size - kept;
  if (kept > 0) emit(bytes.substr(0, static_cast<std::size_t>(kept)));
}

void InstanceLog::start_line(std::string_view request_id) {
  tail_.clear();
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "START RequestId: {} Version: {}\n", request_id, version_);
  emit({line.data(), line.size()});
}

void InstanceLog::end_lines(const InvocationReport& report) {
  fmt::memory_buffer lines;
  auto out = std::back_inserter(lines);
  if (!tail_.empty() && tail_.back() != '\n') fmt::format_to(out, "\n");
  if (!report.failure.empty()) {
    fmt::format_to(out, "RequestId: {} Error: Runtime exited: {}\n", report.request_id, report.failure);
  }
  const double ms = to_ms(report.duration);
  fmt::format_to(out, "END RequestId: {}\nREPORT RequestId: {}\tDuration: {:.2f} ms\tBilled Duration: {} ms\t",
                 report.request_id, report.request_id, ms, static_cast<std::int64_t>(std::ceil(ms)));
  fmt::format_to(out, "Memory Size: {} MB\tMax Memory Used: {} MB\t", report.memory_limit.count() >> 20,
                 (report.memory_peak.count() + (1 << 20) - 1) >> 20);
  if (report.init_duration.count() > 0) fmt::format_to(out, "Init Duration: {:.2f} ms\t", to_ms(report.init_duration));
  if (report.first_byte) fmt::format_to(out, "Time to First Byte: {:.2f} ms\t", to_ms(*report.first_byte));
  if (!report.failure.empty()) fmt::format_to(out, "Status: error\tError Type: Runtime.ExitError");
  fmt::format_to(out, "\n");
  emit({lines.data(), lines.size()});
}

}  // namespace fairlead
