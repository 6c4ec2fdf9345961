#include "runtime/device_server/task_executor.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace fairlead {
namespace {

void wake_loop(void* descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote =
      ::write(static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor)), &one, sizeof one);
}

HostCall waking(const UniqueFd& wake) {
  return {wake_loop, reinterpret_cast<void*>(static_cast<std::intptr_t>(wake.get()))};
}

}  // namespace

Result<std::unique_ptr<TaskExecutor>> TaskExecutor::create(CudaContext& cuda, const Options& options, Send send) {
  auto objects = DeviceObjects::create(cuda, options.cache, options.spaces);
  if (!objects) return fail(objects.error());
  auto lanes = LanePool::create(cuda);
  if (!lanes) return fail(lanes.error());
  std::unique_ptr<TaskExecutor> executor(
      new TaskExecutor(cuda, *std::move(objects), *std::move(lanes), options, std::move(send)));
  const auto probe = cuda.make_event(false);
  if (!probe) return fail(probe.error());
  executor->health_.probe = *probe;
  executor->wakes_.done.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!executor->wakes_.done) return fail(errno_error(errno, "eventfd"));
  return executor;
}

TaskExecutor::TaskExecutor(CudaContext& cuda, std::unique_ptr<DeviceObjects> objects, std::unique_ptr<LanePool> lanes,
                           const Options& options, Send send)
    : cuda_(cuda),
      send_(std::move(send)),
      objects_(std::move(objects)),
      lanes_(std::move(lanes)),
      host_{PinnedPool(cuda), StageRings(cuda)},
      times_(cuda),
      modules_(cuda, *objects_, options.spaces, options.modules),
      loader_({cuda, *objects_, *lanes_, host_.pinned, times_}, modules_,
              {.launching = options.launching,
               .cublas = options.cublas,
               .device_bytes = options.cache.device,
               .keeps_to_sms = options.spaces == AddressSpaces::kPerTenant}),
      constants_(*objects_, options.cache.load_bytes_per_second),
      registrations_(*objects_, modules_, {.trials = options.trials, .architecture = cuda.device().architecture}, send_,
                     [this](TaskRegistration registration, const Status& so_far) {
                       return end_registration(std::move(registration), so_far);
                     }),
      long_calls_(cuda, *objects_, host_.rings, wakes_.gates,
                  [this](wire::RegisterSession& frame, const std::vector<UniqueFd>& files) {
                    registrations_.begin(frame, files);
                  }) {}

void TaskExecutor::clear_wake() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wakes_.done.get(), &count, sizeof count);
}

// ---- frames

void TaskExecutor::handle(wire::FrameToServer frame, std::span<const UniqueFd> descriptors) {
  std::visit([&](auto& alternative) { on(alternative, descriptors); }, frame);
}

template <typename Frame>
void TaskExecutor::on(Frame& frame, std::span<const UniqueFd> descriptors) {
  if constexpr (std::is_same_v<Frame, wire::RegisterSession>) registrations_.begin(frame, descriptors);
  if constexpr (std::is_same_v<Frame, wire::ModulesMeasured>) registrations_.measured(frame);
  if constexpr (std::is_same_v<Frame, wire::ModulesFenced>) registrations_.fenced(frame);
  if constexpr (std::is_same_v<Frame, wire::TrialEnded>) registrations_.tried(frame);
  if constexpr (std::is_same_v<Frame, wire::DropSession>) drop_session(frame.session);
  if constexpr (std::is_same_v<Frame, wire::RunCall>) run(frame, descriptors);
  if constexpr (std::is_same_v<Frame, wire::FetchObject>) fetch(frame, descriptors);
  if constexpr (std::is_same_v<Frame, wire::DropObject>) objects_->drop(ObjectId(frame.object));
  if constexpr (std::is_same_v<Frame, wire::OpenRing>) {
    FL_CHECK(!descriptors.empty(), "ring {} without its memory", frame.ring);
    if (Status opened = host_.rings.open(frame, descriptors[0]); !opened) {  // no call of its stage could run
      send_(wire::ServerFault{.error = opened.error().message, .calls = {}});
      health_.lost = true;
    }
  }
  if constexpr (std::is_same_v<Frame, wire::PaceSession>) pace(frame, descriptors);
  if constexpr (std::is_same_v<Frame, wire::CloseRing>) host_.rings.close(frame.ring);
  if constexpr (std::is_same_v<Frame, wire::ModuleTrial> || std::is_same_v<Frame, wire::VariablesPlaced>) {
    spdlog::error("device server: got a frame of module trials, which a process of its own is for");
  }
}

