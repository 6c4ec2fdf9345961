// Carries out how kernels share the node's GPUs (src/sharing decides): one MPS control daemon per GPU, the variables and
// mounts that make an instance its client, D as the load moves it, and a GPU that fails taken out of use until it has
// recovered.
//
//   observation ──> GpuHealth ────> drain, restart the daemon, restore
//               └─> DynamicTokens > set_tokens
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

#include "core/core.h"
#include "model/function.h"
#include "node/gpu_monitor.h"
#include "node/worker.h"
#include "runtime/instance_host.h"
#include "runtime/mps_daemon.h"
#include "sharing/dynamic_tokens.h"
#include "sharing/gpu_health.h"
#include "sharing/sharing_mode.h"

namespace fairlead {

struct SharingOptions {
  SharingMode mode = SharingMode::kNone;
  std::string state_dir;           // daemons live below it
  std::string library_dir;         // of the GPU; where its own nvidia-cuda-mps-control may be
  bool dynamic_tokens = false;     // then tokens_per_gpu is the most that D may become
  std::size_t tokens_per_gpu = 2;  // D
  std::size_t tokens_per_slice = 1;
};

class GpuSharing {
 public:
  // What it asks of the core.
  struct Control {
    std::function<void(GpuId)> drain;
    std::function<void(GpuId)> restore;
    std::function<void(GpuId, std::size_t tokens)> set_tokens;
  };
  // What people see.
  struct View {
    GpuState state = GpuState::kServing;
    std::string reason;  // why it does not serve
    unsigned daemon_restarts = 0;
  };

  // Ends daemons that a crashed node left behind and, under MPS, starts one for each device: blocks for that long.
  // kUnavailable says which device's daemon did not start, and why.
  static Result<std::unique_ptr<GpuSharing>> create(boost::asio::io_context& io, SharingOptions options,
                                                    const std::vector<GpuSample>& devices);
  ~GpuSharing();  // ends the daemons

  void connect(Control control) { control_ = std::move(control); }

  SharingMode mode() const { return options_.mode; }
  std::size_t tokens(GpuId gpu) const;  // at the start
  View view(GpuId gpu) const;

  // Makes an instance part of the GPU's sharing.
  void give_share(InstanceSpec& spec, GpuId gpu, const GpuSettings& settings) const;
  void instance_started(InstanceId instance, GpuId gpu);
  void instance_gone(InstanceId instance);  // its process has ended

  // Once each monitor period. `gpus`: the core's view of them.
  void observe(Instant now, const GpuObservation& observation, const std::vector<GpuView>& gpus, bool waiting);

 private:
  struct Device {
    std::string uuid;
    std::string gpu_uuid;
    std::unique_ptr<MpsDaemon> daemon;  // null without MPS. Used on the worker only, once the node serves
    std::string pipe_directory;
    GpuHealth health;
    std::optional<DynamicTokens> tokens;
    std::size_t instances = 0;  // processes
  };

  GpuSharing(boost::asio::io_context& io, SharingOptions options) : options_(std::move(options)), worker_(io) {}

  Status add(const GpuSample& sample, const std::string& mps_control);
  std::size_t first_tokens(const GpuSample& sample) const;
  void apply(GpuId gpu, std::optional<GpuRemedy> remedy);
  void adjust_tokens(Instant now, const GpuSample& sample, const GpuView& view, bool waiting);
  void ask_daemons(Instant now);
  void restart_daemon(GpuId gpu);

  const SharingOptions options_;
  Control control_;
  std::map<GpuId, Device> devices_;
  std::map<GpuId, std::size_t> first_tokens_;
  std::unordered_map<InstanceId, GpuId> gpu_of_;
  Instant asked_;  // the daemons
  bool asking_ = false;
  Worker worker_;  // last: its jobs use the devices
};

}  // namespace fairlead
