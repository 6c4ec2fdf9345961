// A graph of functions: what a client sends (docs/how-to/graphs.md). Plain values. A node is one invocation; edges are not said but
// follow from the objects that nodes read and write.
//
//   make ──writes "r1/x"──> add ──writes "r1/sum"──> total        "r1/x" is read by add, so add runs after make
//
// The same graph may run many times: "{run}" in its keys and payloads stands for the id of the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

// Bounds that input is checked against. Errors quote them.
inline constexpr std::size_t kMaxGraphNodes = 4096;
inline constexpr std::size_t kMaxGraphNodeNameLength = 128;
inline constexpr std::size_t kMaxGraphNodeKeys = 4096;  // that one node reads, and that it writes
inline constexpr std::size_t kMaxGraphKeys = 32'768;    // of all nodes together, names in `after` among them
inline constexpr std::size_t kMaxGraphNameLength = 128;
inline constexpr std::size_t kMaxGraphRunIdLength = 64;
inline constexpr unsigned kMaxGraphConcurrency = 1024;
inline constexpr unsigned kMaxGraphNodeRetries = 5;
inline constexpr Duration kMinGraphDeadline = std::chrono::milliseconds(1);
inline constexpr Duration kMaxGraphDeadline = std::chrono::hours(24);

struct GraphNode {
  std::string name;
  std::string function;
  std::string payload;  // JSON
  std::vector<std::string> reads, writes;
  std::vector<std::string> after;  // names of nodes
  unsigned retries = 0;
  // What the payload would read and write if the function were a kernel task.
  std::vector<std::string> call_reads, call_writes;

  bool operator==(const GraphNode&) const = default;
};

struct Graph {
  std::string name;
  std::string run;  // id of the run; empty: whoever runs it chooses
  std::vector<GraphNode> nodes;
  unsigned concurrency = 64;  // nodes that run at a time
  Duration deadline = std::chrono::seconds(900);
  bool resume = false;

  bool operator==(const Graph&) const = default;
};

// "{run}" in keys and payloads becomes `run`. REQUIRES: `run` is valid, so that it is the same text inside of JSON.
void name_run(Graph& graph, const std::string& run);
// The node's function is a kernel task: what its call names is read and written.
void use_call_keys(GraphNode& node);

Status validate_run_id(std::string_view id);  // [A-Za-z0-9-_]{1,kMaxGraphRunIdLength}

}  // namespace fairlead
