#include "decide/pipeline/slice_claims.h"

#include <algorithm>
#include <utility>

namespace fairlead {

SliceClaims::SliceClaims(const ClaimTerms& terms, std::map<std::string, double> weights,
                         std::vector<SliceHolder> holders)
    : terms_(terms), weights_(std::move(weights)), holders_(std::move(holders)) {}

double SliceClaims::weight(const std::string& tenant) const {
  const auto known = weights_.find(tenant);
  return known == weights_.end() || known->second <= 0 ? 1 : known->second;
}

double SliceClaims::load(const std::string& tenant) const {
  int slices = 0;
  for (const SliceHolder& holder : holders_) slices += holder.tenant == tenant ? holder.slices : 0;
  return slices / weight(tenant);
}

std::vector<std::size_t> SliceClaims::leavers_for(const std::string& tenant) const {
  enum { kLongIdle, kIdle, kBusy, kStays };
  const auto rank = [&](const SliceHolder& holder) {
    if (!holder.may_leave || holder.held < terms_.least_stay) return kStays;
    if (holder.idle >= terms_.idle) return kLongIdle;
    const double with_them = load(tenant) + holder.slices / weight(tenant);
    if (holder.tenant == tenant || with_them >= load(holder.tenant)) return kStays;
    return holder.idle > Duration(0) ? kIdle : kBusy;
  };
  std::vector<std::size_t> leavers;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if (rank(holders_[i]) != kStays) leavers.push_back(i);
  }
  std::stable_sort(leavers.begin(), leavers.end(), [&](std::size_t a, std::size_t b) {
    const auto of = [&](std::size_t i) { return std::pair(static_cast<int>(rank(holders_[i])), -holders_[i].idle); };
    return of(a) < of(b);
  });
  return leavers;
}

}  // namespace fairlead
