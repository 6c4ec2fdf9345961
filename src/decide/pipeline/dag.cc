#include "decide/pipeline/dag.h"

#include <algorithm>
#include <set>
#include <utility>

#include "decide/pipeline/joined_outputs.h"

namespace fairlead {

bool is_component_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxComponentName && std::all_of(name.begin(), name.end(), good);
}

namespace {

constexpr std::string_view kRequest = "input";  // the name under which components read the request

// Looks at a Dag piece by piece; keeps the first thing that is wrong.
class DagCheck {
 public:
  explicit DagCheck(const Dag& dag) : dag_(dag) {}

  std::optional<DagProblem> run() {
    check_size();
    for (std::size_t i = 0; i < dag_.components.size() && !found_; ++i) check_component(dag_.components[i]);
    if (!found_) check_ports("", dag_.inputs, "inputs");
    for (const Component& one : dag_.components) {
      if (!found_) check_edges(one);
    }
    if (!found_) check_outputs();
    if (!found_) check_cycle();
    return std::move(found_);
  }

 private:
  template <typename... Args>
  void refuse(DagProblemKind kind, std::string component, std::string edge, fmt::format_string<Args...> format,
              Args&&... args) {
    if (found_) return;
    std::string where = component.empty() ? "the pipeline" : "component " + component;
    if (!edge.empty()) where += ", edge " + edge;
    found_ = DagProblem{kind, std::move(component), std::move(edge),
                        where + ": " + fmt::format(format, std::forward<Args>(args)...)};
  }

  void check_size() {
    using enum DagProblemKind;
    if (dag_.components.empty()) return refuse(kNoComponents, "", "", "has no components; it needs at least one");
    if (dag_.components.size() > kMaxComponents) {
      return refuse(kTooMany, "", "", "has {} components, {} are possible", dag_.components.size(), kMaxComponents);
    }
    if (dag_.objective < Duration(0) || dag_.objective > kMaxComponentTime) {
      refuse(kObjective, "", "", "the objective is {} ms, it must be between 0 and {}", to_ms(dag_.objective),
             to_ms(kMaxComponentTime));
    }
  }

  void check_component(const Component& one) {
    using enum DagProblemKind;
    if (!is_component_name(one.name) || one.name == kRequest) {
      return refuse(kName, one.name, "", "its name must be 1 to {} letters, digits, _ or -, and not \"{}\"",
                    kMaxComponentName, kRequest);
    }
    if (!names_.insert(one.name).second) return refuse(kName, one.name, "", "another has the same name");
    if (one.inputs.size() > kMaxComponentPorts) {
      return refuse(kTooMany, one.name, "", "has {} inputs, {} are possible", one.inputs.size(), kMaxComponentPorts);
    }
    check_ports(one.name, one.outputs, "outputs");
    if (one.task.empty() == one.program.empty()) {
      return refuse(kWhatRuns, one.name, "", "needs either a kernel task or a program");
    }
    check_memory(one);
    check_times(one);
  }

  void check_ports(const std::string& component, const std::vector<TensorPort>& ports, std::string_view what) {
    using enum DagProblemKind;
    if (ports.size() > kMaxComponentPorts) {
      return refuse(kTooMany, component, "", "has {} {}, {} are possible", ports.size(), what, kMaxComponentPorts);
    }
    std::set<std::string_view> names;
    for (const TensorPort& port : ports) {
      if (!is_component_name(port.name) || !names.insert(port.name).second) {
        return refuse(kName, component, port.name, "names of {} must differ, and be 1 to {} letters, digits, _ or -",
                      what, kMaxComponentName);
      }
      const auto bytes = shape_bytes(port.type, port.shape);
      if (port.shape.size() > kMaxComponentPorts || !bytes || *bytes > kMaxComponentMemory) {
        return refuse(kShape, component, port.name, "its shape has {} dimensions or more bytes than {}",
                      port.shape.size(), kMaxComponentMemory.count());
      }
    }
  }

  void check_memory(const Component& one) {
    using enum DagProblemKind;
    for (const Bytes bytes : {one.weights, one.peak}) {
      if (bytes < Bytes(0) || bytes > kMaxComponentMemory) {
        return refuse(kMemory, one.name, "", "needs {} bytes of memory, 0 to {} are possible", bytes.count(),
                      kMaxComponentMemory.count());
      }
    }
    if (one.peak < one.weights) {
      refuse(kMemory, one.name, "", "its peak is {} bytes, at least its weights' {} are needed", one.peak.count(),
             one.weights.count());
    }
  }

