#include "runtime/device_server/kernel_session.h"

#include <cstring>

#include "base/check.h"
#include "runtime/device_server/range_allocator.h"

namespace fairlead {
namespace {

constexpr std::size_t kArgumentAlignment = 16;

}  // namespace

CUmodule KernelCache::find(const std::string& key) const {
  const auto found = modules_.find(key);
  return found == modules_.end() ? nullptr : found->second;
}

Result<CUmodule> KernelCache::load(const std::string& key, const std::string& image) {
  auto module = cuda_.load_module(image);
  if (module) modules_[key] = *module;
  return module;
}

Result<std::unique_ptr<LaunchLane>> LaunchLane::create(CudaContext& cuda) {
  auto lane = std::make_unique<LaunchLane>();
  const auto fork = cuda.make_event(false);
  if (!fork) return fail(fork.error());
  lane->fork_ = *fork;
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    const auto stream = cuda.make_stream();
    const auto join = cuda.make_event(false);
    if (!stream) return fail(stream.error());
    if (!join) return fail(join.error());
    lane->streams_[i] = *stream;
    lane->joins_[i] = *join;
  }
  return lane;
}

Status LaunchLane::need_events(CudaContext& cuda, std::uint32_t count) {
  while (events_.size() < count) {
    const auto event = cuda.make_event(false);
    if (!event) return fail(event.error());
    events_.push_back(*event);
  }
  return {};
}

Result<std::unique_ptr<KernelSession>> KernelSession::create(CudaContext& cuda, KernelTask task,
                                                             const std::vector<CUmodule>& modules) {
  auto session = std::make_unique<KernelSession>();
  session->task_ = std::move(task);
  if (Status resolved = session->resolve(cuda, modules); !resolved) return fail(resolved.error());
  session->lay_out_arguments();
  session->lay_out_temporaries();
  session->plan_ = make_launch_plan(dependencies(session->task_), LaunchLane::kStreams);
  return session;
}

Status KernelSession::resolve(CudaContext& cuda, const std::vector<CUmodule>& modules) {
  for (std::size_t k = 0; k < task_.kernels.size(); ++k) {
    const KernelLaunch& launch = task_.kernels[k];
    const auto function = cuda.find_kernel(modules.at(launch.module), launch.kernel, launch.shared_bytes);
    if (!function) {
      return fail(Errc::kInvalidArgument, "kernels[{}] ({}) of {}: {}", k, launch.kernel,
                  task_.modules[launch.module].name, function.error().message);
    }
    kernels_.push_back({.function = *function});
  }
  return {};
}

void KernelSession::lay_out_arguments() {
  const auto reserve = [this](std::size_t bytes) {
    values_.resize((values_.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment);
    value_offsets_.push_back(static_cast<std::uint32_t>(values_.size()));
    values_.resize(values_.size() + bytes);
    return value_offsets_.back();
  };
  for (std::size_t k = 0; k < task_.kernels.size(); ++k) {
    kernels_[k].first_argument = static_cast<std::uint32_t>(value_offsets_.size());
    for (const KernelArgument& argument : task_.kernels[k].arguments) {
      if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
        patches_.push_back({reserve(sizeof(CUdeviceptr)), buffer->buffer, buffer->offset});
        continue;
      }
      const auto& literal = std::get<LiteralArgument>(argument);
      const std::uint32_t at = reserve(literal.bytes.size());
      std::memcpy(values_.data() + at, literal.bytes.data(), literal.bytes.size());
      for (const LiteralArgument::Relocation& relocation : literal.relocations) {
        patches_.push_back({at + relocation.at, relocation.target.buffer, relocation.target.offset});
      }
    }
  }
  for (const std::uint32_t offset : value_offsets_) parameters_.push_back(values_.data() + offset);
}

void KernelSession::lay_out_temporaries() {
  std::uint64_t end = 0;
  for (const BufferSpec& buffer : task_.buffers) {
    const bool temporary = buffer.role == BufferRole::kTemporary;
    temporary_offsets_.push_back(temporary ? end : 0);
    if (temporary) end += RangeAllocator::round_up(static_cast<std::uint64_t>(buffer.bytes.count()));
  }
  temporary_bytes_ = Bytes(static_cast<std::int64_t>(end));
}

CUresult KernelSession::launch(CudaContext& cuda, LaunchLane& lane, const std::vector<CUdeviceptr>& addresses) {
  for (const Patch& patch : patches_) {
    const CUdeviceptr address = addresses[patch.buffer] + patch.offset;
    std::memcpy(values_.data() + patch.at, &address, sizeof address);
  }
  CUresult code = CUDA_SUCCESS;
  for (std::uint32_t i = 0; i < task_.iterations && code == CUDA_SUCCESS; ++i) code = launch_once(cuda, lane);
  return code;
}

// Streams beyond the first begin after everything before them on the first, and the first goes on after all of them.
CUresult KernelSession::launch_once(CudaContext& cuda, LaunchLane& lane) {
  CUresult code = CUDA_SUCCESS;
  const auto check = [&code](CUresult result) {
    if (code == CUDA_SUCCESS) code = result;
  };
  if (plan_.streams > 1) {
    check(cuda.record(lane.fork(), lane.main()));
    for (std::uint32_t s = 1; s < plan_.streams; ++s) check(cuda.wait(lane.stream(s), lane.fork()));
  }
  for (std::size_t k = 0; k < kernels_.size() && code == CUDA_SUCCESS; ++k) {
    const LaunchPlan::Step& step = plan_.steps[k];
    const KernelLaunch& launch = task_.kernels[k];
    const CUstream stream = lane.stream(step.stream);
    for (const std::uint32_t event : step.waits) check(cuda.wait(stream, lane.event(event)));
    check(cuda.launch(kernels_[k].function, launch.grid, launch.block, launch.shared_bytes, stream,
                      parameters_.data() + kernels_[k].first_argument));
    if (step.records >= 0) check(cuda.record(lane.event(static_cast<std::uint32_t>(step.records)), stream));
  }
  for (std::uint32_t s = 1; s < plan_.streams; ++s) {
    check(cuda.record(lane.join(s), lane.stream(s)));
    check(cuda.wait(lane.main(), lane.join(s)));
  }
  return code;
}

}  // namespace fairlead
