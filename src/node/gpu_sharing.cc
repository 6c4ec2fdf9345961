#include "node/gpu_sharing.h"

#include <filesystem>
#include <utility>

#include "base/log.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr Duration kDaemonPeriod = std::chrono::milliseconds(400);  // between two questions to the MPS daemons

std::string daemons_dir(const SharingOptions& options) {
  return options.state_dir + "/mps";
}

// In every mode: the node before this one may have shared its GPUs through MPS, and crashed.
void end_old_daemons(const SharingOptions& options) {
  const std::string program = find_mps_control(options.library_dir).value_or("");
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(daemons_dir(options), ignored)) {
    MpsDaemon(program, entry.path(), "").stop();
  }
}

MpsDaemonState observed(MpsDaemon::State state) {
  switch (state) {
    case MpsDaemon::State::kActive: return MpsDaemonState::kActive;
    case MpsDaemon::State::kFault: return MpsDaemonState::kFault;
    case MpsDaemon::State::kGone: return MpsDaemonState::kGone;
  }
  return MpsDaemonState::kGone;
}

}  // namespace

Result<std::unique_ptr<GpuSharing>> GpuSharing::create(boost::asio::io_context& io, SharingOptions options,
                                                       const std::vector<GpuSample>& devices) {
  end_old_daemons(options);
  std::string mps_control;
  if (options.mode == SharingMode::kMps) {
    auto found = find_mps_control(options.library_dir);
    if (!found) return fail(found.error());
    mps_control = *std::move(found);
  }
  std::unique_ptr<GpuSharing> sharing(new GpuSharing(io, std::move(options)));
  for (const GpuSample& sample : devices) {
    if (Status added = sharing->add(sample, mps_control); !added) return fail(added.error());
  }
  return sharing;
}

Status GpuSharing::add(const GpuSample& sample, const std::string& mps_control) {
  Device device{.uuid = sample.uuid, .daemon = nullptr, .pipe_directory = ""};
  if (!mps_control.empty()) {
    const std::string dir = fmt::format("{}/{}", daemons_dir(options_), sample.gpu.value());
    device.daemon = std::make_unique<MpsDaemon>(mps_control, dir, sample.uuid);
    device.pipe_directory = device.daemon->pipe_directory();
    if (Status started = device.daemon->start(); !started) {
      return fail(started.error().code, "MPS on GPU {} ({}): {}", sample.gpu.value(), sample.name,
                  started.error().message);
    }
    spdlog::info("MPS on GPU {}: {} serves {}", sample.gpu.value(), mps_control, device.pipe_directory);
  }
  devices_.emplace(sample.gpu, std::move(device));
  return {};
}

GpuSharing::~GpuSharing() {
  worker_.finish();
  for (auto& [gpu, device] : devices_) {
    if (device.daemon) device.daemon->stop();
  }
}

GpuSpec GpuSharing::spec_of(const GpuSample& sample) const {
  return {.gpu = sample.gpu,
          .memory = sample.memory_total,
          .slots = sample.is_slice() ? options_.slots_per_slice : options_.slots_per_gpu,
          .is_dynamic = options_.dynamic_slots && !sample.is_slice(),
          .has_daemon = devices_.at(sample.gpu).daemon != nullptr,
          .has_task_lanes = !sample.is_slice()};
}

void GpuSharing::set_slots(std::size_t per_gpu, std::size_t per_slice) {
  options_.slots_per_gpu = per_gpu;
  options_.slots_per_slice = per_slice;
}

void GpuSharing::give_share(InstanceSpec& spec, GpuId gpu, const GpuSettings& settings) const {
  const Device& device = devices_.at(gpu);
  InstanceShare share{.device_uuid = device.uuid,
                      .mps_pipe_directory = device.pipe_directory,
                      .compute_percent = settings.compute_percent};
  if (settings.memory_mib) share.memory_limit = mib(*settings.memory_mib);
  for (auto& [name, value] : share_environment(share)) spec.environment[name] = value;
  // Read-only: clients connect to the sockets in it, and nothing of it becomes theirs.
  if (device.daemon) spec.binds.push_back({device.pipe_directory, device.pipe_directory, false});
}

void GpuSharing::instance_started(InstanceId instance, GpuId gpu) {
  gpu_of_[instance] = gpu;
  ++devices_.at(gpu).instances;
}

std::optional<GpuId> GpuSharing::instance_gone(InstanceId instance) {
  const auto found = gpu_of_.extract(instance);
  if (found.empty()) return std::nullopt;
  const GpuId gpu = found.mapped();
  return --devices_.at(gpu).instances == 0 ? std::optional(gpu) : std::nullopt;
}

void GpuSharing::restart_daemon(GpuId gpu) {
  worker_.run([daemon = devices_.at(gpu).daemon.get()] { return daemon->start(); },
              [this, gpu](const Status& started) {
                if (!started) spdlog::error("MPS on GPU {}: {}", gpu.value(), started.error().message);
                events_.started(gpu, started.has_value());
              });
}

void GpuSharing::ask_daemons(Instant now, const std::vector<GpuId>& gpus) {
  if (options_.mode != SharingMode::kMps || asking_ || now - asked_ < kDaemonPeriod) return;
  std::vector<std::pair<GpuId, MpsDaemon*>> daemons;
  for (const GpuId gpu : gpus) daemons.emplace_back(gpu, devices_.at(gpu).daemon.get());
  asking_ = true;
  asked_ = now;
  worker_.run(
      [daemons] {
        std::vector<std::pair<GpuId, MpsDaemonState>> states;
        for (const auto& [gpu, daemon] : daemons) states.emplace_back(gpu, observed(daemon->state()));
        return states;
      },
      [this](const std::vector<std::pair<GpuId, MpsDaemonState>>& states) {
        asking_ = false;
        for (const auto& [gpu, state] : states) events_.seen(gpu, state);
      });
}

}  // namespace fairlead
