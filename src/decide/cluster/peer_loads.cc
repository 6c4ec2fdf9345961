#include "decide/cluster/peer_loads.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {

Status validate(const BoundSettings& settings) {
  if (!(settings.c > 1 && settings.c <= 100)) {
    return fail(Errc::kInvalidArgument,
                "c is {}, it must be above 1 and at most 100: at 1 no node is below the bound where all are alike",
                settings.c);
  }
  if (!(settings.most_of_median >= 1 && settings.most_of_median <= 1000)) {
    return fail(Errc::kInvalidArgument, "most of median is {}, it must be 1 to 1000", settings.most_of_median);
  }
  if (settings.patience <= Duration(0))
    return fail(Errc::kInvalidArgument, "patience is {} s, it must be above 0", to_seconds(settings.patience));
  if (!(settings.least_bound_s >= 0 && settings.least_bound_s <= 60))
    return fail(Errc::kInvalidArgument, "least bound is {} s, it must be 0 to 60", settings.least_bound_s);
  return {};
}

PeerLoads::Peer& PeerLoads::at(NodeId node) {
  FL_CHECK(node, "node 0 is none");
  if (peers_.size() < node.value()) peers_.resize(node.value());
  return peers_[node.value() - 1];
}

bool PeerLoads::report(LoadReport report) {
  if (report.version > kLoadReportVersion) return false;
  Peer& peer = at(report.node);
  // What is no number, negative or beyond any node is brought within bounds here, once.
  report.tokens = std::isfinite(report.tokens) ? std::clamp(report.tokens, 0.0, settings_.most_tokens) : 0;
  const double most = settings_.longest_backlog_s * std::max(1.0, report.tokens);
  report.backlog_s = std::isfinite(report.backlog_s) ? std::clamp(report.backlog_s, 0.0, most) : most;
  peer.is_known = true;
  peer.report = std::move(report);
  peer.since = 0;
  return true;
}

void PeerLoads::sent(NodeId node, double seconds) {
  Peer& peer = at(node);
  peer.since += seconds;
  peer.own += seconds;
  total_ += seconds;
  own_total_ += seconds;
}

void PeerLoads::answered(NodeId node, double seconds) {
  Peer& peer = at(node);
  const double left = std::max(0.0, peer.own - seconds);
  own_total_ = std::max(0.0, own_total_ - (peer.own - left));
  peer.own = left;
}

void PeerLoads::forget(NodeId node) {
  Peer& peer = at(node);
  own_total_ = std::max(0.0, own_total_ - peer.own);
  peer = {};
}

double PeerLoads::claimed(const Peer& peer) const {
  return (peer.report.backlog_s + peer.since) / peer.report.tokens;
}

double PeerLoads::load_per_token(NodeId node) const {
  const Peer& peer = peers_[node.value() - 1];
  if (peer.report.tokens <= 0) return settings_.longest_backlog_s;
  const double proven = peer.own / peer.report.tokens;
  return peer.is_disbelieved ? proven : std::max(claimed(peer), proven);
}

double PeerLoads::bound_per_token() const {
  return tokens_ > 0 ? settings_.c * total_ / tokens_ : 0;
}

bool PeerLoads::is_within_bound(NodeId node) const {
  const Peer& peer = peers_[node.value() - 1];
  if (peer.report.tokens <= 0) return false;
  if (peer.is_disbelieved) {
    // By this gateway's own calls alone: against its own mean, not that of the cluster, of which it sees a part.
    return peer.own <= 0 || peer.own / peer.report.tokens < settings_.c * own_total_ / std::max(1.0, tokens_);
  }
  const double load = load_per_token(node);
  return load <= 0 || load < std::max(bound_per_token(), settings_.least_bound_s);
}

void PeerLoads::settle(Instant now) {
  loads_.clear();
  for (const std::size_t row : counted_) loads_.push_back(load_per_token(NodeId(row + 1)));
  total_ = tokens_ = own_total_ = 0;
  for (const Peer& peer : peers_) own_total_ += peer.own;
  if (loads_.empty()) return;
  std::vector<double> sorted = loads_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  // Where most are idle the median is 0 and caps nothing: what is beyond the mean of the others by as much does not happen there.
  const double cap = *middle > 0 ? settings_.most_of_median * *middle : settings_.longest_backlog_s;
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    const double tokens = peers_[counted_[i]].report.tokens;
    total_ += std::min(loads_[i], cap) * tokens;
    tokens_ += tokens;
  }
  for (const std::size_t row : counted_) {
    Peer& peer = peers_[row];
    if (const double load = claimed(peer); load <= 0 || load < bound_per_token()) {
      peer.over_since.reset();
      peer.is_disbelieved = false;
    } else if (!peer.over_since) {
      peer.over_since = now;
    } else if (now - *peer.over_since >= settings_.patience) {
      peer.is_disbelieved = true;
    }
  }
}

}  // namespace fairlead
