#include "runtime/device_server/session_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/clock.h"
#include "decide/residency/kernel_width.h"
#include "gpu/fence/block_ranges.h"

namespace fairlead {
namespace {

// What is made ready for a session's first call at most: of device memory, and pinned.
constexpr Bytes kMostPreparedRoom{64 << 20};
constexpr Bytes kMostPreparedStaging{1 << 20};

Bytes rounded(const BufferSpec& buffer) {
  return Bytes(static_cast<std::int64_t>(RangeAllocator::round_up(static_cast<std::uint64_t>(buffer.bytes.count()))));
}

// What a call brings and takes, if all of it travels inside the call.
Bytes bytes_of_calls(const KernelTask& task) {
  Bytes bytes{0};
  for (const BufferSpec& buffer : task.buffers) {
    if (buffer.role != BufferRole::kConstant && buffer.role != BufferRole::kTemporary) bytes += rounded(buffer);
  }
  return bytes;
}

// Where pages are made when they are first written, as on the software GPU, a call finds its first ones made. Waited for, since
// the memory is anybody's next. REQUIRES: nothing runs.
void touch(CudaContext& cuda, DeviceObjects& objects, const DeviceObjects::Scratch& scratch, CUstream stream) {
  CUresult code = objects.wait(stream, {}, scratch, {});
  const auto bytes = static_cast<std::size_t>(std::min(scratch.bytes, kMostPreparedStaging).count());
  if (code == CUDA_SUCCESS) code = cuda.fill_zero(objects.address(scratch), bytes, stream);
  if (code == CUDA_SUCCESS) (void)cuda.synchronize(stream);
}

// The driver reads a twin's arguments by what the module says, as it does a kernel's: those of the kernel, and its range. Where modules
// are rewritten by another process nothing of that is taken on trust; else the text is this process's own.
Status check_twins(const TaskRegistration& registration, const std::vector<std::vector<KernelSignature>>& signatures) {
  for (std::size_t k = 0; k < registration.twins.size() && !signatures.empty(); ++k) {
    if (!registration.twins[k]) continue;
    const KernelLaunch& launch = registration.task.kernels[k];
    const auto& module = signatures.at(launch.module);
    const auto kernel = std::ranges::find(module, launch.kernel, &KernelSignature::name);
    const auto twin = std::ranges::find(module, fence::twin_of(launch.kernel), &KernelSignature::name);
    const bool fits =
        kernel != module.end() && twin != module.end() && twin->parameters.size() == kernel->parameters.size() + 1 &&
        std::ranges::equal(kernel->parameters, std::span(twin->parameters).first(kernel->parameters.size())) &&
        twin->parameters.back().bytes == sizeof(fence::RangeWords);
    if (!fits) return fail(Errc::kInternal, "kernels[{}] ({}): its twin has other parameters", k, launch.kernel);
  }
  return {};
}

}  // namespace

Result<CUmodule> SessionLoader::load_module(TaskRegistration& registration, std::size_t module) {
  KernelCache::Lease& lease = registration.modules[module];
  const std::string& key = registration.keys[module];
  if (!lease) lease = modules_.find(key);  // the same as one before it
  if (!lease) {
    auto loaded = modules_.load(key, registration.code[module]);
    if (!loaded) {
      return fail(loaded.error().code, "module {}: {}", registration.task.modules[module].name, loaded.error().message);
    }
    lease = *std::move(loaded);
  }
  return lease.module();
}

Result<TaskSession> SessionLoader::load(TaskRegistration& registration) {
  TaskSession session{.range = registration.range};
  std::vector<CUmodule> modules;
  std::vector<std::vector<KernelSignature>> signatures;
  for (std::size_t m = 0; m < registration.modules.size(); ++m) {
    const auto module = load_module(registration, m);
    if (!module) return fail(module.error());
    modules.push_back(*module);
    if (modules_.are_fenced()) signatures.push_back(modules_.signatures(registration.keys[m]));
    session.modules.push_back(std::move(registration.modules[m]));
  }
  CudaContext& cuda = resources_.cuda;
  if (modules_.are_fenced()) {
    // The node has checked the module as it came. What the driver got was read by another parser, and one byte of argument
    // too few would be one of this process's.
    if (Status valid = validate_task(registration.task, signatures, cuda.limits()); !valid) return fail(valid.error());
  }
  if (Status twins = check_twins(registration, signatures); !twins) return fail(twins.error());
  Cublas* const cublas = cublas_for(registration.task);
  auto kernels = KernelSession::create(cuda, std::move(registration.task), modules, options_.launching, cublas,
                                       registration.twins);
  if (!kernels) return fail(kernels.error());
  if (Status events = resources_.lanes.need_events((*kernels)->plan().events); !events) return fail(events.error());
  session.kernels = *std::move(kernels);
  // Machine code may launch kernels itself: cudadevrt is linked into it.
  const bool is_counted = std::ranges::none_of(session.modules, &KernelCache::Lease::is_binary);
  if (is_counted) session.width_percent = width_percent(session.kernels->most_blocks(), sms_);
  const int most = static_cast<int>(std::min(registration.frame.most_width_percent, 100U));
  if (session.width_percent <= most) return session;
  if (Status kept =
          is_counted ? keep_to(session, most) : fail(Errc::kUnavailable, "machine code may launch kernels itself");
      !kept) {
    session.why_not_kept = kept.error().message;
  }
  return session;
}

// On groups of SMs, as many as fit into `most` per cent, where that is narrower than its kernels.
Status SessionLoader::keep_to(TaskSession& session, int most) const {
  if (!options_.keeps_to_sms)
    return fail(Errc::kUnavailable, "--task-isolation fence keeps kernels to a part of the SMs");
  PartLanes& parts = resources_.lanes.parts();
  const auto sms = parts.groups();
  if (!sms) return fail(sms.error());
  const std::uint32_t groups = (*sms)->within(most);
  const int percent = (*sms)->percent_of(groups);
  if (percent >= session.width_percent) return {};
  // The first call finds a green context made, and what the driver has against it is known now.
  const auto lane = parts.take(groups);
  if (!lane) return fail(lane.error());
  parts.give_back(**lane);
  session.sm_groups = groups;
  session.sms = (*sms)->sms_of(groups);
  session.width_percent = percent;
  session.kernels->forget_graph();
  return {};
}

// None where its workspaces might be what does not fit beside all of the task's buffers.
Cublas* SessionLoader::cublas_for(const KernelTask& task) const {
  Bytes all = KernelSession::kMostWorkspace;
  for (const BufferSpec& buffer : task.buffers) all += rounded(buffer);
  return all <= options_.device_bytes ? options_.cublas : nullptr;
}

void SessionLoader::preload(const wire::RegisterSession& frame, const TaskSession& session, RequestId request,
                            bool device_is_idle) {
  DeviceObjects& objects = resources_.objects;
  const KernelTask& task = session.kernels->task();
  std::vector<ObjectNeed> needs;
  Bytes bytes{0};
  for (const wire::BoundObject& bound : frame.constants) {
    const ObjectId object(bound.object);
    const bool named_before = std::ranges::find(needs, object, &ObjectNeed::object) != needs.end();
    if (named_before || objects.cache().on_device(object)) continue;
    if (!objects.available(object)) return;
    needs.push_back({object, task.buffers[bound.buffer].bytes, ObjectKind::kConstant});
    bytes += rounded(task.buffers[bound.buffer]);
  }
  const Bytes free = objects.cache().device_free();
  if (bytes > free) return;
  const Bytes inlined = bytes_of_calls(task);
  DeviceObjects::Scratch scratch{.range = session.range, .bytes = session.kernels->temporary_bytes() + inlined};
  const bool has_room = device_is_idle && scratch.bytes <= std::min(kMostPreparedRoom, free - bytes);
  if (!has_room) scratch.bytes = Bytes(0);
  if (needs.empty() && scratch.bytes == Bytes(0)) return;
  const auto times = resources_.times.take();
  if (!times) return;
  CallTimes copies = *times;
  if (objects.acquire(monotonic_now(), request, needs, scratch, copies.load)) {
    if (scratch.bytes > Bytes(0)) touch(resources_.cuda, objects, scratch, resources_.lanes.first().main());
    objects.release(request, true, scratch);
  }
  resources_.times.give_back(copies);
  if (inlined > kMostPreparedStaging) return;
  const auto staging = resources_.pinned.take(static_cast<std::uint64_t>(inlined.count()));
  if (staging) resources_.pinned.give_back(*staging);
}

}  // namespace fairlead
