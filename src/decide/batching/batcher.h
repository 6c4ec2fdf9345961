// Requests of one kind that one call of a function can answer together: which go when.
//
// Idea. A GPU answers 32 rows in little more time than one. So while a call is under way, what arrives meanwhile waits and goes together, in
// order of arrival; where nothing is under way a request goes at once, and waits for nobody. (Adaptive batching: Clipper, Crankshaw et al. 2017;
// that the wait ends with the call before is Nagle's rule, RFC 896.)
//
//   rows arrive      1    1 1  1          1
//   calls            [1 ──────────][3 ──────────][1 ──...          at most `rows` in a call
//
// Nobody waits for longer than a call and a half take, as the last calls did (15 ms at first), nor than it said. So a call that hangs holds nobody up, and several
// are under way where requests fill calls or wait for too long: the node sees them queue then, and starts further instances.
//
// Example: calls of 10 ms and 16 clients, a row each, rows = 32: a call in 10 ms answers 16 of them, and not 1.
//
// Time: handed in, does not go back. Determinism: the same events give the same calls. Threads: not thread-safe. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"

namespace fairlead {

class Batcher {
 public:
  using Request = std::uint64_t;       // as the caller numbers them
  using Batch = std::vector<Request>;  // of one call, in order of arrival; not empty
  using Batches = std::vector<Batch>;  // to be called now

  // `rows`: of a call, at least 1.
  explicit Batcher(std::size_t rows) : rows_(rows) {}

  // It waits for `most` at most. REQUIRES: 0 < rows <= those of a call.
  Batches add(Instant now, Request request, std::size_t rows, Duration most);
  // A call that this gave out is over. It ran since `began`; none: it did not run, or nobody waited for its end.
  Batches ended(Instant now, std::optional<Instant> began);
  // Due at next_tick(); earlier or later does no harm.
  Batches tick(Instant now);
  // It no longer waits. False: it did not.
  bool gone(Request request);

  std::optional<Instant> next_tick() const;  // none: nothing waits
  Duration patience() const { return mean_ * 3 / 2; }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t under_way() const { return under_way_; }  // calls
  bool empty() const { return waiting_.empty() && under_way_ == 0; }

  static constexpr Duration kFirstMean = std::chrono::milliseconds(10);  // before any has ended
  static constexpr Duration kMostMean = std::chrono::seconds(1);

 private:
  struct Waits {
    Request request = 0;
    std::size_t rows = 0;
    Instant latest;
  };

  Batch take_all();

  const std::size_t rows_;
  std::multiset<Instant> latest_;  // of those that wait
  std::deque<Waits> waiting_;      // together at most rows_ - 1 of them
  std::size_t waiting_rows_ = 0;
  std::size_t under_way_ = 0;
  Duration mean_ = kFirstMean;  // of a call
};

}  // namespace fairlead
