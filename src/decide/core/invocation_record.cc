#include "decide/core/invocation_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace fairlead {
namespace {

constexpr std::string_view kRefused = "refused";
constexpr std::size_t kFields = 10;
constexpr std::int64_t kMostUs = std::numeric_limits<std::int64_t>::max() / 1000;  // as nanoseconds still a Duration

constexpr StartKind kStarts[] = {StartKind::kDeviceWarm, StartKind::kHostWarm, StartKind::kCold};
constexpr OutcomeKind kOutcomes[] = {OutcomeKind::kSuccess, OutcomeKind::kFunctionError, OutcomeKind::kTimeout,
                                     OutcomeKind::kCrashed, OutcomeKind::kStartFailed,   OutcomeKind::kCancelled,
                                     OutcomeKind::kRemoved, OutcomeKind::kShutdown,      OutcomeKind::kExpired};

std::int64_t microseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

class Fields {
 public:
  explicit Fields(std::string_view line) : line_(line) {}

  std::string_view next() {
    const std::size_t comma = std::min(line_.find(','), line_.size());
    const std::string_view field = line_.substr(0, comma);
    line_.remove_prefix(std::min(comma + 1, line_.size()));
    return field;
  }

  Result<std::int64_t> number(std::string_view name) {
    const std::string_view text = next();
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= kMostUs) return value;
    return fail(Errc::kCorrupt, "{} is '{}', it must be a whole number from 0 to {}", name, text, kMostUs);
  }

  Status times(InvocationRecord& record) {
    for (const auto& [name, into] : {std::pair("queue_us", &record.queue), std::pair("start_us", &record.starting),
                                     std::pair("run_us", &record.run), std::pair("gpu_us", &record.gpu_time),
                                     std::pair("instance_start_us", &record.instance_start)}) {
      const auto value = number(name);
      if (!value) return fail(value.error());
      *into = std::chrono::microseconds(*value);
    }
    return {};
  }

 private:
  std::string_view line_;
};

}  // namespace

void InvocationRecord::set_function(std::string_view function) {
  name = {};
  function.substr(0, name.size() - 1).copy(name.data(), name.size() - 1);
}

std::string to_line(const InvocationRecord& record) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", record.at_us, record.function(),
                     record.outcome ? outcome_name(*record.outcome) : kRefused,
                     record.start ? start_kind_name(*record.start) : "", record.gpu.value(), microseconds(record.queue),
                     microseconds(record.starting), microseconds(record.run), microseconds(record.gpu_time),
                     microseconds(record.instance_start));
}

Result<InvocationRecord> record_of(std::string_view line) {
  if (std::count(line.begin(), line.end(), ',') != kFields - 1) {
    return fail(Errc::kCorrupt, "'{}' has not the {} fields {}", line.substr(0, 200), kFields,
                kInvocationRecordHeading);
  }
  InvocationRecord record;
  Fields fields(line);
  const auto at = fields.number("at_us");
  if (!at) return fail(at.error());
  record.at_us = *at;
  const std::string_view function = fields.next();
  if (Status valid = validate_function_name(std::string(function)); !valid) {
    return fail(Errc::kCorrupt, "{}", valid.error().message);
  }
  record.set_function(function);
  const std::string_view outcome = fields.next(), start = fields.next();
  for (const OutcomeKind known : kOutcomes) {
    if (outcome_name(known) == outcome) record.outcome = known;
  }
  if (!record.outcome && outcome != kRefused) return fail(Errc::kCorrupt, "outcome '{}' is not known", outcome);
  for (const StartKind known : kStarts) {
    if (start_kind_name(known) == start) record.start = known;
  }
  if (!record.start && !start.empty()) return fail(Errc::kCorrupt, "start '{}' is not known", start);
  const auto gpu = fields.number("gpu");
  if (!gpu) return fail(gpu.error());
  record.gpu = GpuId(static_cast<std::uint64_t>(*gpu));
  if (Status read = fields.times(record); !read) return fail(read.error());
  return record;
}

}  // namespace fairlead
