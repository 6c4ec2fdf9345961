// Device memory of whole processes, moved off the device and back by the driver's checkpoints (gpu/checkpoint.h): all of a
// process or nothing, its contexts too, and without its help.
//
//   running ──out: lock, checkpoint──> away ──in: restore, unlock──> running
//
// Example: out, patience 1.25 s: the process's kernel ends after 0.2 s, 600 MiB and a context of 300 cross the link; in:
// the device has 800 MiB free and 900 are needed, so the driver is not asked. Asking it would not be free: after a restore
// that found the device full, NVIDIA's 580 fails every later one.
//
// A process that an earlier move left half-way (locked) is taken on from there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>

#include "base/ids.h"
#include "base/units.h"
#include "gpu/checkpoint.h"
#include "wire/shim_frames.h"

namespace fairlead {

class ProcessMover {
 public:
  // What is known of the devices. May block; called on the threads that move.
  struct Devices {
    std::function<std::optional<Bytes>(GpuId)> free;  // empty: not known
    std::function<Bytes(GpuId, pid_t)> used_by;       // by the process, contexts and all; 0: not known
  };
  struct Process {
    pid_t pid = 0;
    GpuId gpu;
    std::function<bool()> alive;  // false once `pid` may be another's
  };
  struct Outcome {
    wire::MoveResult result = wire::MoveResult::kDone;
    Bytes used{0};  // out: by the process before it left, as the devices say; 0: not known
  };

  ProcessMover(std::shared_ptr<ProcessCheckpoints> checkpoints, Devices devices)
      : checkpoints_(std::move(checkpoints)), devices_(std::move(devices)) {}

  // Both block. Thread-safe; REQUIRES: no other move of the same process.
  // kDone, kBusy (its work did not end), kNothing (it is gone), kFailed. Unless kDone its memory is where it was.
  Outcome out(const Process& process, Duration patience) const;
  // `needed`: room it takes. kDone, kNoRoom (it is away still, and whole), kNothing (it was not away), kFailed.
  Outcome in(const Process& process, Bytes needed) const;

 private:
  Outcome measured(const Process& process, Bytes used) const;  // checkpoint_locked(), and what that freed
  wire::MoveResult checkpoint_locked(const Process& process) const;
  wire::MoveResult unlock(const Process& process) const;
  static wire::MoveResult failed(const Process& process, const char* what, const std::string& error);

  const std::shared_ptr<ProcessCheckpoints> checkpoints_;  // shared with who may still start it
  const Devices devices_;
};

}  // namespace fairlead
