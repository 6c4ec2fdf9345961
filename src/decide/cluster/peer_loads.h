// What a gateway believes of its peers' loads, and the bound that follows: a node is given calls while its backlog per token is below
// c times the mean over all nodes.
//
// Idea. A report is up to a gossip period old, may be stale and may lie. So:
//
//   - what this gateway has sent since the last report is added to it: a burst does not pile up on one node within 200 ms;
//   - what this gateway has sent and not seen answered is a proof: a node has at least that, whatever it says;
//   - to the mean a node adds at most `most_of_median` times the median: one that claims a backlog of years lifts nobody's bound;
//   - a claim to be over the bound is believed for `patience`. From then on it is believed only as far as this gateway's own calls there
//     say the same (none of a fair share of them comes back); the claim counts again when it has been within the bound for once.
//
// Example. c = 1.5, four nodes of 2 tokens with 1, 2, 3 and 6 GPU seconds: 1.5 s per token in the mean, so the bound is 4.5 s per node; the
// fourth gets nothing. A fifth says 0 for ever: it gets calls until 4.5 s of this gateway's own wait there. A sixth says 1,000 s for
// ever: it
// counts as 4 times the median in the mean, and after 5 s gets calls again as if it had what this gateway knows of.
//
// What a liar can still do: of each gateway it takes up to the bound, and for `patience` it sheds what is sent to it.
//
// Loads are in GPU seconds. Pure: no clock. Not thread-safe. Determinism: of the calls.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "decide/cluster/load_report.h"

namespace fairlead {

struct BoundSettings {
  double c = 1.5;                               // times the mean backlog per token
  double most_of_median = 4;                    // that a node adds to the mean
  Duration patience = std::chrono::seconds(5);  // with one that says it is over the bound
  double longest_backlog_s = 3600;              // per token; a report of more, or of what is no number, says this
  double most_tokens = 4096;                    // of a node; a report of more says this
  // Seconds per token below which nobody is passed over, whatever the mean is: where next to nothing waits, one call more is far above the
  // mean, and a start elsewhere costs more than the wait. 0: none.
  double least_bound_s = 0;
};
// kInvalidArgument names the setting, its value and the bound. REQUIRES of all below: valid.
Status validate(const BoundSettings& settings);

class PeerLoads {
 public:
  explicit PeerLoads(const BoundSettings& settings) : settings_(settings) {}

  // Members' order is kept by the caller: only what Members::heard called news comes here. Others' formats are ignored: false.
  bool report(LoadReport report);
  // Calls of this gateway: the expected GPU seconds, the same in both.
  void sent(NodeId node, double seconds);
  void answered(NodeId node, double seconds);
  // It is dead: what was sent there is lost, and it counts no more, until it reports again.
  void forget(NodeId node);
  // The mean, from what is known. Call it each gossip period, and after nodes were forgotten. `counts(node)`: takes calls.
  template <typename Counts>
  void settle(Instant now, Counts counts) {
    counted_.clear();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].is_known && peers_[i].report.tokens > 0 && counts(NodeId(i + 1))) counted_.push_back(i);
    }
    settle(now);
  }

  bool knows(NodeId node) const { return node && node.value() <= peers_.size() && peers_[node.value() - 1].is_known; }
  // REQUIRES of these: knows(node).
  double load_per_token(NodeId node) const;  // as believed
  bool is_within_bound(NodeId node) const;
  bool is_warm(NodeId node, std::uint64_t function) const { return peers_[node.value() - 1].report.is_warm(function); }
  bool is_disbelieved(NodeId node) const { return peers_[node.value() - 1].is_disbelieved; }
  double own_outstanding(NodeId node) const { return peers_[node.value() - 1].own; }
  double bound_per_token() const;  // of backlog, in seconds

 private:
  struct Peer {
    bool is_known = false;
    LoadReport report;
    double since = 0;  // sent since the report
    double own = 0;    // sent and not answered
    std::optional<Instant> over_since;
    bool is_disbelieved = false;
  };
  Peer& at(NodeId node);
  double claimed(const Peer& peer) const;  // per token, with what was sent since
  void settle(Instant now);

  BoundSettings settings_;
  std::vector<Peer> peers_;  // by id
  std::vector<std::size_t> counted_;
  std::vector<double> loads_;
  double total_ = 0, tokens_ = 0, own_total_ = 0;
};

}  // namespace fairlead
