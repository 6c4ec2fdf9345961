#include "runtime/device_server/task_executor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

std::uint64_t size_of(const BufferSpec& buffer) {
  return static_cast<std::uint64_t>(buffer.bytes.count());
}

void wake_loop(void* descriptor) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote =
      ::write(static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor)), &one, sizeof one);
}

}  // namespace

Result<std::unique_ptr<TaskExecutor>> TaskExecutor::create(CudaContext& cuda, const Options& options, Send send) {
  auto objects = DeviceObjects::create(cuda, options.cache, options.spaces);
  if (!objects) return fail(objects.error());
  std::unique_ptr<TaskExecutor> executor(new TaskExecutor(cuda, *std::move(objects), options, std::move(send)));
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (Status made = executor->make_lane(); !made) return fail(made.error());
  }
  const auto probe = cuda.make_event(false);
  if (!probe) return fail(probe.error());
  executor->probe_ = *probe;
  executor->wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!executor->wake_) return fail(errno_error(errno, "eventfd"));
  return executor;
}

TaskExecutor::TaskExecutor(CudaContext& cuda, std::unique_ptr<DeviceObjects> objects, const Options& options, Send send)
    : cuda_(cuda),
      objects_(std::move(objects)),
      spaces_(options.spaces),
      launching_(options.launching),
      cublas_(options.cublas),
      device_bytes_(options.cache.device),
      trials_(options.trials),
      send_(std::move(send)),
      modules_(cuda, options.modules),
      fenced_(cuda, *objects_),
      pinned_(cuda),
      load_bytes_per_second_(options.cache.load_bytes_per_second) {}

void TaskExecutor::clear_wake() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
}

// ---- frames

void TaskExecutor::handle(wire::FrameToServer frame, std::span<const UniqueFd> descriptors) {
  std::visit([&](auto& alternative) { on(alternative, descriptors); }, frame);
}

Status TaskExecutor::supply(const std::vector<wire::SuppliedObject>& objects, std::span<const UniqueFd> descriptors,
                            DeviceObjects::RangeIndex range) {
  for (const wire::SuppliedObject& object : objects) {
    const auto index = static_cast<std::size_t>(object.descriptor);
    FL_CHECK(object.descriptor >= 0 && index < descriptors.size(), "descriptor {} of {}", index, descriptors.size());
    const Bytes bytes(static_cast<std::int64_t>(object.bytes));
    if (Status supplied = objects_->supply(ObjectId(object.object), bytes, descriptors[index], range); !supplied) {
      return supplied;
    }
  }
  return {};
}

// None where its workspaces might be what does not fit beside all of the task's buffers.
Cublas* TaskExecutor::cublas_for(const KernelTask& task) const {
  Bytes all = KernelSession::kMostWorkspace;
  for (const BufferSpec& buffer : task.buffers) {
    all += Bytes(static_cast<std::int64_t>(RangeAllocator::round_up(size_of(buffer))));
  }
  return all <= device_bytes_ ? cublas_ : nullptr;
}

void TaskExecutor::erase_if_dropped(std::uint64_t session) {
  const auto found = sessions_.find(session);
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [session](const auto& call) { return call->order.session == session; });
  if (found->second.dropped && !found->second.busy && !waits) sessions_.erase(found);
}

void TaskExecutor::on(wire::RunCall& frame, std::span<const UniqueFd> descriptors) {
  auto call = std::make_unique<Call>();
  call->received = monotonic_now();
  const auto session = sessions_.find(frame.session);
  Status supplied;
  if (session != sessions_.end()) supplied = supply(frame.supplied, descriptors, session->second.range);
  call->order = std::move(frame);
  call->request = RequestId(++last_request_);
  if (!supplied) call->error = supplied.error().message;
  if (session == sessions_.end()) call->error = "the session is not registered";
  if (!call->error.empty()) return answer(outcome(*call));
  call->session = &session->second;
  waiting_.push_back(std::move(call));
}

void TaskExecutor::on(wire::FetchObject& frame, std::span<const UniqueFd> descriptors) {
  FL_CHECK(!descriptors.empty(), "fetch without a destination");
  const Status fetched = objects_->fetch(ObjectId(frame.object), descriptors[0]);
  if (!fetched && context_is_lost()) return;
  send_(wire::ObjectFetched{.fetch = frame.fetch, .error = fetched ? "" : fetched.error().message});
}