  void check_times(const Component& one) {
    using enum DagProblemKind;
    if (one.times.size() > kMaxSliceTypes) {
      return refuse(kTooMany, one.name, "", "has times of {} slices, {} are possible", one.times.size(),
                    kMaxSliceTypes);
    }
    std::set<std::string_view> slices;
    for (const SliceTime& time : one.times) {
      if (time.slice.empty() || time.slice.size() > kMaxComponentName || !slices.insert(time.slice).second) {
        return refuse(kTime, one.name, "", "the time of slice \"{}\" stands twice, or it has no name", time.slice);
      }
      if (time.mean < Duration(0) || time.mean > kMaxComponentTime || time.deviation < Duration(0) ||
          time.deviation > kMaxComponentTime) {
        return refuse(kTime, one.name, "", "takes {} ms on {}, it must be between 0 and {}", to_ms(time.mean),
                      time.slice, to_ms(kMaxComponentTime));
      }
    }
    if (!one.needs_gpu && one.times.size() > 1) {
      refuse(kTime, one.name, "", "needs no GPU and has times of {} slices; one, of \"host\", is possible",
             one.times.size());
    }
  }

  bool exists(const TensorSource& source) const {
    if (!source.component) return source.port < dag_.inputs.size();
    return *source.component < dag_.components.size() &&
           source.port < dag_.components[*source.component].outputs.size();
  }

  std::string edge(const std::string& input, const TensorSource& source) const {
    return input + " <- " + (exists(source) ? dag_.name_of(source) : "?");
  }

  void check_edges(const Component& one) {
    using enum DagProblemKind;
    std::set<std::string_view> names;
    for (const ComponentInput& input : one.inputs) {
      const std::string whole = one.name + "." + input.name;
      if (!is_component_name(input.name) || !names.insert(input.name).second) {
        return refuse(kName, one.name, whole, "names of inputs must differ, and be 1 to {} letters, digits, _ or -",
                      kMaxComponentName);
      }
      if (input.sources.empty() || input.sources.size() > kMaxComponentPorts) {
        return refuse(kUnknownEdge, one.name, whole, "has {} sources, 1 to {} are possible", input.sources.size(),
                      kMaxComponentPorts);
      }
      for (const TensorSource& source : input.sources) check_source(one.name, whole, input.sources.front(), source);
    }
    if (one.when) check_condition(one);
  }

  // Of a component's input, or of an output of the whole.
  void check_source(const std::string& component, const std::string& port, const TensorSource& first,
                    const TensorSource& source) {
    using enum DagProblemKind;
    if (found_) return;
    if (!exists(source)) return refuse(kUnknownEdge, component, edge(port, source), "its source does not exist");
    const TensorPort &a = dag_.port(first), &b = dag_.port(source);
    if (a.type != b.type || a.shape != b.shape) {
      refuse(kShape, component, edge(port, source), "is {} of {} bytes, where {} is {} of {}",
             element_type_name(b.type), b.bytes().count(), dag_.name_of(first), element_type_name(a.type),
             a.bytes().count());
    }
  }

  void check_condition(const Component& one) {
    using enum DagProblemKind;
    const std::string name = one.name + ".when";
    if (!exists(one.when->value) || !one.when->value.component) {
      return refuse(kUnknownEdge, one.name, edge(name, one.when->value), "it must be the output of a component");
    }
    const TensorPort& port = dag_.port(one.when->value);
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : port.shape) elements *= extent;
    if (elements != 1) {
      return refuse(kShape, one.name, edge(name, one.when->value), "has {} elements, a condition has one", elements);
    }
    if (!(one.when->part >= 0 && one.when->part <= 1)) {
      refuse(kTime, one.name, edge(name, one.when->value), "its part is {}, it must be between 0 and 1",
             one.when->part);
    }
  }

