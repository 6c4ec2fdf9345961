#include "node/gpu_sharing.h"

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "model/mig_tag.h"

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

Status start_daemon(MpsDaemon& daemon, const Device& device) {
  if (Status started = daemon.start(); !started) {
    return fail(started.error().code, "MPS on GPU {} ({}): {}", device.id.value(), device.name,
                started.error().message);
  }
  spdlog::info("MPS on GPU {}: {} serves {}", device.id.value(), device.uuid, daemon.pipe_directory());
  return {};
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
  sharing->mps_control_ = std::move(mps_control);
  for (const GpuSample& sample : devices) {
    Shared shared = sharing->share_of(sample.device);
    if (shared.daemon) {
      if (Status started = start_daemon(*shared.daemon, sample.device); !started) return fail(started.error());
    }
    sharing->devices_.emplace(sample.device.id, std::move(shared));
  }
  return sharing;
}

GpuSharing::Shared GpuSharing::share_of(const Device& device) const {
  Shared shared{.uuid = device.uuid, .daemon = nullptr, .pipe_directory = ""};
  if (!mps_control_.empty()) {
    const std::string dir = fmt::format("{}/{}", daemons_dir(options_), device.id.value());
    shared.daemon = std::make_shared<MpsDaemon>(mps_control_, dir, device.uuid);
    shared.pipe_directory = shared.daemon->pipe_directory();
  }
  return shared;
}

void GpuSharing::take_in(const Device& device, std::function<void(Status)> done) {
  const auto [shared, is_new] = devices_.emplace(device.id, share_of(device));
  FL_CHECK(is_new, "GPU {} is there already", device.id.value());
  if (!shared->second.daemon) return done({});
  worker_.run([daemon = shared->second.daemon, device] { return start_daemon(*daemon, device); }, std::move(done));
}

void GpuSharing::give_up(GpuId gpu) {
  const auto device = devices_.find(gpu);
  if (device == devices_.end()) return;
  if (device->second.daemon) {
    worker_.run(
        [daemon = device->second.daemon] {
          daemon->stop();
          return true;
        },
        [](bool) {});
  }
  devices_.erase(device);
}

GpuSharing::~GpuSharing() {
  worker_.finish();
  for (auto& [gpu, device] : devices_) {
    if (device.daemon) device.daemon->stop();
  }
}

GpuSpec GpuSharing::spec_of(const Device& device) const {
  return {.gpu = device.id,
          .memory = device.memory,
          .slots = device.is_slice() ? options_.slots_per_slice : options_.slots_per_gpu,
          .is_dynamic = options_.dynamic_slots && !device.is_slice(),
          .has_daemon = devices_.at(device.id).daemon != nullptr,
          .has_task_lanes = !device.is_slice(),
          .mig_profile = profile_of(device)};
}

void GpuSharing::set_slots(std::size_t per_gpu, std::size_t per_slice) {
  options_.slots_per_gpu = per_gpu;
  options_.slots_per_slice = per_slice;
}

void GpuSharing::give_share(InstanceSpec& spec, GpuId gpu, const Share& share) const {
  const Shared& device = devices_.at(gpu);
  const InstanceShare part{.device_uuid = device.uuid, .mps_pipe_directory = device.pipe_directory, .share = share};
  for (auto& [name, value] : share_environment(part)) spec.environment[name] = value;
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
  const auto device = devices_.find(gpu);
  if (device == devices_.end()) return std::nullopt;  // it went before its last process did
  return --device->second.instances == 0 ? std::optional(gpu) : std::nullopt;
}

void GpuSharing::restart_daemon(GpuId gpu) {
  worker_.run([daemon = devices_.at(gpu).daemon] { return daemon->start(); },
              [this, gpu](const Status& started) {
                if (!started) spdlog::error("MPS on GPU {}: {}", gpu.value(), started.error().message);
                events_.started(gpu, started.has_value());
              });
}

void GpuSharing::ask_daemons(Instant now, const std::vector<GpuId>& gpus) {
  if (options_.mode != SharingMode::kMps || asking_ || now - asked_ < kDaemonPeriod) return;
  std::vector<std::pair<GpuId, std::shared_ptr<MpsDaemon>>> daemons;
  for (const GpuId gpu : gpus) daemons.emplace_back(gpu, devices_.at(gpu).daemon);
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
