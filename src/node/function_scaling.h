// What was measured of functions, and what the node makes of it: profiles in memory and on disk, experiments (profiler.h).
//
// Threads: everything on the io_context's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "edge/node_service.h"
#include "edge/scaling_service.h"
#include "node/autoscaler.h"
#include "node/pipeline_trials.h"
#include "node/profile_book.h"
#include "node/profiler.h"
#include "store/store.h"

namespace fairlead {

class FunctionScaling final : public ScalingService {
 public:
  using Devices = std::function<std::vector<Device>()>;

  // `times`: of pipelines' components, shared with who plans by them.
  FunctionScaling(boost::asio::io_context& io, Store& store, FunctionControl& control, Functions& functions,
                  Invocations& invocations, Instances& instances, CoreDriver& driver, Devices devices,
                  std::shared_ptr<ComponentTimes> times);

  Status recover() { return profiles_.recover(); }  // those that the store holds, at the start
  // The devices are there. From now on functions are scaled.
  void start(Autoscaler::Options options);
  void called(const std::string& function) { autoscaler_.called(function); }
  // `done`, and how the call ended is in the books of a function that is scaled.
  NodeService::Callback<Outcome> counted(const std::string& function, NodeService::Callback<Outcome> done);
  void drain() {
    profiler_.stop("the node drains");
    pipelines_.stop("the node drains");
  }
  void function_removed(const std::string& function);

  Status start_profile(ProfileRequest request) override;
  Result<ProfileStatus> profile(const std::string& function) override;
  Result<std::string> pipeline(const std::string& function) override;
  Status stop_profile(const std::string& function) override;
  void import_profile(std::string function, FunctionProfile profile, Callback<FunctionProfile> done) override;
  Result<ScalingStatus> scaling(const std::string& function) override;
  std::vector<ScalingStatus> all_scaling() override { return autoscaler_.all(); }
  std::vector<PlacementEntry> placements() override { return autoscaler_.placements(); }

 private:
  std::string measure(const FunctionRecord& record);
  void learn_from(const FunctionProfile& profile);

  Functions& functions_;
  bool has_widths_ = false;
  const Devices devices_;
  // Of functions whose experiment did not begin or failed: of which code and samples, why, and when it is tried again.
  struct Unmeasured {
    std::string code, why;
    std::optional<Instant> again;
  };
  std::map<std::string, Unmeasured> unmeasured_;
  const std::shared_ptr<ComponentTimes> times_;
  ProfileBook profiles_;
  Profiler profiler_;
  PipelineTrials pipelines_;
  Autoscaler autoscaler_;
  Lifetime life_;
};

}  // namespace fairlead