  void check_outputs() {
    using enum DagProblemKind;
    const std::vector<JoinedOutput> outputs = joined_outputs(dag_);
    if (outputs.size() > kMaxComponentPorts || outputs.empty()) {
      return refuse(kTooMany, "", "", "has {} outputs, 1 to {} are possible", outputs.size(), kMaxComponentPorts);
    }
    std::set<std::string_view> names;
    for (const JoinedOutput& output : outputs) {
      if (!is_component_name(output.name) || !names.insert(output.name).second) {
        return refuse(kName, "", output.name, "names of outputs must differ, and be 1 to {} letters, digits, _ or -",
                      kMaxComponentName);
      }
      if (output.entries.size() > kMaxComponentPorts) {
        return refuse(kTooMany, "", output.name, "has {} sources, 1 to {} are possible", output.entries.size(),
                      kMaxComponentPorts);
      }
      const TensorSource& first = dag_.outputs[output.entries.front()].from;
      for (const std::size_t entry : output.entries) check_source("", output.name, first, dag_.outputs[entry].from);
    }
  }

  // Takes away who reads nobody that is left; what stays has a cycle in it.
  void check_cycle() {
    const auto reads = components_read(dag_);
    std::vector<bool> gone(reads.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (gone[i] || !std::all_of(reads[i].begin(), reads[i].end(), [&](std::size_t read) { return gone[read]; })) {
          continue;
        }
        gone[i] = changed = true;
      }
    }
    const auto left = std::find(gone.begin(), gone.end(), false);
    if (left != gone.end()) refuse_cycle(reads, gone, static_cast<std::size_t>(left - gone.begin()));
  }

  // Backwards from one that is left until one comes twice: that one is in the cycle.
  void refuse_cycle(const std::vector<std::vector<std::size_t>>& reads, const std::vector<bool>& gone, std::size_t at) {
    const auto before = [&](std::size_t one) {
      return *std::find_if(reads[one].begin(), reads[one].end(), [&](std::size_t read) { return !gone[read]; });
    };
    std::vector<bool> seen(reads.size());
    for (; !seen[at]; at = before(at)) seen[at] = true;
    std::string way = dag_.components[at].name;
    for (std::size_t one = before(at); one != at; one = before(one)) way += " <- " + dag_.components[one].name;
    const std::string first = dag_.components[at].name;
    refuse(DagProblemKind::kCycle, first, first + " <- " + dag_.components[before(at)].name, "is in a cycle: {} <- {}",
           way, first);
  }

  const Dag& dag_;
  std::set<std::string_view> names_;
  std::optional<DagProblem> found_;
};

using Set = std::vector<std::size_t>;  // of components, in topological order

// One part of a DAG, cut at what every way through it passes.
class Linearisation {
 public:
  Linearisation(const Dag& dag, std::vector<DagGroup>& groups)
      : dag_(dag), reads_(components_read(dag)), groups_(groups) {}

  void cut(const Set& part) {
    Set region;
    for (const std::size_t one : part) {
      if (!all_ways_pass(part, one)) {
        region.push_back(one);
        continue;
      }
      add_region(std::exchange(region, {}), one, part.size());
    }
    add_region(region, std::nullopt, part.size());
  }

 private:
  bool reads_one(std::size_t reader, std::size_t read) const {
    return std::binary_search(reads_[reader].begin(), reads_[reader].end(), read);
  }

  // Whether `one` dominates the end of the part: without it, no last component is reached from a first one.
  bool all_ways_pass(const Set& part, std::size_t one) const {
    std::vector<bool> reached(reads_.size());
    for (const std::size_t at : part) {
      if (at == one) continue;
      bool is_first = true;
      for (const std::size_t before : part) {
        if (!reads_one(at, before)) continue;
        is_first = false;
        if (reached[before]) reached[at] = true;
      }
      if (is_first) reached[at] = true;
      const bool is_last =
          std::none_of(part.begin(), part.end(), [&](std::size_t later) { return reads_one(later, at); });
      if (is_last && reached[at]) return false;
    }
    return true;
  }

