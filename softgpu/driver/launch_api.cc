// Launches.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "softgpu/device/execution.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/occupancy.h"
#include "softgpu/driver/stream_handle.h"

using softgpu::StreamUse;

namespace {

using softgpu::ptx::Dim3;
using softgpu::ptx::FaultKind;

constexpr unsigned kMaxGridYz = 65535;
constexpr unsigned kMaxBlockXy = 1024;
constexpr unsigned kMaxBlockZ = 64;

// What the stream executes; holds the code and a copy of the parameters until then.
struct KernelRun {
  CUcontext context = nullptr;
  std::shared_ptr<const softgpu::LoadedModule> code;
  const softgpu::ptx::Kernel* kernel = nullptr;
  softgpu::ptx::Launch launch;
  std::vector<std::byte> parameters;

  void operator()();

 private:
  softgpu::Execution::Kernel describe() const {
    return {kernel->info().name, std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z};
  }
};

CUresult result_of(FaultKind fault) {
  switch (fault) {
    case FaultKind::kNone:
    case FaultKind::kCancelled: return CUDA_SUCCESS;
    case FaultKind::kIllegalAddress: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::kMisalignedAddress: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::kLaunchTimeout: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::kAssert: return CUDA_ERROR_ASSERT;
    case FaultKind::kIllegalInstruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::kLaunchFailed: return CUDA_ERROR_LAUNCH_FAILED;
    case FaultKind::kInvalidPc: return CUDA_ERROR_INVALID_PC;
  }
  return CUDA_ERROR_UNKNOWN;
}

void KernelRun::operator()() {
  const softgpu::StopCheck stop = [this] { return context->fault() != CUDA_SUCCESS || context->cancel().load(); };
  if (stop()) return;
  softgpu::Device& device = context->device();
  softgpu::Execution execution(device, describe(), stop);
  if (!execution.begin()) return;
  if (const auto timeout = softgpu::Process::get()->settings().launch_timeout_ns; timeout != 0) {
    launch.deadline_ns = softgpu::monotonic_ns() + timeout;
    execution.set_deadline(launch.deadline_ns);
  }
  const std::function<void()> pause = [&execution] { execution.pause(); };
  launch.pause = &pause;
  launch.parameters = parameters;
  launch.cancel = &context->cancel();
  std::optional<softgpu::KernelWork> work;
  softgpu::ptx::Outcome outcome;
  if (device.machine().mode == softgpu::Mode::kCharge) work = softgpu::synthetic_work(kernel->info(), parameters);
  if (work) {
    pause();
  } else {
    const softgpu::LaunchSpace space(context->space());
    const std::shared_lock gate(context->owner().memory_gate);
    outcome = kernel->run(space, launch);
    work = {outcome.lane_instructions, outcome.global_bytes};
    work->migrated_pages = space.migrated();
  }
  execution.end(*work);
  if (const CUresult error = result_of(outcome.fault); error != CUDA_SUCCESS) {
    context->set_fault(error, outcome.fault_detail);
    if (device.share().faults_shared) device.share_fault(error);
  }
}

// Parameters come one pointer each, or as one packed buffer in `extra`.
CUresult gather_parameters(const softgpu::ptx::KernelInfo& info, void** parameters, void** extra,
                           std::vector<std::byte>& packed) {
  packed.resize(info.parameter_bytes);
  if (parameters != nullptr) {
    for (std::size_t i = 0; i < info.parameters.size(); ++i) {
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(packed.data() + info.parameters[i].offset, parameters[i], info.parameters[i].size);
    }
    return CUDA_SUCCESS;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // A buffer may be longer than the parameters by padding, not shorter.
  if (info.parameters.empty()) return CUDA_SUCCESS;
  if (buffer == nullptr || size < info.parameters.back().offset + info.parameters.back().size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(packed.data(), buffer, std::min(size, packed.size()));
  return CUDA_SUCCESS;
}

CUresult check_shape(const CUfunc_st& function, const CUlaunchConfig& config, bool cooperative) {
  if (config.gridDimX == 0 || config.gridDimY == 0 || config.gridDimZ == 0 || config.blockDimX == 0 ||
      config.blockDimY == 0 || config.blockDimZ == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (config.gridDimX > INT32_MAX || config.gridDimY > kMaxGridYz || config.gridDimZ > kMaxGridYz ||
      config.blockDimX > kMaxBlockXy || config.blockDimY > kMaxBlockXy || config.blockDimZ > kMaxBlockZ) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
  if (threads > kMaxBlockXy || config.sharedMemBytes > static_cast<unsigned>(function.max_dynamic_shared.load())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (threads > function.kernel->info().max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (!cooperative) return CUDA_SUCCESS;
  const auto resident = static_cast<std::uint64_t>(
      softgpu::blocks_per_sm(function, static_cast<unsigned>(threads), config.sharedMemBytes));
  const std::uint64_t blocks = std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
  const std::uint64_t sms = function.module->context->device().sms();
  return blocks <= resident * sms ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** parameters, void** extra, bool cooperative) {
  StreamUse use;
  CUfunction function = nullptr;
  SOFTGPU_TRY(softgpu::healthy_stream(config.hStream, use));
  SOFTGPU_TRY(softgpu::resolve_function(handle, function));
  if (function->module->context != use.context) return CUDA_ERROR_INVALID_CONTEXT;
  SOFTGPU_TRY(check_shape(*function, config, cooperative));
  KernelRun run{use.context, function->code, function->kernel, {}, {}};
  SOFTGPU_TRY(gather_parameters(function->kernel->info(), parameters, extra, run.parameters));
  run.launch.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  run.launch.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  run.launch.dynamic_shared_bytes = config.sharedMemBytes;
  run.launch.cooperative = cooperative;
  run.launch.workers = softgpu::Process::get()->settings().workers;
  use.context->submit(*use.stream, std::move(run));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                        void** parameters, void** extra) {
  const CUlaunchConfig config = {grid_x, grid_y,  grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                 stream, nullptr, 0};
  return launch(config, function, parameters, extra, false);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = attribute.value.clusterDim;
      if (cluster.x * cluster.y * cluster.z > 1) return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return launch(*config, function, parameters, extra, cooperative);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                                   CUstream stream, void** parameters) {
  const CUlaunchConfig config = {grid_x, grid_y,  grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                 stream, nullptr, 0};
  return launch(config, function, parameters, nullptr, true);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  StreamUse use;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::healthy_stream(stream, use));
  CUcontext context = use.context;
  context->submit(*use.stream, [=] {
    if (context->fault() == CUDA_SUCCESS) function(user_data);
  });
  return CUDA_SUCCESS;
}