void TaskExecutor::on(wire::DropObject& frame, std::span<const UniqueFd>) {
  objects_->drop(ObjectId(frame.object));
}

// ---- calls

bool TaskExecutor::progress() {
  bool ended = false;
  for (std::size_t i = 0; i < running_.size() && !lost_;) {
    tell_loaded(*running_[i]);
    const CUresult code = cuda_.query(running_[i]->times.done);
    if (code == CUDA_ERROR_NOT_READY) {
      ++i;
      continue;
    }
    if (code != CUDA_SUCCESS) {
      if (context_is_lost()) break;
      running_[i]->error = cuda_.describe(code);
    }
    const std::unique_ptr<Call> call = std::move(running_[i]);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(*call);
    ended = true;
  }
  if (!lost_ && (ended || !waiting_.empty())) start_waiting();
  if (!lost_) {
    forget(modules_.trim(!running_.empty()));
    tell_missing_constants();
  }
  return !lost_;
}

// In the order of arrival; a call whose session is busy lets others pass, one that lacks room does not.
void TaskExecutor::start_waiting() {
  for (std::size_t i = 0; i < waiting_.size() && !lost_;) {
    Call& call = *waiting_[i];
    if (call.session->busy) {
      ++i;
      continue;
    }
    const Started started = start(call);
    if (started == Started::kNoRoom) return;
    std::unique_ptr<Call> taken = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (started == Started::kYes) {
      running_.push_back(std::move(taken));
    } else {
      erase_if_dropped(taken->order.session);
    }
  }
}

// What the call needs, each object once. False: something's bytes are not here.
bool TaskExecutor::find_needs(Call& call) {
  const std::vector<BufferSpec>& buffers = call.session->kernels->task().buffers;
  wire::CallDone done{.call = call.order.call, .outcome = wire::CallDone::Outcome::kMissing};
  call.needs.clear();
  const auto add = [&](const wire::BoundObject& bound, ObjectKind kind) {
    if (bound.object == 0) return;
    const ObjectId id(bound.object);
    if (kind != ObjectKind::kOutput && !objects_->available(id)) done.missing.push_back(bound.object);
    call.needs.push_back({id, buffers[bound.buffer].bytes, kind});
  };
  for (const auto& bound : call.session->constants) add(bound, ObjectKind::kConstant);
  for (const auto& bound : call.order.inputs) add(bound, ObjectKind::kInput);
  for (const auto& bound : call.order.outputs) add(bound, ObjectKind::kOutput);
  std::stable_sort(call.needs.begin(), call.needs.end(),
                   [](const ObjectNeed& a, const ObjectNeed& b) { return a.object < b.object; });
  call.needs.erase(std::unique(call.needs.begin(), call.needs.end(),
                               [](const ObjectNeed& a, const ObjectNeed& b) { return a.object == b.object; }),
                   call.needs.end());
  if (done.missing.empty()) return true;
  answer(std::move(done));
  return false;
}

TaskExecutor::Started TaskExecutor::refuse(Call& call, const Error& why) {
  if (context_is_lost()) return Started::kYes;  // none of it ran: it is no suspect
  call.error = why.message;
  answer(outcome(call));
  return Started::kEnded;
}

Status TaskExecutor::make_lane() {
  auto lane = LaunchLane::create(cuda_);
  if (!lane) return fail(lane.error());
  if (Status events = (*lane)->need_events(cuda_, lane_events_); !events) return events;
  lanes_.push_back(*std::move(lane));
  return {};
}

// One that no call is on: behind a call that waits for its constants another one would wait with it.
LaunchLane& TaskExecutor::take_lane() {
  const auto is_free = [this](const auto& lane) {
    return std::none_of(running_.begin(), running_.end(), [&](const auto& call) { return call->lane == lane.get(); });
  };
  const auto free = std::find_if(lanes_.begin(), lanes_.end(), is_free);
  if (free != lanes_.end()) return **free;
  if (lanes_.size() < kMostLanes && make_lane()) return *lanes_.back();
  return *lanes_[next_lane_++ % lanes_.size()];
}

