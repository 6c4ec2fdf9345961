// A call is forwarded at most once, whatever gateways believe of each other: the rule, as a pure decision.
//
//   client ──> A: forwards, with hop 1 and A's epoch ──> B: runs it, or answers 421 with its newer map ──> A tries once more, and then says 503
//
// B never forwards what was forwarded. Where B is no home by its own map but A's map is as new, B runs the call: that costs a cold start and no
// call goes round in circles. Only a map that is newer than A's, or a drain, is a reason to send it back.
//
// Example. A's map of epoch 5 has f at home on B. B left f to C in epoch 6: 421, epoch 6. A takes the map and forwards to C: the second and
// last time that the call crosses the network.
//
// Epochs are compared, so all gateways must number maps alike: the store does. Without a store it is the number of B's own last word that
// the sender knew, beside the one with which B began to drain.
//
// Pure, no state.
#pragma once

#include <cstdint>

namespace fairlead {

inline constexpr unsigned kMostForwards = 1;  // of one call within one attempt
inline constexpr unsigned kMostAttempts = 2;  // by the gateway that the client called: the second after a 421

struct ArrivedCall {
  unsigned hops = 0;               // 0: from a client
  bool is_from_peer = false;       // the hop header is believed of peers only
  std::uint64_t sender_epoch = 0;  // of the sender's map, where it was forwarded
};
struct OwnView {
  std::uint64_t epoch = 0;
  bool is_chosen = false;    // the route says: here
  bool may_run = true;       // has the GPU class, takes calls, does not drain
  bool knows_other = false;  // some other node may take it
};

enum class HopVerdict {
  kRun,
  kForward,      // to the node that the route says, with hops + 1
  kMisdirected,  // 421, with the own map
  kRefuse,       // 400: a hop header from no peer, or of too many hops
  kUnavailable,  // 503: nobody may take it
};

constexpr HopVerdict judge_hop(const ArrivedCall& call, const OwnView& own) {
  if (call.hops > kMostForwards || (call.hops > 0 && !call.is_from_peer)) return HopVerdict::kRefuse;
  if (call.hops == 0) {
    if (own.is_chosen && own.may_run) return HopVerdict::kRun;
    if (own.knows_other) return HopVerdict::kForward;
    return own.may_run ? HopVerdict::kRun : HopVerdict::kUnavailable;
  }
  if (own.may_run && (own.is_chosen || own.epoch <= call.sender_epoch)) return HopVerdict::kRun;
  return own.knows_other ? HopVerdict::kMisdirected : (own.may_run ? HopVerdict::kRun : HopVerdict::kUnavailable);
}

// What the gateway that the client called does after a 421. `attempts`: so far, at least 1.
enum class AfterMisdirected { kTryAgain, kGiveUp };
constexpr AfterMisdirected after_misdirected(unsigned attempts) {
  return attempts < kMostAttempts ? AfterMisdirected::kTryAgain : AfterMisdirected::kGiveUp;
}

}  // namespace fairlead
