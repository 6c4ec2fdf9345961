#include "runtime/device_server/call_steps.h"

namespace fairlead {

Result<std::unique_ptr<CallSteps>> CallSteps::create(CudaContext& cuda, KernelSession& session,
                                                     const std::vector<std::uint64_t>& waves) {
  const KernelTask& task = session.task();
  std::vector<KernelPieces::Kernel> kernels;
  for (std::size_t k = 0; k < task.kernels.size(); ++k) {
    kernels.push_back(
        {.blocks = blocks_of(task.kernels[k].grid), .wave = waves.at(k), .can_be_cut = session.has_twin(k)});
  }
  std::unique_ptr<CallSteps> steps(new CallSteps(cuda, session, KernelPieces(std::move(kernels), task.iterations)));
  for (Events& events : steps->events_) {
    for (CUevent* const event : {&events.begin, &events.end}) {
      const auto made = cuda.make_event(true);
      if (!made) return fail(made.error());
      *event = *made;
    }
  }
  return steps;
}

CallSteps::~CallSteps() {
  for (const Events& events : events_) {
    for (const CUevent event : {events.begin, events.end}) {
      if (event != nullptr) cuda_.destroy_event(event);
    }
  }
}

void CallSteps::begin_call() {
  pieces_.begin_call();
  launched_ = 0;
}

// Behind a piece that nobody knows nothing is queued: it may be all that a place has room for.
CUresult CallSteps::queue(LaunchLane& lane, const std::vector<CUdeviceptr>& addresses, Duration left, CUhostFn wake,
                          void* data) {
  session_.place_buffers(addresses);
  CUresult code = CUDA_SUCCESS;
  while (in_flight_.size() < kInFlight && !pieces_.is_over() && code == CUDA_SUCCESS) {
    Duration free = left;
    for (const InFlight& before : in_flight_) free -= before.piece.estimate;
    const bool is_second = !in_flight_.empty();
    if (is_second && (in_flight_.front().piece.estimate == Duration(0) || free < KernelPieces::kLeast)) break;
    const Events events = events_[launched_++ % kInFlight];
    const KernelPieces::Piece& piece = in_flight_.emplace_back(InFlight{pieces_.next(free), events}).piece;
    code = launch(piece, events, lane.main(), addresses);
    if (code == CUDA_SUCCESS) code = cuda_.call_host(lane.main(), wake, data);
  }
  return code;
}

CUresult CallSteps::launch(const KernelPieces::Piece& piece, const Events& events, CUstream stream,
                           const std::vector<CUdeviceptr>& addresses) {
  CUresult code = cuda_.record(events.begin, stream);
  for (const KernelPieces::Range& range : piece.ranges) {
    if (code == CUDA_SUCCESS) {
      code = session_.launch_blocks(cuda_, range.kernel, range.first, range.count, stream, addresses);
    }
  }
  return code == CUDA_SUCCESS ? cuda_.record(events.end, stream) : code;
}

CUresult CallSteps::look(Duration& used) {
  while (!in_flight_.empty()) {
    const InFlight& oldest = in_flight_.front();
    const CUresult code = cuda_.query(oldest.events.end);
    if (code == CUDA_ERROR_NOT_READY) return CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) return code;
    const Duration took = cuda_.elapsed(oldest.events.begin, oldest.events.end);
    pieces_.measured(oldest.piece, took);
    used += took;
    in_flight_.pop_front();
  }
  return CUDA_SUCCESS;
}

}  // namespace fairlead
