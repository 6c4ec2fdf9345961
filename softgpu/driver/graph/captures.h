// The captures that are going on in the process. Private to the capture files.
#pragma once

#include "softgpu/driver/graph/capture.h"
#include "softgpu/driver/graph/graph.h"

namespace softgpu::graph {

struct Capture {
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

struct CapturedRecord {
  std::shared_ptr<Capture> capture;
  Links links;
};

struct Captures {
  std::mutex mutex;  // guards everything below, the captures and their graphs
  std::vector<std::shared_ptr<Capture>> all;
  std::uint64_t next_id = 1;

  static Captures& get();
  // REQUIRES for all: mutex is held.
  std::shared_ptr<Capture> of(const Stream& stream) const;
  bool ongoing(const Capture& capture) const;
  // A capture with a blocking stream of the context, which the legacy stream would have to wait for; or null.
  std::shared_ptr<Capture> beside_legacy(const StreamUse& use) const;
  void begin(const std::shared_ptr<Capture>& capture);
  void end(const Capture& capture);
};

// Whether any capture is going on: if not, no lock need be taken.
bool any_capture();

// The calling thread, and its mode of cuThreadExchangeStreamCaptureMode().
ThreadKey this_thread();
CUstreamCaptureMode& thread_mode();

}  // namespace softgpu::graph
