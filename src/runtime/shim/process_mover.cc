#include "runtime/shim/process_mover.h"

#include <algorithm>

#include "base/log.h"

namespace fairlead {

using Answered = ProcessCheckpoints::Outcome;
using State = ProcessCheckpoints::State;
using wire::MoveResult;

namespace {

// A restore takes what the checkpoint freed, which NVML says of the process but for some of it: 5 MiB on an H100 with driver 580
// (tools/hardware-check). What is freed beyond this much more is another program's.
constexpr Bytes kMostUnsaid = mib(64);

}  // namespace

// A dead process has nothing to move, and its answers are not worth a word.
MoveResult ProcessMover::failed(const Process& process, const char* what, const std::string& error) {
  if (!process.alive()) return MoveResult::kNothing;
  spdlog::warn("the device memory of process {} stays where it is: {}: {}", process.pid, what, error);
  return MoveResult::kFailed;
}

ProcessMover::Outcome ProcessMover::out(const Process& process, Duration patience) const {
  const Bytes used = devices_.used_by(process.gpu, process.pid);
  const ProcessCheckpoints::Answer locked = checkpoints_->lock(process.pid, patience);
  switch (locked.outcome) {
    case Answered::kDone: return measured(process, used);
    case Answered::kTimedOut: return {MoveResult::kBusy, used};
    case Answered::kWrongState: break;
    default: return {failed(process, "cuCheckpointProcessLock", locked.error), used};
  }
  const std::optional<State> state = checkpoints_->state(process.pid);
  if (state == State::kCheckpointed) return {MoveResult::kDone, Bytes(0)};
  if (state == State::kLocked) return measured(process, used);
  return {failed(process, "cuCheckpointProcessLock", locked.error), used};
}

ProcessMover::Outcome ProcessMover::measured(const Process& process, Bytes used) const {
  const std::optional<Bytes> before = devices_.free(process.gpu);
  const MoveResult left = checkpoint_locked(process);
  const std::optional<Bytes> after = devices_.free(process.gpu);
  if (left != MoveResult::kDone || used == Bytes(0) || !before || !after) return {left, used};
  return {left, std::clamp(*after - *before, used, used + kMostUnsaid)};
}

// Between the look at the process and the lock, its number may have become another's.
MoveResult ProcessMover::checkpoint_locked(const Process& process) const {
  if (!process.alive()) {
    checkpoints_->unlock(process.pid);
    return MoveResult::kNothing;
  }
  const ProcessCheckpoints::Answer left = checkpoints_->checkpoint(process.pid);
  if (left.outcome == Answered::kDone) return MoveResult::kDone;
  checkpoints_->unlock(process.pid);
  if (left.outcome == Answered::kTimedOut) return MoveResult::kBusy;
  return failed(process, "cuCheckpointProcessCheckpoint", left.error);
}

ProcessMover::Outcome ProcessMover::in(const Process& process, Bytes needed) const {
  if (!process.alive()) return {MoveResult::kNothing};
  const std::optional<State> state = checkpoints_->state(process.pid);
  if (!state || state == State::kRunning) return {MoveResult::kNothing};
  if (state == State::kFailed) return {failed(process, "cuCheckpointProcessGetState", "its state is FAILED")};
  if (state == State::kLocked) return {unlock(process)};
  const std::optional<Bytes> free = devices_.free(process.gpu);
  if (free && *free < needed) return {MoveResult::kNoRoom};
  const ProcessCheckpoints::Answer back = checkpoints_->restore(process.pid);
  if (back.outcome == Answered::kNoMemory) return {MoveResult::kNoRoom};
  if (back.outcome != Answered::kDone) return {failed(process, "cuCheckpointProcessRestore", back.error)};
  return {unlock(process)};
}

MoveResult ProcessMover::unlock(const Process& process) const {
  const ProcessCheckpoints::Answer unlocked = checkpoints_->unlock(process.pid);
  return unlocked.outcome == Answered::kDone ? MoveResult::kDone
                                             : failed(process, "cuCheckpointProcessUnlock", unlocked.error);
}

}  // namespace fairlead
