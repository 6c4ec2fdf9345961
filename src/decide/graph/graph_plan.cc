#include "decide/graph/graph_plan.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

#include "model/function.h"
#include "model/kernel_task.h"

namespace fairlead {
namespace {

constexpr std::size_t kNodesOfCycleNamed = 16;

bool is_node_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_.:/").find(c) != std::string_view::npos;
}

void sort_out_repeats(std::vector<std::uint32_t>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph) {}

  Result<GraphPlan> plan() {
    if (Status valid = check_graph(); !valid) return fail(valid.error());
    for (const GraphNode& node : graph_.nodes) {
      if (Status valid = check_node(node); !valid) return fail(valid.error());
    }
    if (Status written = note_writers(); !written) return fail(written.error());
    plan_.needs.resize(graph_.nodes.size());
    plan_.feeds.resize(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Status linked = link(i); !linked) return fail(linked.error());
    }
    for (auto& [key, readers] : plan_.inputs) sort_out_repeats(readers);
    if (Status acyclic = check_cycles(); !acyclic) return fail(acyclic.error());
    return std::move(plan_);
  }

 private:
  Status check_graph() {
    if (graph_.nodes.empty() || graph_.nodes.size() > kMaxGraphNodes) {
      return fail(Errc::kInvalidArgument, "nodes has {} members; 1 to {} are possible, split larger graphs",
                  graph_.nodes.size(), kMaxGraphNodes);
    }
    if (graph_.name.size() > kMaxGraphNameLength) {
      return fail(Errc::kInvalidArgument, "name has {} bytes; at most {} are possible", graph_.name.size(),
                  kMaxGraphNameLength);
    }
    if (graph_.concurrency < 1 || graph_.concurrency > kMaxGraphConcurrency) {
      return fail(Errc::kInvalidArgument, "concurrency is {}; it must be between 1 and {}", graph_.concurrency,
                  kMaxGraphConcurrency);
    }
    if (graph_.deadline < kMinGraphDeadline || graph_.deadline > kMaxGraphDeadline) {
      return fail(Errc::kInvalidArgument, "deadline_seconds is {}; it must be between {} and {}",
                  to_seconds(graph_.deadline), to_seconds(kMinGraphDeadline), to_seconds(kMaxGraphDeadline));
    }
    std::size_t keys = 0;
    for (const GraphNode& node : graph_.nodes) keys += node.reads.size() + node.writes.size() + node.after.size();
    if (keys > kMaxGraphKeys) {
      return fail(Errc::kInvalidArgument,
                  "nodes: all together have {} elements in reads, writes and after; at most {} are possible", keys,
                  kMaxGraphKeys);
    }
    return check_names();
  }

  Status check_names() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::string& name = graph_.nodes[i].name;
      if (name.empty() || name.size() > kMaxGraphNodeNameLength ||
          !std::all_of(name.begin(), name.end(), is_node_name_character)) {
        return fail(Errc::kInvalidArgument,
                    "nodes: a node is called '{}'; a name has 1 to {} letters, digits and '-_.:/'",
                    name.substr(0, 2 * kMaxGraphNodeNameLength), kMaxGraphNodeNameLength);
      }
      if (!by_name_.emplace(name, i).second) {
        return fail(Errc::kInvalidArgument, "nodes: two nodes are called '{}'; names must differ", name);
      }
    }
    return {};
  }

  static Status check_node(const GraphNode& node) {
    if (node.payload.size() > kMaxSyncPayloadBytes) {
      return fail(Errc::kTooLarge, "nodes.{}.payload has {} bytes; an invocation may have at most {}", node.name,
                  node.payload.size(), kMaxSyncPayloadBytes);
    }
    if (node.retries > kMaxGraphNodeRetries) {
      return fail(Errc::kInvalidArgument, "nodes.{}.retries is {}; it must be between 0 and {}", node.name,
                  node.retries, kMaxGraphNodeRetries);
    }
    if (Status valid = check_keys(node, "reads", node.reads); !valid) return valid;
    return check_keys(node, "writes", node.writes);
  }

  static Status check_keys(const GraphNode& node, std::string_view field, const std::vector<std::string>& keys) {
    if (keys.size() > kMaxGraphNodeKeys) {
      return fail(Errc::kInvalidArgument, "nodes.{}.{} has {} keys; at most {} are possible", node.name, field,
                  keys.size(), kMaxGraphNodeKeys);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Status valid = validate_object_key(keys[i]);
      if (!valid) {
        return fail(Errc::kInvalidArgument, "nodes.{}.{}[{}]: {}", node.name, field, i, valid.error().message);
      }
    }
    return {};
  }

  Status note_writers() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& key : graph_.nodes[i].writes) {
        const std::uint32_t writer = plan_.writers.emplace(key, i).first->second;
        if (writer == i) continue;
        return fail(Errc::kInvalidArgument,
                    "nodes.{}.writes has '{}', which node '{}' writes too; an object is written once",
                    graph_.nodes[i].name, key, graph_.nodes[writer].name);
      }
    }
    return {};
  }

  Status link(std::uint32_t i) {
    const GraphNode& node = graph_.nodes[i];
    std::vector<std::uint32_t>& needs = plan_.needs[i];
    for (const std::string& key : node.reads) {
      const auto writer = plan_.writers.find(key);
      if (writer == plan_.writers.end()) {
        plan_.inputs[key].push_back(i);
      } else if (writer->second == i) {
        return fail(Errc::kInvalidArgument,
                    "nodes.{}.reads has '{}', which the node itself writes; objects do not change", node.name, key);
      } else {
        needs.push_back(writer->second);
      }
    }
    for (const std::string& name : node.after) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end() || found->second == i) {
        return fail(Errc::kInvalidArgument, "nodes.{}.after has '{}'; it must be the name of another node", node.name,
                    name);
      }
      needs.push_back(found->second);
    }
    sort_out_repeats(needs);
    for (const std::uint32_t other : needs) plan_.feeds[other].push_back(i);
    return {};
  }

  Status check_cycles() const {
    std::vector<std::size_t> left(graph_.nodes.size());
    std::deque<std::uint32_t> free;
    for (std::uint32_t i = 0; i < left.size(); ++i) {
      left[i] = plan_.needs[i].size();
      if (left[i] == 0) free.push_back(i);
    }
    std::size_t taken = 0;
    for (; !free.empty(); ++taken) {
      for (const std::uint32_t next : plan_.feeds[free.front()]) {
        if (--left[next] == 0) free.push_back(next);
      }
      free.pop_front();
    }
    if (taken == left.size()) return {};
    return fail(Errc::kInvalidArgument, "nodes: {}: each of them would wait for the next for ever; break the cycle",
                cycle_among(left));
  }

  // "'a' needs 'b' needs 'a'". REQUIRES: each node with something left needs another such node.
  std::string cycle_among(const std::vector<std::size_t>& left) const {
    const auto is_left = [&](std::uint32_t i) { return left[i] > 0; };
    const auto next_of = [&](std::uint32_t i) {
      return *std::find_if(plan_.needs[i].begin(), plan_.needs[i].end(), is_left);
    };
    std::uint32_t at = 0;
    while (!is_left(at)) ++at;
    for (std::size_t step = 0; step < left.size(); ++step) at = next_of(at);  // into the cycle, past what leads there
    std::uint32_t first = at;
    for (std::size_t step = 0; step < left.size(); ++step) first = std::min(first, at = next_of(at));
    at = first;
    std::string text = "'" + graph_.nodes[first].name + "'";
    std::size_t named = 1;
    do {
      at = next_of(at);
      if (++named <= kNodesOfCycleNamed || at == first) text += " needs '" + graph_.nodes[at].name + "'";
      if (named == kNodesOfCycleNamed + 1 && at != first) text += " needs ...";
    } while (at != first);
    return text;
  }

  const Graph& graph_;
  std::map<std::string, std::uint32_t> by_name_;
  GraphPlan plan_;
};

}  // namespace

Result<GraphPlan> plan_graph(const Graph& graph) {
  return Planner(graph).plan();
}

}  // namespace fairlead
