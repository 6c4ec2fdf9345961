#include "decide/pipeline/slice_claims.h"

#include <algorithm>
#include <utility>

namespace fairlead {

SliceClaims::SliceClaims(const ClaimTerms& terms, std::map<std::string, double> weights,
                         std::vector<SliceHolder> holders, std::map<std::string, int> leaving)
    : terms_(terms), weights_(std::move(weights)), holders_(std::move(holders)), leaving_(std::move(leaving)) {}

double SliceClaims::weight(const std::string& tenant) const {
  const auto known = weights_.find(tenant);
  return known == weights_.end() || known->second <= 0 ? 1 : known->second;
}

double SliceClaims::load(const std::string& tenant) const {
  int slices = 0;
  for (const SliceHolder& holder : holders_) slices += holder.tenant == tenant ? holder.slices : 0;
  return slices / weight(tenant);
}

double SliceClaims::load_with_leaving(const std::string& tenant) const {
  const auto leaving = leaving_.find(tenant);
  return load(tenant) + (leaving == leaving_.end() ? 0 : leaving->second / weight(tenant));
}

// Who shares. To end one that is used again at once costs its start and gains nothing.
Duration SliceClaims::shared_stay(const SliceHolder& holder) const {
  const Duration worth = std::min(terms_.turn, terms_.stay_per_start * holder.comes_back);
  const bool is_soon_used = std::max(holder.gap, holder.idle) < worth;
  return is_soon_used ? std::max(terms_.shared_stay, worth) : terms_.shared_stay;
}

SliceClaims::Rank SliceClaims::rank(const SliceHolder& holder, const SliceClaimant& claimant) const {
  if (!holder.may_leave) return Rank::kStays;
  const bool has_stayed = holder.held >= terms_.least_stay;
  if (!holder.is_hot && has_stayed && holder.idle >= terms_.idle) return Rank::kLongIdle;
  if (claimant.waited <= Duration(0)) return Rank::kStays;
  const bool is_own = holder.tenant == claimant.tenant;
  const bool is_fair = is_own || load_with_leaving(claimant.tenant) <= load(holder.tenant);
  const bool shares = !holder.is_hot && holder.idle > Duration(0);
  if (is_fair && shares && holder.held >= shared_stay(holder)) return Rank::kShares;
  const double with_them = load_with_leaving(claimant.tenant) + holder.slices / weight(claimant.tenant);
  if (has_stayed && !is_own && with_them < load(holder.tenant))
    return holder.idle > Duration(0) ? Rank::kIdle : Rank::kBusy;
  if (!comes_first(claimant) || !gives_turn(holder, claimant.tenant)) return Rank::kStays;
  const Duration stay = holder.is_hot ? std::max(terms_.turn, holder.comes_back) : shared_stay(holder);
  return holder.held >= stay ? Rank::kTurn : Rank::kStays;
}

bool SliceClaims::gives_turn(const SliceHolder& holder, const std::string& tenant) const {
  return holder.tenant == tenant || load_with_leaving(tenant) <= load(holder.tenant);
}

std::vector<std::size_t> SliceClaims::leavers_in_time(const std::string& tenant) const {
  std::vector<std::size_t> leavers;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if (gives_turn(holders_[i], tenant)) leavers.push_back(i);
  }
  return leavers;
}

std::vector<std::size_t> SliceClaims::leavers_for(const SliceClaimant& claimant) const {
  struct Leaver {
    Rank rank;
    bool is_foreign;  // of a turn: own ones go first
    double worth;     // who has least goes first
    std::size_t index;
    auto operator<=>(const Leaver&) const = default;
  };
  std::vector<Leaver> leavers;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    const SliceHolder& holder = holders_[i];
    const Rank its = rank(holder, claimant);
    if (its == Rank::kStays) continue;
    const double missed = to_seconds(holder.comes_back) / std::max(1e-9, to_seconds(std::max(holder.gap, holder.idle)));
    const double worth = its == Rank::kShares ? missed
                         : its == Rank::kTurn ? -to_seconds(holder.held)
                                              : -to_seconds(holder.idle);
    leavers.push_back({its, its == Rank::kTurn && holder.tenant != claimant.tenant, worth, i});
  }
  std::sort(leavers.begin(), leavers.end());
  std::vector<std::size_t> indices;
  for (const Leaver& leaver : leavers) indices.push_back(leaver.index);
  return indices;
}

}  // namespace fairlead
