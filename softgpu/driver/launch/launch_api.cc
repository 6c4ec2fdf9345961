// Launches.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/code/occupancy.h"
#include "softgpu/driver/launch/kernel_run.h"
#include "softgpu/driver/launch/launch.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::StreamUse;

namespace {

constexpr unsigned kMaxGridYz = 65535;
constexpr unsigned kMaxBlockXy = 1024;
constexpr unsigned kMaxBlockZ = 64;

// Parameters come one pointer each, or as one packed buffer in `extra`.
CUresult gather_parameters(const softgpu::ptx::KernelInfo& info, void** parameters, void** extra,
                           std::vector<std::byte>& packed) {
  if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
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

// All blocks of a cooperative launch are on its SMs at once.
CUresult check_together(const CUfunc_st& function, const CUlaunchConfig& config, std::uint64_t sms) {
  const unsigned threads = config.blockDimX * config.blockDimY * config.blockDimZ;
  const auto resident = static_cast<std::uint64_t>(softgpu::blocks_per_sm(function, threads, config.sharedMemBytes));
  const std::uint64_t blocks = std::uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
  return blocks <= resident * sms ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
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
  return cooperative ? check_together(function, config, function.module->context->sms()) : CUDA_SUCCESS;
}

// The events that a launch records beside its kernel. Here they complete with it, which is later than they may.
CUresult record_events(const softgpu::LaunchAttributes& attributes, CUstream stream) {
  for (const auto& [id, value] : attributes) {
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) SOFTGPU_TRY(cuEventRecord(value.programmaticEvent.event, stream));
    if (id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      SOFTGPU_TRY(cuEventRecord(value.launchCompletionEvent.event, stream));
    }
  }
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** parameters, void** extra,
                softgpu::LaunchAttributes attributes) {
  StreamUse use;
  softgpu::KernelLaunch launch;
  SOFTGPU_TRY(softgpu::capturable_stream(config.hStream, use));
  SOFTGPU_TRY(softgpu::describe_launch(config, handle, parameters, extra, std::move(attributes), launch));
  if (!use.context->is_of(*launch.function->module->context)) return CUDA_ERROR_INVALID_CONTEXT;
  launch.stream_context = use.context;
  launch.most_sms = std::min(use.most_sms, use.context->sms());
  if (softgpu::is_cooperative(launch.attributes)) {
    SOFTGPU_TRY(check_together(*launch.function, config, launch.most_sms));
  }
  SOFTGPU_TRY(softgpu::check_events(launch.attributes));
  if (use.capturing && softgpu::records_events(launch.attributes)) return softgpu::refuse_capturing(use);
  if (use.capturing) return softgpu::recorder_of(use).launch(use, std::move(launch));
  use.context->prints().flush();  // of kernels that ran
  use.context->streams().submit(*use.stream, softgpu::KernelRun(launch, std::move(launch.parameters)));
  return launch.attributes.empty() ? CUDA_SUCCESS : record_events(launch.attributes, config.hStream);
}

softgpu::LaunchAttributes cooperative_attribute() {
  CUlaunchAttributeValue value = {};
  value.cooperative = 1;
  return {{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value}};
}

}  // namespace

namespace softgpu {

CUresult describe_launch(const CUlaunchConfig& shape, CUfunction handle, void** parameters, void** extra,
                         LaunchAttributes attributes, KernelLaunch& launch) {
  SOFTGPU_TRY(resolve_function(handle, launch.function));
  SOFTGPU_TRY(check_shape(*launch.function, shape, is_cooperative(attributes)));
  SOFTGPU_TRY(gather_parameters(launch.function->kernel->info(), parameters, extra, launch.parameters));
  launch.shape = shape;
  launch.attributes = std::move(attributes);
  return CUDA_SUCCESS;
}

CUresult prepare_kernel(const KernelLaunch& launch, std::function<void()>& run) {
  if (!Functions::valid(launch.function)) return CUDA_ERROR_INVALID_HANDLE;
  SOFTGPU_TRY(check_shape(*launch.function, launch.shape, is_cooperative(launch.attributes)));
  run = softgpu::KernelRun(launch, launch.parameters);
  return CUDA_SUCCESS;
}

}  // namespace softgpu

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                        void** parameters, void** extra) {
  const CUlaunchConfig config = {grid_x, grid_y,  grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                 stream, nullptr, 0};
  return launch(config, function, parameters, extra, {});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  softgpu::LaunchAttributes attributes;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::read_attributes(config->attrs, config->numAttrs, attributes));
  return launch(*config, function, parameters, extra, std::move(attributes));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                                   CUstream stream, void** parameters) {
  const CUlaunchConfig config = {grid_x, grid_y,  grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                 stream, nullptr, 0};
  return launch(config, function, parameters, nullptr, cooperative_attribute());
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  StreamUse use;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (use.capturing) return softgpu::recorder_of(use).call_host(use, {function, user_data});
  CUcontext context = use.context;
  context->streams().submit(*use.stream, [=] {
    if (context->fault() == CUDA_SUCCESS) function(user_data);
  });
  return CUDA_SUCCESS;
}
