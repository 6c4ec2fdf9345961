// A tenant's fair share over all nodes: what each node is told of it, so that a tenant on few nodes is not behind one on many.
//
// Idea. Each node is fair to the tenants that wait on it, by virtual time: service over weight. Over the cluster that is not fair: a tenant
// that waits on sixteen nodes gets sixteen parts, one that waits on two gets two. So nodes gossip what each tenant was served, the sum over weight is
// the tenant's clock over the cluster, and whoever is ahead counts less: a node multiplies its weight by 2^(-lead / half), within a factor of
// `most_factor` each way; half is a tenant's part of all tokens for `half_lead`. It is a controller of the first order: the lead falls by itself
// as soon as weights differ.
//
// A node counts leads from the median of those that wait on it. A tenant that waits elsewhere, and falls behind because no node there can serve
// it faster, says nothing about who should be next here.
//
// Example. A and B have weight 1 and wait here. A was served 40 s, B 36 s: A leads the median of 38 s by 2 s, B by -2 s. A node of 2 tokens and a
// half_lead of 1 s: half is 1 s, A counts 0.25, B 4. C waits on another node alone and was served 1 s: A and B count as before.
//
// As on a node, idleness earns nothing: a tenant that waits nowhere moves with the least clock of those that wait, and who begins to wait joins at
// the least of those that wait on the same nodes, if there are such. Nor does service that
// nobody waited for cost anything: where nobody waits, on any node, all clocks are equal. And a lead is forgotten: it falls to 1/e in `memory`, so what
// one had on a node where nobody else waited, while others waited elsewhere, is paid back for about a minute, not for hours.
//
// A tenant that waits for its own limits does not hold the others' clocks. Its lead counts against it like everybody's; it is never behind.
//
// A node's word is bounded: within one exchange it may add what its tokens can serve in the time since its last report and no more, however much
// it claims. What it claims beyond that is added with its next reports, under the same bound: the service of a call is said when the call
// ends, which may be many exchanges at once. What is not a number, or falls, adds nothing. Within these bounds a node of the cluster is believed.
//
// Source: the virtual time of MQFQ (Hedayati et al., ATC '19); the exchange is ours. Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "decide/cluster/load_report.h"

namespace fairlead {

struct TenantClockSettings {
  // Ahead by what one of those that wait would be served in so long, were all tokens shared alike: that halves its weight.
  Duration half_lead = std::chrono::milliseconds(200);
  double most_factor = 1024;                   // to either side
  double slack = 1.5;                          // times tokens x time that a report may add
  Duration memory = std::chrono::seconds(60);  // in which a lead falls to 1/e by itself
  Duration hold = std::chrono::seconds(1);     // a tenant waits for so long after it was last seen to wait
  Duration most_owed =
      std::chrono::seconds(60);  // times the node's tokens: of service that it claims beyond what it may add
};

using TenantKeys = std::vector<std::uint64_t>;

class TenantClocks {
 public:
  explicit TenantClocks(const TenantClockSettings& settings) : settings_(settings) {}

  void set_weight(std::uint64_t tenant, double weight);  // REQUIRES: above 0. 1 where nobody says
  // Call it for all that is news (Members::heard), in any order of nodes; then advance().
  void report(Instant now, const LoadReport& report);
  void forget(NodeId node);  // it is dead: it waits for nobody
  // Idle tenants move with the clock of those that wait. After the reports of a gossip period.
  void advance(Instant now);

  // The median clock of those of `among` that wait somewhere, as of the last advance(); where none does, of all that wait; else 0.
  double middle_s(const TenantKeys& among) const;
  // How far the tenant is ahead of `middle_s`. One that waits nowhere is not behind.
  double lead_s(std::uint64_t tenant, double middle_s) const;
  // By which a node that has that middle multiplies the tenant's weight now: 1 where nothing is known.
  double factor(std::uint64_t tenant, double middle_s) const;

 private:
  struct Tenant {
    double clock_s = 0;  // beyond the least of those that wait, as of the last advance()
    bool waits = false;
    std::optional<Instant> seen_waiting;  // the last time
  };
  struct Said {
    double seconds = 0;  // the most
    double owed = 0;     // of it: not added yet, as the node's tokens could not have served it since its report before
    bool is_waiting = false;
  };
  struct Seen {
    std::uint64_t incarnation = 0;
    Instant at;
    double tokens = 0;
    bool has_forgotten = false;  // tenants that it said something of
    std::map<std::uint64_t, Said> tenants;
  };
  double part_s(Duration time) const;  // of all tokens, which weight 1 of those that wait has in that time
  double weight(std::uint64_t tenant) const;
  double plausible(const Seen& seen, Instant now, const LoadReport& report) const;
  void take(Seen& seen, const LoadReport& report, bool is_first);
  std::set<std::uint64_t> waiting_anywhere() const;
  std::map<std::uint64_t, double> joining() const;  // by who begins to wait where others did: at which clock

  TenantClockSettings settings_;
  std::map<std::uint64_t, double> weights_;  // that somebody set
  std::map<std::uint64_t, Tenant> tenants_;
  std::map<NodeId, Seen> seen_;
  std::optional<Instant> advanced_at_;
  double part_ = 1;  // tokens for each weight 1 that waits
};

}  // namespace fairlead
