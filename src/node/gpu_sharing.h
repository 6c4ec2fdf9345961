// How kernels share the node's GPUs, carried out: one MPS control daemon per GPU, and the variables and mounts that make an instance
// its client. What follows from a fault, and how many slots a GPU has, the core decides (Core::device).
//
//   MPS daemon ──seen──> core ──kRestartDaemon──> restart_daemon ──started──> core
//
// Threads: everything on the io_context's thread; what blocks (daemons) on a worker of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "decide/core/core.h"
#include "decide/sharing/sharing_mode.h"
#include "model/function.h"
#include "node/gpu_monitor.h"
#include "node/worker.h"
#include "runtime/instance_host.h"
#include "runtime/mps_daemon.h"

namespace fairlead {

struct SharingOptions {
  SharingMode mode = SharingMode::kNone;
  std::string state_dir;          // daemons live below it
  std::string library_dir;        // of the GPU; where its own nvidia-cuda-mps-control may be
  bool dynamic_slots = false;     // then slots_per_gpu is the most that D may become
  std::size_t slots_per_gpu = 1;  // D
  std::size_t slots_per_slice = 1;
};

class GpuSharing {
 public:
  struct Events {
    std::function<void(GpuId, MpsDaemonState)> seen;
    std::function<void(GpuId, bool ok)> started;
  };

  // Ends daemons that a crashed node left behind and, under MPS, starts one for each device: blocks for that long.
  // kUnavailable says which device's daemon did not start, and why.
  static Result<std::unique_ptr<GpuSharing>> create(boost::asio::io_context& io, SharingOptions options,
                                                    const std::vector<GpuSample>& devices);
  ~GpuSharing();  // ends the daemons

  void connect(Events events) { events_ = std::move(events); }

  SharingMode mode() const { return options_.mode; }
  GpuSpec spec_of(const Device& device) const;  // for the core

  // A device that appeared while the node runs. done(): work may be put on it, or why not; at once where it needs no daemon.
  // REQUIRES: !knows() it.
  void take_in(const Device& device, std::function<void(Status)> done);
  // It is no longer there. REQUIRES: no instance of it is alive for the core.
  void give_up(GpuId gpu);
  bool knows(GpuId gpu) const { return devices_.contains(gpu); }
  void set_slots(std::size_t per_gpu, std::size_t per_slice);  // of specs from now on

  // Makes an instance part of the GPU's sharing.
  void give_share(InstanceSpec& spec, GpuId gpu, const Share& share) const;
  // An instance's process may exist from the first to the second. gone(): of the GPU whose last one it was.
  void instance_started(InstanceId instance, GpuId gpu);
  std::optional<GpuId> instance_gone(InstanceId instance);
  std::size_t instances(GpuId gpu) const { return devices_.at(gpu).instances; }

  // Asks the daemons of these how they are, every kDaemonPeriod at most.
  void ask_daemons(Instant now, const std::vector<GpuId>& gpus);
  void restart_daemon(GpuId gpu);

 private:
  struct Shared {
    std::string uuid;
    std::shared_ptr<MpsDaemon> daemon;  // null without MPS. Used on the worker only, once the node serves
    std::string pipe_directory;
    std::size_t instances = 0;  // processes
  };

  GpuSharing(boost::asio::io_context& io, SharingOptions options) : options_(std::move(options)), worker_(io) {}

  Shared share_of(const Device& device) const;

  SharingOptions options_;
  std::string mps_control_;  // the daemon's program; "" without MPS
  Events events_;
  std::map<GpuId, Shared> devices_;
  std::unordered_map<InstanceId, GpuId> gpu_of_;
  Instant asked_;  // the daemons
  bool asking_ = false;
  Worker worker_;  // last: its jobs use the devices
};

}  // namespace fairlead
