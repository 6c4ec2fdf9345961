// Checkpoints of processes, as device/hold.h makes them. The caller may be the process itself.
#include <algorithm>
#include <iterator>

#include "softgpu/device/time/execution.h"
#include "softgpu/driver/process.h"

using softgpu::HoldResult;
using softgpu::HoldState;
using softgpu::Process;

namespace {

CUresult result_of(HoldResult result) {
  switch (result) {
    case HoldResult::kDone: return CUDA_SUCCESS;
    case HoldResult::kNoProcess: return CUDA_ERROR_INVALID_VALUE;
    case HoldResult::kWrongState: return CUDA_ERROR_ILLEGAL_STATE;
    case HoldResult::kTimeout:
    case HoldResult::kUnderWay: return CUDA_ERROR_NOT_READY;
    case HoldResult::kShares: return CUDA_ERROR_NOT_SUPPORTED;
    case HoldResult::kNoRoom: return CUDA_ERROR_OUT_OF_MEMORY;
    case HoldResult::kStranded:
    case HoldResult::kBroken: return CUDA_ERROR_OPERATING_SYSTEM;
  }
  return CUDA_ERROR_UNKNOWN;
}

CUresult check_pid(int pid) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return pid > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename Arguments>
bool reserved_are_zero(const Arguments* arguments) {
  return arguments == nullptr || std::all_of(std::begin(arguments->reserved), std::end(arguments->reserved),
                                             [](cuuint64_t word) { return word == 0; });
}

// The bytes cross the link as any copy of the caller's would. On a device that the caller may not see they take no time.
void copy(const softgpu::Part& part, softgpu::Direction direction, std::uint64_t bytes) {
  for (const auto& entry : Process::get()->devices()) {
    if (entry->device->part().memory_files != part.memory_files) continue;
    softgpu::Transfer(*entry->device, direction).finish(bytes, [] { return false; });
    return;
  }
}

}  // namespace

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* arguments) {
  SOFTGPU_TRY(check_pid(pid));
  constexpr CUcheckpointLockArgs kNone = {};
  const CUcheckpointLockArgs& given = arguments != nullptr ? *arguments : kNone;
  const bool zero =
      std::all_of(std::begin(given.reserved1), std::end(given.reserved1), [](cuuint64_t word) { return word == 0; });
  if (!zero || given.reserved0 != 0) return CUDA_ERROR_INVALID_VALUE;
  return result_of(Process::get()->holder().lock(pid, given.timeoutMs));
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* arguments) {
  SOFTGPU_TRY(check_pid(pid));
  if (!reserved_are_zero(arguments)) return CUDA_ERROR_INVALID_VALUE;
  return result_of(Process::get()->holder().checkpoint(pid, copy));
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* arguments) {
  SOFTGPU_TRY(check_pid(pid));
  if (!reserved_are_zero(arguments)) return CUDA_ERROR_NOT_SUPPORTED;  // other devices
  return result_of(Process::get()->holder().restore(pid, copy));
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* arguments) {
  SOFTGPU_TRY(check_pid(pid));
  if (!reserved_are_zero(arguments)) return CUDA_ERROR_INVALID_VALUE;
  return result_of(Process::get()->holder().unlock(pid));
}

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  SOFTGPU_TRY(check_pid(pid));
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto held = Process::get()->holder().state(pid);
  if (!held) return CUDA_ERROR_INVALID_VALUE;
  switch (*held) {
    case HoldState::kRunning: *state = CU_PROCESS_STATE_RUNNING; break;
    case HoldState::kLocked: *state = CU_PROCESS_STATE_LOCKED; break;
    case HoldState::kStranded:  // the driver does not tell them apart
    case HoldState::kCheckpointed: *state = CU_PROCESS_STATE_CHECKPOINTED; break;
  }
  return CUDA_SUCCESS;
}

// No thread of the process takes part; its first one is as good as any for who freezes all others.
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* thread_id) {
  SOFTGPU_TRY(check_pid(pid));
  if (thread_id == nullptr || !Process::get()->holder().state(pid)) return CUDA_ERROR_INVALID_VALUE;
  *thread_id = pid;
  return CUDA_SUCCESS;
}
