// Who is in the cluster, as one gateway sees it: a state machine of events, with the times of the failure matrix as settings.
//
//              silent for suspect_after            silent for dead_after
//   alive ─────────────────────────────> suspect ─────────────────────────> dead
//     │  └ refused a connection ────────────^ │ a newer report: alive          │ a report of a higher incarnation: alive
//     │ drain                                                                  │ of the same: ignored; its node is to be told
//     └──> draining ──> left   (by the node's own word; only a higher incarnation comes back)
//
// An old word revives nobody: reports count where (incarnation, number) is above all that was heard before. A node that was thought dead
// hears so in the answer to its next report, takes a higher incarnation and is back with the one after. Nobody's word about another ends a
// node: a rumour of death counts only where this gateway suspects the node itself.
//
// Example. B's reports come each 200 ms; the last at 10.0 s. At 10.6 s B is suspect and gets no new calls; at 13.0 s it is dead. At 14 s a
// report of incarnation 1 arrives that was under way for 4 s: ignored. At 15 s one of incarnation 2: alive.
//
// The epoch counts changes of who may take calls. It is what gateways compare when they disagree (one_hop.h).
//
// Source: Das, Gupta, Motivala, "SWIM", DSN 2002 (suspicion, incarnations). Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "decide/cluster/node_id.h"

namespace fairlead {

enum class MemberState { kAlive, kSuspect, kDead, kDraining, kLeft };
std::string_view member_state_name(MemberState state);  // "alive", "suspect", "dead", "draining", "left"

struct MemberTimes {
  Duration gossip_period = std::chrono::milliseconds(200);
  Duration suspect_after = std::chrono::milliseconds(600);  // of silence
  Duration dead_after = std::chrono::seconds(3);            // of silence
};
// kInvalidArgument names the time, its value and the bound. REQUIRES of all below: valid.
Status validate(const MemberTimes& times);

struct Word {  // of a node about itself
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;
  bool is_draining = false;
};

enum class Heard {
  kNews,         // it counts
  kOld,          // not above what was heard before
  kThoughtDead,  // of an incarnation that is dead or has left here: tell the node, so that it takes a higher one
};

class Members {
 public:
  explicit Members(const MemberTimes& times) : times_(times) {}

  // A node is known from now on, and alive until it is silent for too long. No effect when it is there.
  void add(Instant now, NodeId node);
  Heard heard(Instant now, NodeId node, const Word& word);
  // A connection to it was refused, or ended before an answer began: suspect at once.
  void unreachable(Instant now, NodeId node);
  // Another gateway thinks that incarnation dead.
  void rumoured_dead(Instant now, NodeId node, std::uint64_t incarnation);
  // Its own word: it has drained and goes.
  void left(NodeId node, std::uint64_t incarnation);
  // Silence, up to now. Call it at least each gossip period. Those whose state changed, ascending.
  std::vector<NodeId> advance(Instant now);

  bool knows(NodeId node) const {
    return node && node.value() <= members_.size() && members_[node.value() - 1].is_known;
  }
  MemberState state(NodeId node) const;  // REQUIRES: knows(node)
  std::uint64_t incarnation(NodeId node) const;
  // May be given calls that come in now.
  bool takes_calls(NodeId node) const { return knows(node) && state(node) == MemberState::kAlive; }
  // May still be there: the last resort where nobody else lives.
  bool may_live(NodeId node) const;
  std::uint64_t epoch() const { return epoch_; }

 private:
  struct Member {
    bool is_known = false;
    MemberState state = MemberState::kAlive;
    std::uint64_t incarnation = 0, number = 0;
    Instant heard_at;
    bool is_draining = false;
  };
  Member* find(NodeId node) { return knows(node) ? &members_[node.value() - 1] : nullptr; }
  void become(Member& member, MemberState state);

  MemberTimes times_;
  std::vector<Member> members_;  // by id
  std::uint64_t epoch_ = 1;
};

}  // namespace fairlead
