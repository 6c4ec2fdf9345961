// Executable graphs: the steps of a graph (flatten.h), ready to run, and the plan (plan.h) by which streams run them.
//
// A launch submits one operation per segment of the plan. Lane 0 is the stream of the launch; further lanes are streams
// that the executable graph owns. With more than one lane an empty operation on the stream opens the launch, and another
// closes it when all lanes are done, so that to the stream a launch is one thing. Launches of one executable graph follow
// each other, whatever their streams.
//
// What a launch runs does not change under it: an update while a launch is in flight works on a copy.
#pragma once

#include "softgpu/driver/graph/flatten.h"
#include "softgpu/driver/graph/plan.h"
#include "softgpu/driver/graph/update.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

namespace softgpu::graph {

// Why a graph was not instantiated, in the driver's terms.
struct InstantiateError {
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  CUgraphNode node = nullptr;
};

class Executable {
 public:
  static CUresult make(CUgraph graph, std::uint64_t flags, std::unique_ptr<Executable>& made, InstantiateError& error);
  // Launches in flight finish.
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  std::uint64_t flags() const { return flags_; }

  // Queues one execution. INVALID_VALUE when memory that an earlier launch allocated has not been freed,
  // CONTEXT_IS_DESTROYED when a node's context is gone. Thread-safe.
  CUresult launch(const StreamUse& use);

  // All updates hold for later launches only. Thread-safe.
  // GRAPH_EXEC_UPDATE_FAILURE, explained in `info`, when the graph differs in more than parameters.
  CUresult update(CUgraph graph, CUgraphExecUpdateResultInfo& info);
  // `node` is of the graph this was made from, or of one inside it; else INVALID_VALUE, as for a change that is not
  // allowed.
  CUresult set_payload(CUgraphNode node, Payload payload);
  CUresult set_child(CUgraphNode node, CUgraph child);
  CUresult set_enabled(CUgraphNode node, bool enabled);
  CUresult get_enabled(CUgraphNode node, bool& enabled);
  CUresult get_payload(CUgraphNode node, Payload& payload);

  // What it executes now, as a graph.
  CUgraph as_graph();

 private:
  struct Program {
    std::vector<Step> steps;
    Plan plan;
    UserReferences references;
  };
  struct UsedContext {
    CUcontext context = nullptr;
    std::uint64_t id = 0;
  };
  using Records = std::vector<std::pair<CUevent, std::shared_ptr<CUevent_st::Record>>>;

  Executable(std::uint64_t flags, std::shared_ptr<std::atomic<int>> count) : flags_(flags), count_(std::move(count)) {}
  Program& writable() SOFTGPU_REQUIRES(mutex_);
  Step* find(CUgraphNode node) SOFTGPU_REQUIRES(mutex_);
  CUresult replace(std::size_t first, std::vector<Step> steps, CUgraphExecUpdateResultInfo& info)
      SOFTGPU_REQUIRES(mutex_);
  void note_contexts() SOFTGPU_REQUIRES(mutex_);
  CUresult check_contexts() const;
  CUresult check_memory() const SOFTGPU_REQUIRES(mutex_);
  void change_memory() const SOFTGPU_REQUIRES(mutex_);
  void prepare_lanes(CUctx_st& context) SOFTGPU_REQUIRES(mutex_);
  void close_lanes() SOFTGPU_REQUIRES(mutex_);
  std::vector<Point> points_before(const Segment& segment, const std::vector<Point>& ends) const
      SOFTGPU_REQUIRES(mutex_);
  Records make_records(const Segment& segment) const SOFTGPU_REQUIRES(mutex_);
  Point submit_segment(const StreamUse& use, std::size_t index, std::vector<Point> after) SOFTGPU_REQUIRES(mutex_);
  static void run_segment(Program& program, std::size_t index, CUctx_st& context);

  const std::uint64_t flags_;
  const std::shared_ptr<std::atomic<int>> count_;  // of the graph's executables
  std::vector<UsedContext> contexts_;

  Mutex mutex_;
  std::shared_ptr<Program> program_ SOFTGPU_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::size_t> step_of_ SOFTGPU_GUARDED_BY(mutex_);  // by key of the node
  Point last_end_ SOFTGPU_GUARDED_BY(mutex_);                                // of the last launch
  UsedContext lanes_of_ SOFTGPU_GUARDED_BY(mutex_);                          // the context that made lanes_
  std::vector<std::shared_ptr<Stream>> lanes_ SOFTGPU_GUARDED_BY(mutex_);    // lane 1 and on
};

}  // namespace softgpu::graph

struct CUgraphExec_st {
  static constexpr std::uint32_t kMagic = 0x67657865;  // "gexe"
  std::atomic<std::uint32_t> magic{0};
  std::shared_ptr<softgpu::graph::Executable> executable;
};

namespace softgpu::graph {
using Executables = HandlePool<CUgraphExec_st>;
}
