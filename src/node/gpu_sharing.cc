#include "node/gpu_sharing.h"

#include <filesystem>
#include <utility>

#include "base/clock.h"
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
  Device device{.uuid = sample.uuid,
                .gpu_uuid = sample.gpu_uuid,
                .daemon = nullptr,
                .pipe_directory = "",
                .health = GpuHealth(!mps_control.empty()),
                .tokens = std::nullopt};
  if (options_.dynamic_tokens && !sample.is_slice()) device.tokens.emplace(options_.tokens_per_gpu);
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
  first_tokens_[sample.gpu] = first_tokens(sample);
  devices_.emplace(sample.gpu, std::move(device));
  return {};
}

GpuSharing::~GpuSharing() {
  worker_.finish();
  for (auto& [gpu, device] : devices_) {
    if (device.daemon) device.daemon->stop();
  }
}

std::size_t GpuSharing::first_tokens(const GpuSample& sample) const {
  if (sample.is_slice()) return options_.tokens_per_slice;
  return options_.dynamic_tokens ? 1 : options_.tokens_per_gpu;
}

std::size_t GpuSharing::tokens(GpuId gpu) const {
  return first_tokens_.at(gpu);
}

GpuSharing::View GpuSharing::view(GpuId gpu) const {
  const GpuHealth& health = devices_.at(gpu).health;
  return {health.state(), health.reason(), health.daemon_restarts()};
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

void GpuSharing::instance_gone(InstanceId instance) {
  const auto found = gpu_of_.find(instance);
  if (found == gpu_of_.end()) return;
  const GpuId gpu = found->second;
  gpu_of_.erase(found);
  Device& device = devices_.at(gpu);
  if (--device.instances == 0) apply(gpu, device.health.emptied(monotonic_now()));
}

void GpuSharing::observe(Instant now, const GpuObservation& observation, const std::vector<GpuView>& gpus,
                         bool waiting) {
  for (const Nvml::Xid& xid : observation.xids) {
    spdlog::warn("Xid {} of {}", xid.number, xid.gpu_uuid);
    for (auto& [gpu, device] : devices_) {
      if (device.gpu_uuid == xid.gpu_uuid) apply(gpu, device.health.xid(xid.number));
    }
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const GpuSample& sample = observation.samples.at(i);
    GpuHealth& health = devices_.at(sample.gpu).health;
    apply(sample.gpu, sample.failure.empty() ? health.device_answers(now) : health.device_fails(now, sample.failure));
    adjust_tokens(now, sample, gpus[i], waiting);
  }
  ask_daemons(now);
}

void GpuSharing::adjust_tokens(Instant now, const GpuSample& sample, const GpuView& view, bool waiting) {
  std::optional<DynamicTokens>& tokens = devices_.at(sample.gpu).tokens;
  if (!tokens || !view.serves) return;
  const std::size_t before = tokens->tokens();
  const std::size_t after = tokens->update(now, {.utilisation = sample.utilisation,
                                                 .tokens_in_use = view.tokens_in_use,
                                                 .waiting = waiting,
                                                 .memory_running = view.memory_admitted,
                                                 .memory_total = sample.memory_total});
  if (after == before) return;
  spdlog::info("GPU {}: D is {} now, it was {} (utilisation {:.0f} %)", sample.gpu.value(), after, before,
               100 * tokens->average_utilisation());
  control_.set_tokens(sample.gpu, after);
}

void GpuSharing::apply(GpuId gpu, std::optional<GpuRemedy> remedy) {
  if (!remedy) return;
  Device& device = devices_.at(gpu);
  switch (*remedy) {
    case GpuRemedy::kDrain:
      spdlog::warn("GPU {} gets no more work: {}; {} instances to go", gpu.value(), device.health.reason(),
                   device.instances);
      control_.drain(gpu);
      if (device.instances == 0) apply(gpu, device.health.emptied(monotonic_now()));
      break;
    case GpuRemedy::kRestartDaemon: restart_daemon(gpu); break;
    case GpuRemedy::kServe:
      spdlog::info("GPU {} serves again", gpu.value());
      control_.restore(gpu);
      break;
  }
}

void GpuSharing::restart_daemon(GpuId gpu) {
  worker_.run([daemon = devices_.at(gpu).daemon.get()] { return daemon->start(); },
              [this, gpu](const Status& started) {
                if (!started) spdlog::error("MPS on GPU {}: {}", gpu.value(), started.error().message);
                apply(gpu, devices_.at(gpu).health.daemon_started(monotonic_now(), started.has_value()));
              });
}

void GpuSharing::ask_daemons(Instant now) {
  if (options_.mode != SharingMode::kMps || asking_ || now - asked_ < kDaemonPeriod) return;
  std::vector<std::pair<GpuId, MpsDaemon*>> daemons;
  for (auto& [gpu, device] : devices_) {
    if (device.health.state() == GpuState::kServing) daemons.emplace_back(gpu, device.daemon.get());
  }
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
        for (const auto& [gpu, state] : states) apply(gpu, devices_.at(gpu).health.daemon(state));
      });
}

}  // namespace fairlead
