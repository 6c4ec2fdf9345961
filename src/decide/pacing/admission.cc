#include "decide/pacing/admission.h"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead {
namespace {

// A millionth of the time: what the sums of an exact fit may be off.
constexpr double kRounding = 1e-4;

// The shares with a request as a multiset.
std::vector<QuotaRow> rows_of(const std::vector<PacedShare>& shares) {
  std::vector<QuotaRow> rows;
  for (const PacedShare& share : shares) {
    if (share.request_percent > 0) rows.push_back({share.width_percent, share.request_percent, 1});
  }
  std::sort(rows.begin(), rows.end());
  std::size_t last = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].width_percent == rows[last].width_percent && rows[i].quota_percent == rows[last].quota_percent) {
      ++rows[last].instances;
    } else {
      rows[++last] = rows[i];
    }
  }
  if (!rows.empty()) rows.resize(last + 1);
  return rows;
}

std::optional<Lacking> wrong_share(const std::vector<PacedShare>& shares) {
  for (const PacedShare& share : shares) {
    if (const Status sound = check(share); !sound) return Lacking{.field = "share", .message = sound.error().message};
  }
  return std::nullopt;
}

}  // namespace

AdmissionAnswer Admission::ask(const std::vector<PacedShare>& shares) {
  ++counters_.questions;
  AdmissionAnswer answer;
  if ((answer.lacking = wrong_share(shares))) return answer;
  if (room_.clients > 0 && shares.size() > room_.clients) {
    answer.lacking = {"mps-clients", static_cast<double>(shares.size()), static_cast<double>(room_.clients),
                      fmt::format("{} instances are {} MPS clients of the device, {} is the most", shares.size(),
                                  shares.size(), room_.clients)};
    return answer;
  }
  Bytes memory{0};
  for (const PacedShare& share : shares) memory += share.memory;
  if (room_.memory > Bytes(0) && memory > room_.memory) {
    answer.lacking = {
        "gpu:memory-mib", memory.mib(), room_.memory.mib(),
        fmt::format("gpu:memory-mib is {:.0f} together, the device has {:.0f}", memory.mib(), room_.memory.mib())};
    return answer;
  }
  answer.time_percent = time_of(shares);
  const double bound = 100 - room_.reserve_percent;
  if (answer.time_percent > bound + kRounding) {
    answer.lacking = {"gpu:quota-request", answer.time_percent, bound,
                      fmt::format("gpu:quota-request is {:.1f} % of the device's time at best, {:.1f} % is the most",
                                  answer.time_percent, bound)};
  }
  return answer;
}

double Admission::time_of(const std::vector<PacedShare>& shares) {
  std::vector<QuotaRow> rows = rows_of(shares);
  if (const auto known = known_.find(rows); known != known_.end()) {
    ++counters_.from_cache;
    return known->second.percent;
  }
  const double percent = least_time(rows, 100 - room_.reserve_percent).percent;
  if (known_.size() == kMostCached) {
    known_.erase(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
  by_age_.emplace(counters_.questions, rows);
  known_.emplace(std::move(rows), Known{percent, counters_.questions});
  return percent;
}

}  // namespace fairlead
