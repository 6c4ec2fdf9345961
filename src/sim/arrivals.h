// When do invocations arrive? A source gives them one at a time, in order of time, so that a trace of a day takes no more
// memory than one of a minute.
//
// Threads: not thread-safe. Determinism: the same seed gives the same arrivals on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "decide/queueing/indexed_heap.h"

namespace fairlead::sim {

struct Arrival {
  Instant at;
  std::size_t function = 0;              // index into the scenario's functions
  std::optional<Duration> service = {};  // where a trace says how long this one runs
};

class ArrivalSource {
 public:
  virtual ~ArrivalSource() = default;
  virtual std::optional<Arrival> next() = 0;  // empty: no more
  // A closed loop sends another of the same function when one is answered: when.
  virtual std::optional<Instant> after_answer(Instant /*now*/, std::size_t /*function*/) { return std::nullopt; }
};

// One function's stream: `rate` per second on average, gaps with a coefficient of variation `cv` (1: exponential; above:
// hyperexponential with balanced means, so bursts; below: part of each gap is fixed; 0: a metronome), from `begin` to `end`.
// `together` invocations arrive at each moment (the gaps between moments grow as much, so that the rate stays), and at most
// `most` in all.
struct Stream {
  std::size_t function = 0;
  double rate = 1.0;
  double cv = 1.0;
  Duration begin{0};
  Duration end = Duration::max();
  std::uint64_t together = 1;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

// How the load changes over time: a factor on all rates, linear between points. Empty: 1 throughout. {0 s: 1}, {60 s: 1},
// {90 s: 4}: steady for a minute, then rising to four times the rate; the last factor stays.
struct LoadPoint {
  Duration at;
  double factor = 1.0;
};

// An open loop of independent streams.
class OpenLoop final : public ArrivalSource {
 public:
  OpenLoop(std::vector<Stream> streams, std::vector<LoadPoint> load, std::uint64_t seed);
  std::optional<Arrival> next() override;

 private:
  struct Next {
    double at;  // seconds of load: time with the factor integrated
    std::uint32_t stream;
    bool operator<(const Next& other) const { return at != other.at ? at < other.at : stream < other.stream; }
  };
  struct Progress {
    std::uint64_t sent = 0;
    std::uint64_t together = 0;  // that still arrive at this moment
  };
  double gap(std::size_t stream);
  double load_at(double seconds) const;    // seconds of load until then
  double time_of_load(double load) const;  // the inverse

  std::vector<Stream> streams_;
  std::vector<LoadPoint> load_;
  std::vector<Rng> rngs_;
  std::vector<Progress> progress_;  // by stream
  IndexedHeap<Next> heap_;          // of streams that have not ended
};

// `clients` per function, each with one invocation at a time and a pause between answer and next.
class ClosedLoop final : public ArrivalSource {
 public:
  ClosedLoop(std::size_t functions, std::size_t clients, Duration think, std::uint64_t seed);
  std::optional<Arrival> next() override;
  std::optional<Instant> after_answer(Instant now, std::size_t function) override;

 private:
  const std::size_t functions_, clients_;
  const Duration think_;
  Rng rng_;
  std::size_t started_ = 0;
};

}  // namespace fairlead::sim
