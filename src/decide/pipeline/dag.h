// What a function of several models is made of: components, what each reads of whom, what each needs of a slice.
//
//   image ──> deblur ──┬──(is_low)──> sr ──┐
//                      └───────────────────┴──> background ──> segmentation ──> classification
//
// A component has named inputs. An input has one source, or several, of which it takes the first that ran: that is a join. A component with a
// condition runs where a scalar output of another is as it says; one all of whose sources for an input did not run does not run either.
//
// Linearisation (FluidFaaS, 5.2.2). A component that every way from the function's first components to its last passes through is a dominator
// of the end; between two of them lies a region. A region becomes
//
//   - one group together with its join, where a condition is in it: which branch runs is known only while the function runs;
//   - one parallel group of its branches, where none is: these may run on slices side by side; the join is a group of its own;
//   - the groups of its own linearisation, where it is one branch (a value that passes over it does not make it two).
//
// The example: {deblur} {sr, background} {segmentation} {classification}. Groups are in an order in which each needs only earlier ones, so
// every cut of the sequence into consecutive parts is a pipeline.
//
// Source: FluidFaaS (HPDC '25), sections 5.2.1, 5.2.2, Table 4. What is read from the request counts as no edge.
// Pure values and free functions. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/kernel_task.h"

namespace fairlead {

inline constexpr std::size_t kMaxComponents = 64;
inline constexpr std::size_t kMaxComponentPorts = 16;  // inputs, outputs, of a component or of the whole function
inline constexpr std::size_t kMaxComponentName = 64;
inline constexpr std::size_t kMaxSliceTypes = 16;
inline constexpr Bytes kMaxComponentMemory = Bytes(std::int64_t{1} << 40);  // weights, peak, a tensor
inline constexpr Duration kMaxComponentTime = std::chrono::hours(1);

// 1 to kMaxComponentName letters, digits, _ or -.
bool is_component_name(std::string_view name);

// A tensor of a fixed shape. kBytes with a shape {n}: n bytes at most.
struct TensorPort {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;  // empty: a scalar
  bool operator==(const TensorPort&) const = default;

  Bytes bytes() const;  // of a Dag that was checked; 0 where nothing says so
};

// "input.image": component is none; "sr.y": component 3, port 0 of its outputs.
struct TensorSource {
  std::optional<std::size_t> component;
  std::size_t port = 0;
  bool operator==(const TensorSource&) const = default;
};

struct ComponentInput {
  std::string name;
  std::vector<TensorSource> sources;  // several: the first that ran
  bool operator==(const ComponentInput&) const = default;
};

// Runs only where this scalar is (not) zero.
struct BranchCondition {
  TensorSource value;
  bool is = true;
  double part = 1;  // of the requests for which it runs; 1 where it is not known: plans then count on it
  bool operator==(const BranchCondition&) const = default;
};

// What was measured on a type of slice, or predicted for it: seen is 0 then.
struct SliceTime {
  std::string slice;  // "1g"
  Duration mean{0}, deviation{0};
  std::uint64_t seen = 0;
  bool operator==(const SliceTime&) const = default;
};

struct Component {
  std::string name;
  std::string task;     // folder of a kernel task; or
  std::string program;  // of a component that needs no GPU
  bool needs_gpu = true;
  std::vector<ComponentInput> inputs;
  std::vector<TensorPort> outputs;
  std::optional<BranchCondition> when;
  Bytes weights{0};
  Bytes peak{0};                 // the most it holds while it runs, weights included
  std::vector<SliceTime> times;  // of one without a GPU: at most one, of slice "host"

  bool operator==(const Component&) const = default;
};

struct DagOutput {
  std::string name;
  TensorSource from;
  bool operator==(const DagOutput&) const = default;
};

struct Dag {
  std::string name;
  Duration objective{0};  // 0: none
  std::vector<TensorPort> inputs;
  std::vector<Component> components;
  std::vector<DagOutput> outputs;
  bool operator==(const Dag&) const = default;

  std::optional<std::size_t> find(std::string_view component) const;
  const TensorPort& port(const TensorSource& source) const;  // REQUIRES: it exists
  std::string name_of(const TensorSource& source) const;     // "sr.y"
};

enum class DagProblemKind {
  kNoComponents,
  kTooMany,      // components or ports
  kName,         // empty, too long, twice, "input", letters
  kUnknownEdge,  // a source that is no input and no output
  kCycle,
  kShape,     // a join of different tensors, a condition that is no scalar, more bytes than there may be
  kMemory,    // negative, above the bound, a peak below the weights
  kTime,      // negative, above the bound, twice for a slice, none for one that needs a GPU
  kWhatRuns,  // neither a task nor a program, or both
  kObjective,
};
std::string_view dag_problem_name(DagProblemKind kind);  // "cycle", "unknown edge", ...

// `component` and `edge` ("sr.x <- deblur.y") are empty where it is the whole function's.
struct DagProblem {
  DagProblemKind kind = DagProblemKind::kName;
  std::string component, edge;
  std::string message;  // with both, the value and the bound
};

// The first problem, in the order of the components. A Dag without one is what everything below requires.
std::optional<DagProblem> check_dag(const Dag& dag);

// Components in an order in which each comes after all it reads; of several, the first listed. REQUIRES: no problem.
std::vector<std::size_t> topological_order(const Dag& dag);
// For each component, those whose outputs it reads, its condition's included; sorted. REQUIRES: no unknown edge.
std::vector<std::vector<std::size_t>> components_read(const Dag& dag);

struct DagGroup {
  std::vector<std::size_t> components;  // in topological order
  // Two or more, where it is parallel: what each branch has, in topological order.
  std::vector<std::vector<std::size_t>> branches;
  bool operator==(const DagGroup&) const = default;
};
// REQUIRES: check_dag(dag) finds nothing.
std::vector<DagGroup> linearise(const Dag& dag);

}  // namespace fairlead
