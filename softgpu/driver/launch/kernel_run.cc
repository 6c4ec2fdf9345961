#include "softgpu/driver/launch/kernel_run.h"

#include <atomic>
#include <functional>
#include <optional>

#include "softgpu/device/memory/memory_use.h"
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/memory/texture.h"

namespace softgpu {
namespace {

using ptx::FaultKind;

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

std::uint64_t next_grid_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

KernelRun::KernelRun(const KernelLaunch& launch, std::vector<std::byte> parameters)
    : context_(launch.function->module->context),
      stream_context_(launch.stream_context != nullptr ? launch.stream_context : context_),
      most_sms_(launch.most_sms),
      code_(launch.function->code),
      kernel_(launch.function->kernel),
      parameters_(std::move(parameters)) {
  const CUlaunchConfig& shape = launch.shape;
  launch_.grid = {shape.gridDimX, shape.gridDimY, shape.gridDimZ};
  launch_.block = {shape.blockDimX, shape.blockDimY, shape.blockDimZ};
  launch_.dynamic_shared_bytes = shape.sharedMemBytes;
  launch_.cooperative = is_cooperative(launch.attributes);
  launch_.workers = Process::get()->settings().workers;
  launch_.multiprocessors = static_cast<unsigned>(sms());
  launch_.textures = &texture_table();
  launch_.cancel = &context_->cancel();
  launch_.also_cancel = &stream_context_->cancel();
}

void KernelRun::operator()() {
  const StopCheck stop = [this] { return context_->must_stop() || stream_context_->must_stop(); };
  if (stop()) return;
  Device& device = context_->device();
  Execution execution(device, describe(), stop);
  if (!execution.begin()) return;
  if (const auto timeout = Process::get()->settings().launch_timeout_ns; timeout != 0) {
    launch_.deadline_ns = &execution.set_timeout(timeout);
  }
  const std::function<void()> pause = [&execution] { execution.pause(); };
  launch_.pause = &pause;
  ptx::Outcome outcome;
  std::optional<KernelWork> work;
  if (device.machine().mode == Mode::kCharge) work = synthetic_work(kernel_->info(), parameters_, blocks());
  if (work) {
    pause();
  } else {
    execute(outcome, work.emplace());
  }
  execution.end(*work);
  if (const CUresult error = result_of(outcome.fault); error != CUDA_SUCCESS) {
    context_->set_fault(error, outcome.fault_detail);
    if (device.share().faults_shared) device.share_fault(error);
  }
}

void KernelRun::execute(ptx::Outcome& outcome, KernelWork& work) {
  launch_.parameters = parameters_;
  launch_.grid_id = next_grid_id();
  const LaunchSpace space(context_->part<ContextSpace>());
  const MemoryUse use;
  outcome = kernel_->run(space, launch_);
  work.lane_instructions = outcome.lane_instructions;
  work.global_bytes = outcome.global_bytes;
  work.migrated_pages = space.migrated();
}

Execution::Kernel KernelRun::describe() const {
  return {kernel_->info().name, blocks(), sms()};
}

}  // namespace softgpu
