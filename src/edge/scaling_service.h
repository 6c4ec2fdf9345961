// What edges ask of whoever measures functions and scales them. Implemented by src/node, faked in tests.
//
// Threads: calls and callbacks on the io_context's thread. A callback may run inside the call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "decide/scaling/placement_log.h"
#include "decide/scaling/scaling_ledger.h"
#include "model/function_profile.h"

namespace fairlead {

struct ProfileRequest {
  std::string function;
  std::string payload;                          // that every trial sends
  bool is_generated = false;                    // instead, of a kernel task: what the node makes up
  std::vector<std::string> more_payloads = {};  // these after it, in turn
  bool is_grid = false;                         // the paper's 35 trials in place of those that tell most
  double trial_seconds = 0;                     // that a trial measures for; 0: as long as it has to
  bool is_alone = false;                        // no trial at the end beside a copy of the function
};

// An experiment that goes on, or the last one that ended.
struct ExperimentStatus {
  std::string function;
  bool is_running = false;
  std::string state;   // "starts", "warms up", "measures", "ended"
  std::string doing;   // which rectangle, and why
  std::string failed;  // why it ended without a profile; "": it did not fail
  std::vector<MeasuredTrial> trials;
  std::uint64_t calls = 0;  // of the function, so far
};

struct ProfileStatus {
  std::vector<FunctionProfile> profiles;  // of the function, the newest first
  std::optional<ExperimentStatus> experiment;
  std::vector<ComponentTime> components = {};  // of a pipeline, as plans count on them now; empty: it is none
};

struct ScalingNote {
  std::int64_t at_ms = 0;  // since 1970
  std::string saw;
  std::vector<std::string> did;
  std::vector<std::string> rejected;
  std::uint64_t repeats = 0;  // how often the same was seen and nothing done since
};

// Of one function that the node scales, or would.
struct ScalingStatus {
  std::string function;
  std::string state;                         // "scaled", "pinned", "best effort"
  std::string lacking;                       // why it is best effort
  int width_percent = 0, quota_percent = 0;  // of an instance
  double rate_per_s = 0;                     // that one answers
  double execution_ms = 0;
  std::size_t seats = 0, ready = 0, parked = 0, starting = 0;
  double gpus = 0;                 // price: what the seats fill, in devices
  double gpus_per_instance = 0;    // of one
  std::vector<ScalingNote> notes;  // the newest first
  double objective_ms = 0;         // 0: none
  LedgerTotals totals;
  std::vector<LedgerSecond> seconds;  // the oldest first
};

class ScalingService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~ScalingService() = default;

  // Begins an experiment. kNotFound; kConflict: one goes on; kInvalidArgument: the function cannot be profiled, and why.
  virtual Status start_profile(ProfileRequest request) = 0;
  virtual Result<ProfileStatus> profile(const std::string& function) = 0;  // kNotFound
  // pipeline.json of a function that is a pipeline, with the times that plans count on now. kNotFound; kInvalidArgument: it is none.
  virtual Result<std::string> pipeline(const std::string& function) = 0;
  virtual Status stop_profile(const std::string& function) = 0;  // kNotFound: none goes on
  // Of another node, of the same code. kInvalidArgument: of other code.
  virtual void import_profile(std::string function, FunctionProfile profile, Callback<FunctionProfile> done) = 0;

  virtual Result<ScalingStatus> scaling(
      const std::string& function) = 0;                  // kNotFound; kInvalidArgument: it is not scaled
  virtual std::vector<ScalingStatus> all_scaling() = 0;  // without notes and seconds
  virtual std::vector<PlacementEntry> placements() = 0;  // of all functions that are scaled (placement_log.h)
};

}  // namespace fairlead