void TaskExecutor::run(wire::RunCall& frame, std::span<const UniqueFd> descriptors) {
  auto call = std::make_unique<TaskCall>();
  call->received = monotonic_now();
  const auto session = sessions_.find(frame.session);
  Status supplied;
  if (session != sessions_.end()) {
    supplied = supply_objects(*objects_, frame.supplied, descriptors, session->second.range);
  }
  call->order = std::move(frame);
  call->request = RequestId(++last_request_);
  if (!supplied) call->error = supplied.error().message;
  if (session == sessions_.end()) call->error = "the session is not registered";
  if (!call->error.empty()) return answer(outcome(*call));
  call->session = &session->second;
  if (Status there = check_rings(*call); !there) {
    call->error = there.error().message;
    return answer(outcome(*call));
  }
  waiting_.push_back(std::move(call));
}

Status TaskExecutor::check_rings(const TaskCall& call) const {
  const std::vector<BufferSpec>& buffers = call.session->kernels->task().buffers;
  for (const auto* slots : {&call.order.ring_inputs, &call.order.ring_outputs}) {
    for (const wire::RingSlot& slot : *slots) {
      if (slot.buffer >= buffers.size()) return fail(Errc::kInvalidArgument, "the task has no buffer {}", slot.buffer);
      Status there = host_.rings.check(slot, static_cast<std::uint64_t>(buffers[slot.buffer].bytes.count()));
      if (!there) return there;
    }
  }
  return {};
}

void TaskExecutor::fetch(const wire::FetchObject& frame, std::span<const UniqueFd> descriptors) {
  FL_CHECK(!descriptors.empty(), "fetch without a destination");
  const Status fetched = objects_->fetch(ObjectId(frame.object), descriptors[0]);
  if (!fetched && context_is_lost()) return;
  send_(wire::ObjectFetched{.fetch = frame.fetch, .error = fetched ? "" : fetched.error().message});
}

// ---- sessions

bool TaskExecutor::end_registration(TaskRegistration registration, const Status& so_far) {
  wire::SessionReady ready{.session = registration.frame.session};
  const bool is_again = long_calls_.is_again(registration);
  auto session = so_far ? loader_.load(registration) : Result<TaskSession>(fail(so_far.error()));
  for (const std::size_t module : registration.on_trial) modules_.forget_unless_loaded(registration.keys[module]);
  if (is_again) {
    if (!session && context_is_lost()) return false;
    if (const auto found = sessions_.find(ready.session); found != sessions_.end()) {
      long_calls_.replace(found->second, std::move(session));
    }
    return true;
  }
  if (session) {
    ready.width_percent = static_cast<std::uint32_t>(session->width_percent);
    ready.why_not_narrower = session->why_not_kept;
    constants_.add(registration.frame, session->kernels->task());
    loader_.preload(registration.frame, *session, RequestId(++last_request_), running_.empty());
    session->constants = std::move(registration.frame.constants);
    session->frame = {.session = ready.session,
                      .tenant = std::move(registration.frame.tenant),
                      .task = std::move(registration.frame.task),
                      .modules = std::move(registration.frame.modules)};
    session->frame.most_width_percent = registration.frame.most_width_percent;
    session->images = std::move(registration.images);
    sessions_[ready.session] = *std::move(session);
  } else {
    ready.error = session.error().message;
  }
  tell_constants();
  if (!ready.error.empty() && context_is_lost()) return false;
  ready.init_ns = (monotonic_now() - registration.begun).count();
  send_(ready);
  return !health_.lost;
}

void TaskExecutor::drop_session(std::uint64_t session) {
  const bool asks = wakes_.gates.asks(session);
  wakes_.gates.remove(session);
  long_calls_.forget(session);
  registrations_.drop(session);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  for (const auto& call : running_) {
    if (call->order.session != session || !call->steps.paused) continue;
    call->error = "its session was ended while it waited for the device";
    long_calls_.stepper().end(*call, waking(wakes_.done));
  }
  // What waits for a place that it will not get is over: nobody is to wait for its deadline.
  for (auto call = waiting_.begin(); asks && call != waiting_.end();) {
    if ((*call)->order.session != session) {
      ++call;
      continue;
    }
    (*call)->error = "its session was ended while it waited for the device";
    answer(outcome(**call));
    call = waiting_.erase(call);
  }
  found->second.dropped = true;
  constants_.remove(session);
  erase_if_dropped(session);
}

void TaskExecutor::erase_if_dropped(std::uint64_t session) {
  const auto found = sessions_.find(session);
  if (found->second.dropped && !found->second.busy && !waits(session)) sessions_.erase(found);
}