void TaskExecutor::tell_loaded(Call& call) {
  if (!call.loads || cuda_.query(call.times.begin) != CUDA_SUCCESS) return;
  call.loads = false;
  send_(wire::CallLoaded{call.order.call});
}

TaskExecutor::Started TaskExecutor::start(Call& call) {
  if (!find_needs(call)) return Started::kEnded;
  const KernelSession& kernels = *call.session->kernels;
  call.layout = lay_out_call(kernels.task().buffers, {kernels.temporary_offsets(), kernels.temporary_bytes()},
                             call.session->constants, call.order);
  call.scratch.range = call.session->range;
  call.scratch.bytes = call.layout.scratch;
  call.loads = std::any_of(call.needs.begin(), call.needs.end(), [this](const ObjectNeed& need) {
    return need.kind == ObjectKind::kConstant && !objects_->cache().on_device(need.object);
  });
  const auto times = take_times();
  if (!times) return refuse(call, times.error());
  call.times = *times;
  const Instant begin = monotonic_now();
  const Status taken = objects_->acquire(begin, call.request, call.needs, call.scratch, call.times.load);
  call.malloc_time = monotonic_now() - begin;
  if (!taken) {
    free_times_.push_back(call.times);
    if (taken.error().code == Errc::kResourceExhausted && !running_.empty()) return Started::kNoRoom;
    return refuse(call, taken.error());
  }
  const auto staging = pinned_.take(static_cast<std::uint64_t>(call.layout.staging.count()));
  if (!staging) {
    objects_->release(call.request, false, call.scratch);
    free_times_.push_back(call.times);
    return refuse(call, staging.error());
  }
  call.staging = *staging;
  LaunchLane& lane = take_lane();
  call.lane = &lane;
  call.session->busy = true;
  const CUresult code = queue(call, lane);
  if (code != CUDA_SUCCESS) {
    call.error = fmt::format("a kernel could not be launched: {}", cuda_.describe(code));
    if (context_is_lost(&call)) return Started::kYes;
    // Some of its kernels may run: it ends behind them, as a failure.
    cuda_.record(call.times.done, lane.main());
  }
  cuda_.call_host(lane.main(), wake_loop, reinterpret_cast<void*>(static_cast<std::intptr_t>(wake_.get())));
  return Started::kYes;
}

Result<TaskExecutor::Times> TaskExecutor::take_times() {
  if (!free_times_.empty()) {
    const Times times = free_times_.back();
    free_times_.pop_back();
    return times;
  }
  Times times;
  for (CUevent* event : {&times.load.begin[0], &times.load.begin[1], &times.load.end[0], &times.load.end[1],
                         &times.begin, &times.run_begin, &times.run_end, &times.done}) {
    const auto made = cuda_.make_event(true);
    if (!made) return fail(made.error());
    *event = *made;
  }
  return times;
}

// REQUIRES: the call's objects and scratch memory are there.
std::vector<CUdeviceptr> TaskExecutor::addresses_of(const Call& call) const {
  const CUdeviceptr scratch = objects_->address(call.scratch);
  std::vector<CUdeviceptr> addresses;
  addresses.reserve(call.layout.places.size());
  for (const CallLayout::Place& place : call.layout.places) {
    addresses.push_back(place.object != 0 ? objects_->address(ObjectId(place.object)) : scratch + place.scratch_offset);
  }
  return addresses;
}

CUresult TaskExecutor::queue(Call& call, LaunchLane& lane) {
  const CUstream stream = lane.main();
  CUresult code = CUDA_SUCCESS;
  const auto check = [&code](CUresult result) {
    if (code == CUDA_SUCCESS) code = result;
  };
  check(objects_->wait(stream, call.needs, call.scratch, call.times.load));
  const std::vector<CUdeviceptr> addresses = addresses_of(call);
  check(cuda_.record(call.times.begin, stream));
  if (call.loads) {
    check(cuda_.call_host(stream, wake_loop, reinterpret_cast<void*>(static_cast<std::intptr_t>(wake_.get()))));
  }
  check(queue_inputs(call, addresses, stream));
  check(cuda_.record(call.times.run_begin, stream));
  if (code == CUDA_SUCCESS) check(call.session->kernels->launch(cuda_, lane, addresses));
  check(cuda_.record(call.times.run_end, stream));
  check(queue_outputs(call, addresses, stream));
  check(cuda_.record(call.times.done, stream));
  return code;
}

