#include "runtime/device_server/long_calls.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "runtime/device_server/cut_session.h"

namespace fairlead {

bool LongCalls::is_in_pieces(TaskCall& call, Instant now, HostCall wake) {
  if (!call.steps.there || call.steps.over) return false;
  const CUresult code = stepper_.go_on(call, now, wake);
  if (code != CUDA_SUCCESS) {
    call.error = fmt::format("a part of a kernel could not be launched: {}", cuda_.describe(code));
    stepper_.end(call, wake);
  }
  return !call.steps.over;
}

void LongCalls::took(const TaskCall& call, Duration run) {
  TaskSession& session = *call.session;
  if (session.dropped || run <= KernelPieces::kWhole || !gates_.may_be_cut(call.order.session)) return;
  if (session.steps) {
    if (!call.steps.there) session.steps->measured_whole(run);
    return;
  }
  if (Status prepared = stepper_.prepare(session); !prepared) {
    return spdlog::warn("device server: calls of session {} are not cut: {}", call.order.session,
                        prepared.error().message);
  }
  cut(session);
}

// Its calls go on as they are until it is registered with its new modules.
void LongCalls::cut(TaskSession& session) {
  const KernelTask& task = session.kernels->task();
  const Occupancy occupancy(cuda_);
  std::vector<std::uint64_t> at_once;
  for (std::size_t k = 0; k < task.kernels.size(); ++k) {
    at_once.push_back(session.blocks_at_once(occupancy, k));
  }
  auto cut = cut_session(session.frame, session.images, task, at_once, cuda_.device().architecture);
  session.images.clear();
  if (!cut) {
    return spdlog::info("device server: session {} is launched kernel by kernel: {}", session.frame.session,
                        cut.error().message);
  }
  being_cut_[session.frame.session] = std::move(cut->twins);
  register_(cut->frame, cut->files);
}

bool LongCalls::is_again(TaskRegistration& registration) {
  const auto cut = being_cut_.extract(registration.frame.session);
  if (cut) registration.twins = std::move(cut.mapped());
  return static_cast<bool>(cut);
}

void LongCalls::replace(TaskSession& session, Result<TaskSession> cut) {
  if (!cut) {
    return spdlog::warn("device server: session {} is launched kernel by kernel: with its kernels cut {}",
                        session.frame.session, cut.error().message);
  }
  session.replacement = std::make_unique<TaskSession>(*std::move(cut));
  if (!session.busy) rest(session);
}

void LongCalls::rest(TaskSession& session) {
  const std::unique_ptr<TaskSession> from = std::move(session.replacement);
  if (from) take_over(session, *from);
}

void LongCalls::take_over(TaskSession& session, TaskSession& from) {
  session.steps.reset();  // of the kernels that go
  session.kernels = std::move(from.kernels);
  session.modules = std::move(from.modules);
  if (session.sm_groups > 0) session.kernels->forget_graph();  // whatever its own load has come to
  if (Status prepared = stepper_.prepare(session); !prepared) {
    spdlog::warn("device server: calls of session {} are not cut: {}", session.frame.session, prepared.error().message);
  }
}

}  // namespace fairlead
