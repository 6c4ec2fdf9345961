// The captures that are going on in the process. Private to the capture files.
#pragma once

#include "softgpu/driver/context/context.h"
#include "softgpu/driver/graph/capture_state.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/mutex.h"

namespace softgpu::graph {

struct Capture : std::enable_shared_from_this<Capture> {
  Capture(CaptureState initial, std::uint64_t its_id) : state(std::move(initial)), id(its_id) {}
  CaptureState state;
  const std::uint64_t id;
  CUgraph graph = nullptr;
  bool owns_graph = true;  // made for the capture, not given by the program
  CUcontext context = nullptr;
  std::uint64_t context_id = 0;
  std::map<StreamKey, std::shared_ptr<Stream>> streams;  // keeps the keys meaningful
  std::vector<CUgraphNode> reported_nodes;               // what cuStreamGetCaptureInfo returned last
  std::vector<CUgraphEdgeData> reported_edges;
};

struct Captures {
  Mutex mutex;  // also of the captures themselves and their graphs
  std::vector<std::shared_ptr<Capture>> all SOFTGPU_GUARDED_BY(mutex);
  std::uint64_t next_id SOFTGPU_GUARDED_BY(mutex) = 1;

  static Captures& get();
  std::shared_ptr<Capture> of(const Stream& stream) const SOFTGPU_REQUIRES(mutex);
  bool ongoing(const Capture& capture) const SOFTGPU_REQUIRES(mutex);
  // A capture with a blocking stream of the context, which the legacy stream would have to wait for; or null.
  std::shared_ptr<Capture> beside_legacy(const StreamUse& use) const SOFTGPU_REQUIRES(mutex);
  void begin(const std::shared_ptr<Capture>& capture) SOFTGPU_REQUIRES(mutex);
  void end(const Capture& capture) SOFTGPU_REQUIRES(mutex);
};

// What ends the captures that began in a context with it.
class ContextCaptures final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kCaptures;
  explicit ContextCaptures(CUctx_st& context) : context_(context) {}
  void close() override;

 private:
  const CUctx_st& context_;
};

// Adds the operation to the graph of the stream's capture. REQUIRES: use.capturing.
CUresult capture_operation(const StreamUse& use, Payload payload);

// The calling thread, and its mode of cuThreadExchangeStreamCaptureMode().
ThreadKey this_thread();
CUstreamCaptureMode& thread_mode();

}  // namespace softgpu::graph

namespace softgpu {

// What an event stands for that was recorded in a capture.
struct CapturedRecord {
  std::shared_ptr<graph::Capture> capture;
  graph::Links links;
};

}  // namespace softgpu
