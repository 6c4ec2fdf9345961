#include "runtime/device_server/call_stepper.h"

#include <utility>

namespace fairlead {

// Stages of a pipeline wait for each other's devices, call by call.
bool CallStepper::takes(const TaskCall& call) const {
  if (!call.session->steps || !gates_.may_be_cut(call.order.session)) return false;
  if (!call.order.ring_inputs.empty() || !call.order.ring_outputs.empty()) return false;
  const auto takes = call.session->steps->estimate();
  return !takes || *takes > KernelPieces::kWhole;
}

Status CallStepper::prepare(TaskSession& session) {
  const Occupancy occupancy(cuda_);
  std::vector<std::uint64_t> waves;
  for (std::size_t k = 0; k < session.kernels->task().kernels.size(); ++k) {
    waves.push_back(session.blocks_at_once(occupancy, k));
  }
  auto steps = CallSteps::create(cuda_, *session.kernels, waves);
  if (!steps) return fail(steps.error());
  session.steps = *std::move(steps);
  return {};
}

CUresult CallStepper::begin(TaskCall& call, Instant now, HostCall wake) {
  call.steps.there = true;
  call.session->steps->begin_call();
  const CUresult code = queue_before(call, cuda_, objects_, rings_, wake);
  return code == CUDA_SUCCESS ? queue(call, now, wake) : code;
}

CUresult CallStepper::queue(TaskCall& call, Instant now, HostCall wake) {
  const Duration left = gates_.left(call.order.session, now).value_or(Duration(0));
  return call.session->steps->queue(*call.lane, addresses_of(call, objects_), left, wake.function, wake.data);
}

CUresult CallStepper::go_on(TaskCall& call, Instant now, HostCall wake) {
  CallSteps& steps = *call.session->steps;
  Duration used{0};
  CUresult code = steps.look(used);
  call.steps.used += used;
  gates_.used(call.order.session, used);
  if (code != CUDA_SUCCESS) return code;
  if (steps.is_over()) {
    call.steps.over = true;
    code = queue_behind(call, cuda_, objects_, rings_);
    return code == CUDA_SUCCESS ? cuda_.call_host(call.lane->main(), wake.function, wake.data) : code;
  }
  if (steps.is_in_flight()) {
    // Nothing more once the place is over: what is in flight is what the next one waits for.
    const bool is_open = gates_.left(call.order.session, now).value_or(Duration(-1)) > Duration(0);
    return is_open ? queue(call, now, wake) : CUDA_SUCCESS;
  }
  return has_place(call, now) ? queue(call, now, wake) : CUDA_SUCCESS;
}

bool CallStepper::has_place(TaskCall& call, Instant now) {
  const std::uint64_t session = call.order.session;
  if (!call.steps.paused && gates_.left(session, now)) return true;
  if (!std::exchange(call.steps.paused, true)) gates_.pauses(session);
  call.lane->rest(true);
  if (!gates_.may_begin(session, now)) return false;
  call.steps.paused = false;
  call.lane->rest(false);
  gates_.began(session);
  return true;
}

void CallStepper::end(TaskCall& call, HostCall wake) {
  call.session->steps->abandon();
  call.steps.paused = false;
  call.steps.over = true;
  call.lane->rest(false);
  cuda_.record(call.times.done, call.lane->main());
  cuda_.call_host(call.lane->main(), wake.function, wake.data);
}

}  // namespace fairlead
