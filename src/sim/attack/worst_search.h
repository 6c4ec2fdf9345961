// A search for the points of a box where any of several scores is greatest, of a function that is known by its values only.
//
// The first part of the evaluations is spread at random over the box, a share of it on corners, since the worst is often at
// an edge. The others start from the best points of one score, each score in its turn: some coordinates of such a point are
// moved a little, moved anywhere, or taken from another good point. (A (mu + lambda) evolution strategy, as in Beyer and
// Schwefel, "Evolution strategies", 2002, with as many populations as scores.)
//
// Example: the score of (x, y) is -(x - 1)^2 - (y + 2)^2 in the box from -2 to 2: some hundred evaluations come within 0.2 of (1, -2).
//
// Threads: `score` is called on several at a time. Determinism: the same options and scores give the same points, whatever
// the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fairlead::sim {

struct SearchOptions {
  std::size_t coordinates = 1, scores = 1;
  double least = -2, most = 2;  // of every coordinate
  std::size_t evaluations = 2000;
  std::uint64_t seed = 1;
  unsigned threads = 0;  // 0: as many as there are cores
};

struct ScoredPoint {
  std::vector<double> at;
  std::vector<double> scores;
};

using Score = std::function<std::vector<double>(const std::vector<double>& at)>;

// Every point that was evaluated, in that order. `progress`: called with the part of all that is done, on the caller's
// thread. REQUIRES: at least one coordinate, score and evaluation; `score` gives SearchOptions::scores values or more, of which
// those beyond are only kept.
std::vector<ScoredPoint> search_worst(const SearchOptions& options, const Score& score,
                                      const std::function<void(double)>& progress);

}  // namespace fairlead::sim
