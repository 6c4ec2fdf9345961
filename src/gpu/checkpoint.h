// The driver's checkpoints of processes: stopping another process's use of its GPUs and moving its device memory, contexts
// and all, to the host. From NVIDIA's driver 570 (CUDA 12.8) on.
//
// Threads: thread-safe, as the driver is. All but load() may block, checkpoint() and restore() for seconds.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

class ProcessCheckpoints {
 public:
  enum class State { kRunning, kLocked, kCheckpointed, kFailed };
  enum class Outcome {
    kDone,
    kTimedOut,    // its work did not end; it is not locked
    kNoMemory,    // restore: the device is full
    kWrongState,  // nothing has changed
    kRefused,     // anything else
  };
  struct Answer {
    Outcome outcome = Outcome::kDone;
    std::string error;  // as the driver names it
  };

  // library_dir: folder with libcuda.so.1; empty: where the system's loader looks. Starts no thread. kUnavailable when
  // there is no library, or it has no checkpoints: what is needed instead.
  static Result<std::unique_ptr<ProcessCheckpoints>> load(const std::string& library_dir);
  virtual ~ProcessCheckpoints() = default;

  // To be called before the others, and where the process may have threads. kUnavailable: the driver does not start.
  virtual Status start() = 0;

  // By a process's id in this process's namespace. Each wants one state: running, locked, checkpointed, locked.
  virtual Answer lock(int pid, Duration patience) = 0;
  virtual Answer checkpoint(int pid) = 0;
  virtual Answer restore(int pid) = 0;
  virtual Answer unlock(int pid) = 0;
  // Empty: the process does not use the driver, or is gone.
  virtual std::optional<State> state(int pid) = 0;
};

}  // namespace fairlead
