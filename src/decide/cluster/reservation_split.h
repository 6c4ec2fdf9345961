// Reserved concurrency of one function over the nodes: a whole number R, split by where its calls arrive.
//
// Idea. Shares are in proportion to the last second's arrivals, with largest remainders, so they sum to R exactly. A share that grows is granted
// only from what is free: a node that is to shrink holds its old share until it has said that it applies the new one, or is lost for good. So
// at no moment do nodes hold more than R together, whatever is under way; and once all have answered they hold exactly R.
//
// Example. R = 10, nodes A and B with 30 and 10 arrivals: 8 and 2 (7.5 and 2.5; the tie goes to the first). Next 10 and 30: A is told 2 and
// holds 8 until it says so; B stays at 2. A says so: B is told 8.
//
// The price: for up to two gossip periods after a shift some of R is granted to nobody.
//
// Pure. Not thread-safe. Determinism: of the calls.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "decide/cluster/node_id.h"

namespace fairlead {

class ReservationSplit {
 public:
  explicit ReservationSplit(std::uint64_t reserved) : reserved_(reserved) {}

  void join(NodeId node);  // with nothing; no effect when it is there
  // It is dead and runs nothing more: what it held is free.
  void lose(NodeId node);
  // It applies what it was told under that number. An older number, or a node that is not there, is ignored: what was told since may be
  // more.
  void applies(NodeId node, std::uint64_t number);
  // Aims anew. `arrivals`: of the last second, by node; nodes not named had none. None anywhere: equal parts.
  void aim(const std::map<NodeId, std::uint64_t>& arrivals);

  // What the node is told now: it may use no more than its share. It ignores numbers below the last. Share 0, number 0: it is not there.
  struct Told {
    std::uint64_t share = 0, number = 0;
  };
  Told told(NodeId node) const;
  std::uint64_t held() const;  // by all, at most `reserved`
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t told_in_all() const;

 private:
  struct Part {
    std::uint64_t aim = 0;
    std::uint64_t told = 0;
    std::uint64_t number = 0;  // of `told`
    std::uint64_t held = 0;    // the most that it may be using
  };
  static void tell(Part& part, std::uint64_t share);
  void grant();  // what is free, to those below their aims

  std::uint64_t reserved_;
  std::map<NodeId, Part> parts_;
};

// `whole` in proportion to `weights`, by largest remainders; ties to the first. All weights 0: equal parts. REQUIRES: weights is not empty.
std::vector<std::uint64_t> in_proportion(std::uint64_t whole, const std::vector<std::uint64_t>& weights);

}  // namespace fairlead
