// What components take on types of slices, as it was seen, in place of what their authors said.
//
//   said or predicted ──kEnough runs on a type──> seen there; on the other types what was said, times how far off it was where it is seen
//
// Example: an author says 4 ms on 1g and 2 ms on 2g. On a 1g its runs take 6 ms. Plans count on 6 ms on 1g and on 3 ms on 2g, until runs on
// a 2g say better.
//
// Of a component of which nobody said anything, and which was not seen, what was taken for its time follows the others of its function of
// which nobody did: all are taken for equal, until they are seen.
//
// A component is known by its content, so two functions that have the same one share what was seen. The mean is of all runs, and from kWindow
// runs on of about the last kWindow, so that it follows. Types are those of one model of GPU: on a node with two models their times are mixed.
//
// Source: FluidFaaS (HPDC '25), 5.2.1, profiles each component on each slice before it is deployed; here it is served meanwhile.
// Pure. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decide/pipeline/dag.h"

namespace fairlead {

struct ComponentKind {
  std::string content;  // who has the same takes as long; "": unknown, its times stay
  bool is_said = true;  // by its author, or predicted from what the author said
};

class ComponentTimes {
 public:
  static constexpr std::uint64_t kEnough = 5;  // runs, before a mean is believed
  static constexpr std::uint64_t kWindow = 64;
  static constexpr std::size_t kMost = 4096;  // pairs of content and type; of more, who ran longest ago is forgotten

  struct Seen {
    Duration mean{0}, deviation{0};
    std::uint64_t runs = 0;
  };

  void ran(const std::string& content, const std::string& slice, Duration time);
  // What was seen before, or elsewhere; the last that was told counts, until there are kEnough runs here.
  void learn(const std::string& content, const std::string& slice, const Seen& seen);
  // None: there were fewer than kEnough runs.
  std::optional<Seen> seen(const std::string& content, const std::string& slice) const;

  // The DAG with these times, of the types that it has. `kinds`: of its components, in their order. A time that is not seen has 0 in
  // SliceTime::seen, where another type of the component is. What needs no GPU stays as it is.
  Dag applied(Dag dag, const std::vector<ComponentKind>& kinds) const;

 private:
  struct Entry {
    double mean_ns = 0, variance = 0;
    std::uint64_t runs = 0;
    std::optional<Seen> told;  // by learn()
    std::uint64_t used = 0;
  };
  Entry& entry(const std::string& content, const std::string& slice);
  // By how much runs on types that were seen were longer than `said`, as a logarithm. None: none was seen.
  std::optional<double> longer_than(const std::string& content, const std::vector<SliceTime>& said) const;

  std::map<std::pair<std::string, std::string>, Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace fairlead