// In-outs, inline inputs and zeros, on the call's own stream.
CUresult TaskExecutor::queue_inputs(const Call& call, std::span<const CUdeviceptr> addresses, CUstream stream) {
  const std::vector<BufferSpec>& buffers = call.session->kernels->task().buffers;
  CUresult code = CUDA_SUCCESS;
  for (const CallLayout::Copy& copy : call.layout.copies) {
    if (code != CUDA_SUCCESS) return code;
    const CUdeviceptr source = objects_->address(ObjectId(copy.object));
    code = cuda_.copy_within(addresses[copy.buffer], source, size_of(buffers[copy.buffer]), stream);
  }
  auto staged = call.layout.inputs.begin();  // the inline ones of the call, in its order
  for (const wire::BoundObject& input : call.order.inputs) {
    if (input.object != 0) continue;
    if (code != CUDA_SUCCESS) return code;
    char* const staging = call.staging.data + staged->staging_offset;
    std::memcpy(staging, input.bytes.data(), input.bytes.size());
    code = cuda_.copy_in(addresses[input.buffer], staging, input.bytes.size(), stream);
    ++staged;
  }
  for (std::size_t b = 0; b < buffers.size() && code == CUDA_SUCCESS; ++b) {
    if (buffers[b].zeroed) code = cuda_.fill_zero(addresses[b], size_of(buffers[b]), stream);
  }
  return code;
}

CUresult TaskExecutor::queue_outputs(const Call& call, std::span<const CUdeviceptr> addresses, CUstream stream) {
  for (const CallLayout::Staged& output : call.layout.outputs) {
    char* const staging = call.staging.data + output.staging_offset;
    const CUresult code = cuda_.copy_out(staging, addresses[output.buffer], output.bytes, stream);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

void TaskExecutor::finish(Call& call) {
  wire::CallDone done = outcome(call);
  if (call.error.empty()) {
    for (const CallLayout::Staged& output : call.layout.outputs) {
      done.outputs.push_back(
          {.buffer = output.buffer, .object = 0, .bytes = {call.staging.data + output.staging_offset, output.bytes}});
    }
    const Duration run = cuda_.elapsed(call.times.run_begin, call.times.run_end);
    Duration copy = cuda_.elapsed(call.times.begin, call.times.run_begin);
    copy += objects_->copies().elapsed(call.times.load);
    load_bytes_per_second_ = objects_->copies().bytes_per_second(call.times.load).value_or(load_bytes_per_second_);
    copy += cuda_.elapsed(call.times.run_end, call.times.done);
    done.phases.kernel_run = run;
    done.phases.device_copy = copy;
    done.phases.device_malloc = call.malloc_time;
    const Duration whole = monotonic_now() - call.received;
    done.phases.overhead = std::max(Duration(0), whole - run - copy - call.malloc_time);
    done.gpu_ns = (run + copy).count();
  }
  for (const ObjectNeed& need : call.needs) done.session_bytes += static_cast<std::uint64_t>(need.bytes.count());
  done.session_bytes += static_cast<std::uint64_t>(call.scratch.bytes.count());
  objects_->release(call.request, call.error.empty(), call.scratch);
  pinned_.give_back(call.staging);
  free_times_.push_back(call.times);
  call.session->busy = false;
  erase_if_dropped(call.order.session);
  answer(std::move(done));
}

wire::CallDone TaskExecutor::outcome(const Call& call) const {
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
bool TaskExecutor::context_is_lost(const Call* starting) {
  if (lost_) return true;
  const CUresult code = cuda_.query(probe_);
  if (code == CUDA_SUCCESS) return false;
  wire::ServerFault fault{.error = cuda_.describe(code)};
  for (const auto& call : running_) fault.calls.push_back(call->order.call);
  if (starting != nullptr) fault.calls.push_back(starting->order.call);
  send_(fault);
  lost_ = true;
  return true;
}

}  // namespace fairlead
