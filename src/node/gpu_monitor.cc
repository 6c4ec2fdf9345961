#include "node/gpu_monitor.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace fairlead {
namespace {

std::vector<GpuSample> first_samples(std::vector<Nvml::Device> devices, bool slices_only) {
  std::vector<GpuSample> samples;
  for (Nvml::Device& device : devices) {
    if (slices_only && device.uuid == device.gpu_uuid) continue;
    samples.push_back({GpuId(samples.size() + 1), std::move(device.name), std::move(device.uuid),
                       std::move(device.gpu_uuid), device.memory_total, device.memory_used,
                       device.utilisation.value_or(0), "", true});
  }
  return samples;
}

// What changed of a device; one that does not answer keeps its numbers.
void refresh(const Nvml& nvml, GpuSample& sample) {
  const auto use = nvml.use(sample.uuid);
  if (!use) {
    sample.failure = use.error().message;
    return;
  }
  sample.failure.clear();
  sample.memory_used = use->memory;
  sample.utilisation = use->utilisation.value_or(0);
}

}  // namespace

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string& library_dir, bool slices_only) {
  auto nvml = Nvml::load(library_dir);
  if (!nvml) return fail(nvml.error());
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(*std::move(nvml)));
  auto devices = monitor->nvml_->compute_devices();
  if (!devices) return fail(devices.error());
  monitor->last_.samples = first_samples(*std::move(devices), slices_only);
  if (!monitor->last_.samples.empty()) return monitor;
  if (slices_only) {
    return fail(Errc::kUnavailable,
                "{} finds no MIG slice: make some (nvidia-smi mig -cgi 1g,1g -C; softgpu mig create), or leave out "
                "--sharing mig to use whole GPUs",
                monitor->nvml_->library_path());
  }
  return fail(Errc::kUnavailable, "{} finds no GPU; `fairlead doctor` says why, `--softgpu` uses the software GPU",
              monitor->nvml_->library_path());
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

void GpuMonitor::start(boost::asio::io_context& io, std::function<void(const GpuObservation&)> observed) {
  observed_ = std::move(observed);
  thread_ = std::thread([this, &io, devices = last_.samples]() mutable { watch(io, std::move(devices)); });
}

void GpuMonitor::watch(boost::asio::io_context& io, std::vector<GpuSample> devices) {
  ProcessMeter process_meter;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return stopping_; })) {
    lock.unlock();
    GpuObservation observation;
    for (GpuSample& device : devices) {
      refresh(*nvml_, device);
      if (!device.is_slice()) {
        device.names_processes = process_meter.read(*nvml_, device.gpu, device.uuid, observation.processes);
      }
    }
    observation.samples = devices;
    observation.xids = nvml_->take_xids();
    boost::asio::post(io, [this, alive = alive_, observation = std::move(observation)]() mutable {
      if (!*alive) return;
      last_ = std::move(observation);
      observed_(last_);
    });
    lock.lock();
  }
}

}  // namespace fairlead