  // `whole`: components of the part it was cut from.
  void add_region(const Set& region, std::optional<std::size_t> join, std::size_t whole) {
    if (region.empty()) {
      if (join) groups_.push_back({.components = {*join}, .branches = {}});
      return;
    }
    const bool conditional = std::any_of(region.begin(), region.end(),
                                         [&](std::size_t one) { return dag_.components[one].when.has_value(); });
    if (conditional) {
      Set all = region;
      if (join) all.push_back(*join);
      groups_.push_back({.components = all, .branches = {}});
      return;
    }
    const std::vector<Set> branches = branches_of(region);
    if (branches.size() == 1 && region.size() == whole) {
      groups_.push_back({.components = region, .branches = {}});  // entangled: nothing cuts it, and it is one branch
    } else if (branches.size() == 1) {
      cut(region);
    } else {
      groups_.push_back({.components = region, .branches = branches});
    }
    if (join) groups_.push_back({.components = {*join}, .branches = {}});
  }

  // Components that are joined by an edge, whichever way, are of one branch.
  std::vector<Set> branches_of(const Set& region) const {
    std::vector<Set> branches;
    for (const std::size_t one : region) {
      Set merged;
      for (auto at = branches.begin(); at != branches.end();) {
        const bool joined =
            std::any_of(at->begin(), at->end(), [&](std::size_t other) { return reads_one(one, other); });
        if (joined) merged.insert(merged.end(), at->begin(), at->end());
        at = joined ? branches.erase(at) : at + 1;
      }
      merged.push_back(one);
      branches.push_back(std::move(merged));
    }
    for (Set& branch : branches) {
      std::sort(branch.begin(), branch.end(), [&](std::size_t a, std::size_t b) {
        return std::find(region.begin(), region.end(), a) < std::find(region.begin(), region.end(), b);
      });
    }
    std::sort(branches.begin(), branches.end(), [&](const Set& a, const Set& b) {
      return std::find(region.begin(), region.end(), a[0]) < std::find(region.begin(), region.end(), b[0]);
    });
    return branches;
  }

  const Dag& dag_;
  const std::vector<std::vector<std::size_t>> reads_;
  std::vector<DagGroup>& groups_;
};

}  // namespace

Bytes TensorPort::bytes() const {
  return shape_bytes(type, shape).value_or(Bytes(0));
}

std::optional<std::size_t> Dag::find(std::string_view component) const {
  const auto found =
      std::find_if(components.begin(), components.end(), [&](const Component& one) { return one.name == component; });
  if (found == components.end()) return std::nullopt;
  return static_cast<std::size_t>(found - components.begin());
}

const TensorPort& Dag::port(const TensorSource& source) const {
  return source.component ? components[*source.component].outputs[source.port] : inputs[source.port];
}

std::string Dag::name_of(const TensorSource& source) const {
  return (source.component ? components[*source.component].name : std::string(kRequest)) + "." + port(source).name;
}

std::string_view dag_problem_name(DagProblemKind kind) {
  constexpr std::string_view kNames[] = {"no components", "too many", "name", "unknown edge", "cycle",
                                         "shape",         "memory",   "time", "what runs",    "objective"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<DagProblem> check_dag(const Dag& dag) {
  return DagCheck(dag).run();
}

std::vector<std::vector<std::size_t>> components_read(const Dag& dag) {
  std::vector<std::vector<std::size_t>> reads(dag.components.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto add = [&](const TensorSource& source) {
      if (source.component) reads[i].push_back(*source.component);
    };
    for (const ComponentInput& input : dag.components[i].inputs) {
      for (const TensorSource& source : input.sources) add(source);
    }
    if (dag.components[i].when) add(dag.components[i].when->value);
    std::sort(reads[i].begin(), reads[i].end());
    reads[i].erase(std::unique(reads[i].begin(), reads[i].end()), reads[i].end());
  }
  return reads;
}

std::vector<std::size_t> topological_order(const Dag& dag) {
  const auto reads = components_read(dag);
  std::vector<std::size_t> order;
  std::vector<bool> placed(reads.size());
  while (order.size() < reads.size()) {
    std::size_t next = 0;
    while (placed[next] ||
           !std::all_of(reads[next].begin(), reads[next].end(), [&](std::size_t read) { return placed[read]; })) {
      ++next;
    }
    placed[next] = true;
    order.push_back(next);
  }
  return order;
}

std::vector<DagGroup> linearise(const Dag& dag) {
  std::vector<DagGroup> groups;
  Linearisation(dag, groups).cut(topological_order(dag));
  return groups;
}

}  // namespace fairlead
