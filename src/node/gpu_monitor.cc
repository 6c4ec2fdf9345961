#include "node/gpu_monitor.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"

namespace fairlead {

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string& library_dir) {
  auto nvml = Nvml::load(library_dir);
  if (!nvml) return fail(nvml.error());
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(*std::move(nvml)));
  auto first = monitor->sample();
  if (!first) return fail(first.error());
  if (first->empty()) {
    return fail(Errc::kUnavailable, "{} finds no GPU; `fairlead doctor` says why, `--softgpu` uses the software GPU",
                monitor->nvml_->library_path());
  }
  monitor->samples_ = *std::move(first);
  return monitor;
}

GpuMonitor::~GpuMonitor() {
  *alive_ = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GpuMonitor::start(boost::asio::io_context& io) {
  thread_ = std::thread([this, &io] { watch(io); });
}

void GpuMonitor::watch(boost::asio::io_context& io) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return stopping_; })) {
    lock.unlock();
    boost::asio::post(io, [this, alive = alive_, samples = sample()]() mutable {
      if (!*alive) return;
      if (samples) {
        samples_ = *std::move(samples);
      } else {
        spdlog::warn("GPU monitor: {}", samples.error().message);
      }
    });
    lock.lock();
  }
}

Result<std::vector<GpuSample>> GpuMonitor::sample() const {
  auto devices = nvml_->devices();
  if (!devices) return fail(devices.error());
  std::vector<GpuSample> samples;
  for (Nvml::Device& device : *devices) {
    samples.push_back({GpuId(samples.size() + 1), std::move(device.name), std::move(device.uuid), device.memory_total,
                       device.memory_used, device.utilisation.value_or(0)});
  }
  return samples;
}

}  // namespace fairlead