bool TaskExecutor::waits(std::uint64_t session) const {
  const auto is_of = [session](const auto& call) { return call->order.session == session; };
  const auto pauses = [&](const auto& call) { return is_of(call) && call->steps.paused; };
  return std::ranges::any_of(waiting_, is_of) || std::ranges::any_of(running_, pauses);
}

void TaskExecutor::pace(const wire::PaceSession& frame, std::span<const UniqueFd> descriptors) {
  if (descriptors.size() < 2) {  // the kernel drops those that this process has no number for
    return spdlog::error("device server: session {} is not paced: its page did not arrive", frame.session);
  }
  if (Status added = wakes_.gates.add(frame.session, descriptors[0], descriptors[1], frame.whole); !added) {
    spdlog::error("device server: session {} is not paced: {}", frame.session, added.error().message);
  }
}

void TaskExecutor::settle_gates() {
  wakes_.gates.settle([this](std::uint64_t session) { return waits(session); });
}

void TaskExecutor::tell_constants() {
  if (const auto changes = constants_.changes()) send_(*changes);
}

// ---- calls

bool TaskExecutor::progress() {
  bool ended = false;
  for (std::size_t i = 0; i < running_.size() && !health_.lost;) {
    tell_loaded(*running_[i]);
    if (long_calls_.is_in_pieces(*running_[i], monotonic_now(), waking(wakes_.done))) {
      ++i;
      continue;
    }
    const CUresult code = cuda_.query(running_[i]->times.done);
    if (code == CUDA_ERROR_NOT_READY) {
      ++i;
      continue;
    }
    if (code != CUDA_SUCCESS) {
      if (context_is_lost()) break;
      running_[i]->error = cuda_.describe(code);
    }
    const std::unique_ptr<TaskCall> call = std::move(running_[i]);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(*call);
    ended = true;
  }
  if (!health_.lost && (ended || !waiting_.empty())) start_waiting();
  if (!health_.lost) {
    settle_gates();
    modules_.trim(!running_.empty());
    tell_constants();
  }
  return !health_.lost;
}

// In the order of arrival; a call whose session is busy or has no place lets others pass, one that lacks room does not.
void TaskExecutor::start_waiting() {
  for (std::size_t i = 0; i < waiting_.size() && !health_.lost;) {
    TaskCall& call = *waiting_[i];
    if (call.session->busy || !wakes_.gates.may_begin(call.order.session, monotonic_now())) {
      ++i;
      continue;
    }
    const Started started = start(call);
    if (started == Started::kNoRoom) return;
    std::unique_ptr<TaskCall> taken = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (started == Started::kYes) {
      running_.push_back(std::move(taken));
    } else {
      erase_if_dropped(taken->order.session);
    }
  }
}

TaskExecutor::Started TaskExecutor::refuse(TaskCall& call, const Error& why) {
  if (context_is_lost()) return Started::kYes;  // none of it ran: it is no suspect
  call.error = why.message;
  answer(outcome(call));
  return Started::kEnded;
}

TaskExecutor::Started TaskExecutor::start(TaskCall& call) {
  if (auto missing = find_needs(call, *objects_); !missing.empty()) {
    answer({.call = call.order.call, .outcome = wire::CallDone::Outcome::kMissing, .missing = std::move(missing)});
    return Started::kEnded;
  }
  const KernelSession& kernels = *call.session->kernels;
  call.layout = lay_out_call(kernels.task().buffers, {kernels.temporary_offsets(), kernels.temporary_bytes()},
                             call.session->constants, call.order);
  call.scratch.range = call.session->range;
  call.scratch.bytes = call.layout.scratch;
  call.loads = std::ranges::any_of(call.needs, [this](const ObjectNeed& need) {
    return need.kind == ObjectKind::kConstant && !objects_->cache().on_device(need.object);
  });
  const auto times = times_.take();
  if (!times) return refuse(call, times.error());
  call.times = *times;
  const Instant begin = monotonic_now();
  const Status taken = objects_->acquire(begin, call.request, call.needs, call.scratch, call.times.load);
  call.malloc_time = monotonic_now() - begin;
  if (taken) return start_with_memory(call);
  times_.give_back(call.times);
  if (taken.error().code == Errc::kResourceExhausted && !running_.empty()) return Started::kNoRoom;
  return refuse(call, taken.error());
}

