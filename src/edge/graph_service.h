// What edges ask of whoever runs graphs of functions. Implemented by src/node, faked in their tests.
//
// Threads: calls and callbacks on the io_context's thread. A callback may run inside the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "decide/graph/graph.h"
#include "decide/graph/graph_run.h"

namespace fairlead {

inline constexpr std::size_t kMaxGraphBytes = 4 << 20;        // of a graph as it is sent
inline constexpr std::size_t kMaxKeptResultBytes = 64 << 10;  // of one node

struct GraphNodeStatus {
  std::string name, function;
  GraphNodeState state = GraphNodeState::kWaiting;
  unsigned attempts = 0;
  std::optional<std::int64_t> started_ms, ended_ms;  // since 1970
  std::string error;
  std::optional<std::string> result;        // what the function answered
  std::optional<std::size_t> result_bytes;  // of one that was too large to keep
};

struct GraphRunStatus {
  std::string run, tenant, name;
  GraphRunState state = GraphRunState::kRunning;
  std::string error;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> ended_ms;
  std::size_t waiting = 0, running = 0, done = 0, failed = 0, skipped = 0;
  std::vector<GraphNodeStatus> nodes;  // in the order of the graph; empty in lists
};

struct GraphCheck {
  std::size_t nodes = 0;
  std::vector<std::string> inputs;  // outside inputs, by key
};

struct GraphCounters {
  std::size_t active = 0;
  std::uint64_t runs_done = 0, runs_failed = 0, runs_cancelled = 0;
  std::uint64_t nodes_done = 0, nodes_failed = 0, nodes_skipped = 0;
};

class GraphService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~GraphService() = default;

  // Whether it could run now. kInvalidArgument, kAlreadyExists (an object that would be written), kNotFound (a function).
  virtual Result<GraphCheck> check(const std::string& tenant, Graph graph) = 0;
  // The run's id. As check(); also kAlreadyExists for a run of this id that goes on, kResourceExhausted, kUnavailable.
  virtual Result<std::string> submit(const std::string& tenant, Graph graph) = 0;
  // When the run has ended, or more than `ended` of its nodes have, or patience is over. kNotFound.
  virtual void wait(const std::string& tenant, const std::string& run, std::optional<std::size_t> ended,
                    Duration patience, Callback<GraphRunStatus> done) = 0;
  virtual std::vector<GraphRunStatus> list(const std::string& tenant) = 0;  // the newest first
  virtual Result<GraphRunStatus> cancel(const std::string& tenant, const std::string& run) = 0;
  virtual GraphCounters counters() const = 0;
};

}  // namespace fairlead
