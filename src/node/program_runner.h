// Programs: each instance a sandbox with the Lambda Runtime API in it (runtime/instance_host.h), and a shim that counts and
// moves the device memory of its processes (runtime/shim/shim_host.h).
//
//   start: function + GPU ──> what the sandbox is built from ──> spawner
//   gone:  the sandbox has ended ──> its shim's memory is free ──> told
//
// Threads: everything on the io_context's thread. Copies to and from host memory run on threads of their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>

#include "model/in_place.h"
#include "model/volume.h"
#include "node/gpu_access.h"
#include "node/gpu_pacers.h"
#include "node/object_sockets.h"
#include "node/runner.h"
#include "node/secrets.h"
#include "node/worker.h"
#include "runtime/models/model_host.h"
#include "runtime/shim/shim_host.h"

namespace fairlead {

// Makes what an instance is started with part of a GPU's sharing.
using GiveShare = std::function<void(InstanceSpec&, GpuId, const Share&)>;

struct ProgramRunnerOptions {
  InstanceHostOptions host;
  GpuAccess gpu_access;
  std::optional<ShimHostOptions> shims;  // none: without the shim; socket_dir, background and run_move are the runner's
  std::optional<ModelHostOptions> models;  // none: programs keep no models together; socket_dir is the runner's
  SecretSource secrets;
  std::vector<Volume> volumes;          // that functions may ask for
  InPlaceTerms in_place;                // which folders may be a function's code without a copy
  std::function<Status()> forked = {};  // called when the spawner is, and this process has one thread yet
};

// Where the connections of a function with these tags may lead. kInvalidArgument: further than its tenant's; kUnavailable: this
// machine gives nobody a way out.
Result<EgressTerms> egress_for(const InstanceHostOptions& options, const std::map<std::string, std::string>& tags);

// What names a version of a function to the store of models.
std::string model_scope(const FunctionRecord& record);

class ProgramRunner final : public Runner {
 public:
  // Forks the spawner: construct before any other thread exists.
  static Result<std::unique_ptr<ProgramRunner>> create(boost::asio::io_context& io, ProgramRunnerOptions options,
                                                       InstanceEvents events, MemoryEvents memory);

  // Before the first start.
  void set_objects(std::unique_ptr<ObjectSockets> objects) { objects_ = std::move(objects); }
  void set_share(GiveShare give_share) { give_share_ = std::move(give_share); }

  void start(const StartOrder& order) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
  void kill(InstanceId instance) override { host_->kill(instance); }
  std::optional<DeviceUse> use(InstanceId instance) override;
  UseSource use_source() const override { return UseSource::kReported; }
  void swap_out(InstanceId instance, Bytes bytes, Duration deadline) override;
  void swap_in(InstanceId instance) override;
  void pace(InstanceId instance, const PacedShare& share) override { pacers_.set_share(instance, share); }
  void grant_room(InstanceId instance, std::uint64_t request, bool granted) override;
  std::string log_tail(InstanceId instance) const override { return host_->stats(instance).log_tail; }
  int init_pid(InstanceId instance) const override { return static_cast<int>(host_->stats(instance).init_pid); }

  bool moves_memory() const { return shims_ != nullptr; }
  ModelHost* models() { return models_.get(); }  // null: none
  // How instances share the devices by places; only of devices where somebody has a quota.
  std::vector<std::pair<GpuId, PaceSnapshot>> places() const { return pacers_.snapshot(); }
  void measure_share(FlowId flow, ShareStatus& status) const { pacers_.measure(flow, status); }
  // What the device did for an instance since the last call. One that goes on computing outside of its turns is killed, and gone() says why.
  void device_worked(InstanceId instance, Duration busy);
  GpuPacers& pacers() { return pacers_; }
  void forget(FlowId flow) { pacers_.forget(flow); }
  // As in InstanceHost.
  std::string obstacle() const { return host_->obstacle(); }
  std::uint64_t spawner_restarts() const { return host_->spawner_restarts(); }

 private:
  ProgramRunner(boost::asio::io_context& io, ProgramRunnerOptions options) : io_(io), options_(std::move(options)) {}

  void make_shims(MemoryEvents memory);
  Result<InstanceSpec> describe(const StartOrder& order) const;
  void end_unstarted(InstanceId instance, std::string reason);
  std::optional<ShimAccess> shim_access(const StartOrder& order);
  void stop_if_stranded(InstanceId instance, const SwapOutcome& outcome);
  void offer_models(const StartOrder& order, InstanceSpec& spec);

  boost::asio::io_context& io_;
  const ProgramRunnerOptions options_;
  std::function<void(InstanceId, ExitInfo)> gone_;
  GiveShare give_share_;
  // In this order: what is declared last goes first, and calls what is above.
  std::unique_ptr<Worker> staging_worker_;
  struct Stopped {
    std::string reason;
    bool is_nodes_fault = false;
  };
  std::map<InstanceId, Stopped> stopped_;            // killed for it, and not gone yet
  std::map<GpuId, std::unique_ptr<Worker>> movers_;  // of whole processes; one move at a time on each GPU
  GpuPacers pacers_;
  std::unique_ptr<ShimHost> shims_;
  std::unique_ptr<ModelHost> models_;
  std::unique_ptr<InstanceHost> host_;
  std::unique_ptr<ObjectSockets> objects_;
};

}  // namespace fairlead
