// One capture sequence as a state machine: which streams take part, and after which nodes the next operation of each
// will come. Pure: streams are keys, nodes are numbers, nothing is executed.
//
// Example: begin on S. S: {}. An operation on S becomes node 0; S: {0}. Event E is recorded on S: it stands for {0}.
// T waits for E: T joins, T: {0}. Operations on both: 1 after 0 on S, 2 after 0 on T; S: {1}, T: {2}. To end on S now
// would lose 2, which nothing of S comes after: unjoined. After S waits for an event of T, S: {1, 2}, and it may end.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "softgpu/driver/graph/topology.h"

namespace softgpu::graph {

using StreamKey = const void*;
using ThreadKey = std::uint64_t;
using Links = std::vector<Topology::Link>;

enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };

class CaptureState {
 public:
  enum class End { kDone, kUnmatched, kWrongThread, kInvalidated, kUnjoined };

  CaptureState(CaptureMode mode, StreamKey origin, ThreadKey thread, Links first = {});

  CaptureMode mode() const { return mode_; }
  ThreadKey thread() const { return thread_; }
  bool valid() const { return valid_; }
  void invalidate() { valid_ = false; }

  bool contains(StreamKey stream) const { return streams_.contains(stream); }
  // What the stream's next operation comes after. REQUIRES: contains(stream).
  const Links& next(StreamKey stream) const { return streams_.at(stream); }
  // An operation of the stream has become `node`. REQUIRES: contains(stream).
  void advance(StreamKey stream, NodeId node);
  // The stream waits for what an event stands for; it takes part from now on.
  void join(StreamKey stream, const Links& event);
  // The program changes what comes next: adds, or puts in place. Nodes it takes out need not be joined any more.
  void add_next(StreamKey stream, const Links& links) { join(stream, links); }
  void set_next(StreamKey stream, Links links);
  // The stream ends without having been joined.
  void forget(StreamKey stream);

  // Whether a thread in `thread_mode` may not call what would be missing from the graph.
  bool prohibits(ThreadKey thread, CaptureMode thread_mode) const;

  // What comes of ending on `stream` in `thread`. A sequence that is unmatched or in the wrong thread goes on.
  End end(StreamKey stream, ThreadKey thread, const Topology& graph) const;

 private:
  bool joined(const Topology& graph) const;

  const CaptureMode mode_;
  const StreamKey origin_;
  const ThreadKey thread_;
  bool valid_ = true;
  std::map<StreamKey, Links> streams_;
};

}  // namespace softgpu::graph