TaskExecutor::Started TaskExecutor::start_with_memory(TaskCall& call) {
  const auto staging = host_.pinned.take(static_cast<std::uint64_t>(call.layout.staging.count()));
  if (!staging) {
    objects_->release(call.request, false, call.scratch);
    times_.give_back(call.times);
    return refuse(call, staging.error());
  }
  call.staging = *staging;
  const auto lane = take_lane(*call.session);
  if (!lane) {
    objects_->release(call.request, false, call.scratch);
    host_.pinned.give_back(call.staging);
    times_.give_back(call.times);
    if (!running_.empty()) return Started::kNoRoom;  // lanes come back
    return refuse(call, lane.error());
  }
  call.lane = *lane;
  call.session->busy = true;
  wakes_.gates.began(call.order.session);
  const HostCall wake = waking(wakes_.done);
  CallStepper& stepper = long_calls_.stepper();
  const bool in_pieces = stepper.takes(call);
  const CUresult code =
      in_pieces ? stepper.begin(call, monotonic_now(), wake) : queue_call(call, cuda_, *objects_, host_.rings, wake);
  if (code != CUDA_SUCCESS) {
    call.error = fmt::format("a kernel could not be launched: {}", cuda_.describe(code));
    if (context_is_lost(&call)) return Started::kYes;
    // Some of its kernels may run: it ends behind them, as a failure.
    if (in_pieces) stepper.end(call, wake);
    cuda_.record(call.times.done, call.lane->main());
  }
  if (!in_pieces) cuda_.call_host(call.lane->main(), wake.function, wake.data);
  return Started::kYes;
}

Result<LaunchLane*> TaskExecutor::take_lane(const TaskSession& session) {
  if (session.sm_groups > 0) return lanes_->parts().take(session.sm_groups);
  return &lanes_->take();
}

void TaskExecutor::tell_loaded(TaskCall& call) {
  if (!call.loads || cuda_.query(call.times.begin) != CUDA_SUCCESS) return;
  call.loads = false;
  send_(wire::CallLoaded{call.order.call});
}

void TaskExecutor::finish(TaskCall& call) {
  wire::CallDone done = outcome(call);
  if (call.error.empty()) {
    constants_.measured(call.times.load);
    describe_success(call, cuda_, *objects_, monotonic_now(), done);
  }
  for (const ObjectNeed& need : call.needs) done.session_bytes += static_cast<std::uint64_t>(need.bytes.count());
  done.session_bytes += static_cast<std::uint64_t>(call.scratch.bytes.count());
  objects_->release(call.request, call.error.empty(), call.scratch);
  host_.pinned.give_back(call.staging);
  times_.give_back(call.times);
  lanes_->give_back(*call.lane);
  call.session->busy = false;
  wakes_.gates.ended(call.order.session, Duration(done.gpu_ns) - call.steps.used);
  long_calls_.rest(*call.session);
  const Duration run = call.error.empty() ? done.phases.kernel_run : Duration(0);
  answer(std::move(done));
  long_calls_.took(call, run);
  erase_if_dropped(call.order.session);
}

wire::CallDone TaskExecutor::outcome(const TaskCall& call) {
  wire::CallDone done{.call = call.order.call};
  if (!call.error.empty()) done.outcome = wire::CallDone::Outcome::kFailed;
  done.error = call.error;
  return done;
}

void TaskExecutor::answer(wire::CallDone done) {
  done.counters = counters();
  send_(done);
}

wire::ServerCounters TaskExecutor::counters() const {
  const ObjectCache& cache = objects_->cache();
  const ObjectCacheCounters& from = cache.counters();
  wire::ServerCounters counters{.hits = from.hits, .host_hits = from.host_hits, .misses = from.misses};
  counters.evictions = from.evictions;
  counters.write_backs = from.write_backs;
  counters.loaded_bytes = static_cast<std::uint64_t>(from.loaded.count());
  counters.written_back_bytes = static_cast<std::uint64_t>(from.written_back.count());
  counters.device_used = static_cast<std::uint64_t>(cache.device_used().count());
  counters.device_mapped = static_cast<std::uint64_t>(objects_->mapped().count());
  counters.host_used = static_cast<std::uint64_t>(cache.host_used().count());
  counters.modules = modules_.size();
  return counters;
}

// In a lost context whatever is asked fails as if it were at fault itself, so every failure is looked at here before it is
// answered. The first to find the context lost reports what may have done it: what runs, and `starting`. Waits for nothing.
bool TaskExecutor::context_is_lost(const TaskCall* starting) {
  if (health_.lost) return true;
  const CUresult code = cuda_.query(health_.probe);
  if (code == CUDA_SUCCESS) return false;
  wire::ServerFault fault{.error = cuda_.describe(code)};
  for (const auto& call : running_) fault.calls.push_back(call->order.call);
  if (starting != nullptr) fault.calls.push_back(starting->order.call);
  send_(fault);
  health_.lost = true;
  return true;
}

}  // namespace fairlead
