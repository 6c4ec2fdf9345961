#include "node/gpu_monitor.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace fairlead {
namespace {

constexpr int kPeriodsPerLook = 10;  // between two questions which devices there are

// What changed of a device; one that does not answer keeps its numbers.
void refresh(const Nvml& nvml, GpuSample& sample) {
  const auto use = nvml.use(sample.device.uuid);
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
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(*std::move(nvml), slices_only));
  if (Status listed = monitor->look_for_devices(monitor->samples_); !listed) return fail(listed.error());
  if (!monitor->samples_.empty()) return monitor;
  if (slices_only) {
    return fail(Errc::kUnavailable,
                "{} finds no MIG slice: make some (nvidia-smi mig -cgi 1g,1g -C; softgpu mig create), or leave out "
                "--sharing mig to use whole GPUs",
                monitor->nvml_->library_path());
  }
  return fail(Errc::kUnavailable, "{} finds no GPU; `fairlead doctor` says why, `--softgpu` uses the software GPU",
              monitor->nvml_->library_path());
}

std::unique_ptr<GpuMonitor> GpuMonitor::none() {
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(nullptr, false));
}

GpuMonitor::~GpuMonitor() {
  life_.end();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Which devices there are now. Nothing changes where the driver does not say.
Status GpuMonitor::look_for_devices(std::vector<GpuSample>& samples) {
  auto found = nvml_->compute_devices();
  if (!found) return fail(found.error());
  std::vector<Device> listed;
  for (Nvml::Device& device : *found) {
    if (slices_only_ && device.uuid == device.gpu_uuid) continue;
    listed.push_back({.id = {},
                      .name = std::move(device.name),
                      .uuid = std::move(device.uuid),
                      .gpu_uuid = std::move(device.gpu_uuid),
                      .slice = std::move(device.slice),
                      .memory = device.memory_total});
  }
  const DeviceList::Change change = devices_.look(std::move(listed));
  for (const GpuId gone : change.went) {
    std::erase_if(samples, [&](const GpuSample& sample) { return sample.device.id == gone; });
  }
  for (const Device& device : change.appeared) {
    samples.push_back({.device = device});
    refresh(*nvml_, samples.back());
  }
  return {};
}

const GpuSample* GpuMonitor::find(GpuId gpu) const {
  const auto is_it = [&](const GpuSample& sample) { return sample.device.id == gpu; };
  const auto found = std::find_if(samples_.begin(), samples_.end(), is_it);
  return found == samples_.end() ? nullptr : &*found;
}

void GpuMonitor::forget(GpuId gpu) {
  std::erase_if(samples_, [&](const GpuSample& sample) { return sample.device.id == gpu; });
}

void GpuMonitor::keep(const GpuObservation& observation) {
  for (const GpuSample& seen : observation.samples) {
    const auto is_it = [&](const GpuSample& sample) { return sample.device.id == seen.device.id; };
    const auto known = std::find_if(samples_.begin(), samples_.end(), is_it);
    if (known == samples_.end()) {
      samples_.push_back(seen);  // ids count up, so the order holds
    } else {
      *known = seen;
    }
  }
}

void GpuMonitor::start(boost::asio::io_context& io, std::function<void(const GpuObservation&)> observed) {
  observed_ = std::move(observed);
  if (!nvml_) return;
  thread_ = std::thread(
      [this, &io, life = life_.watch(), samples = samples_]() mutable { watch(io, life, std::move(samples)); });
}

// Blocks until it begins; false: it shall not, the monitor ends.
bool GpuMonitor::next_period() {
  const auto begin = std::chrono::steady_clock::now() + kPeriod;
  const MutexLock lock(mutex_);
  while (!stopping_ && wake_.wait_until(mutex_, begin)) {
  }
  return !stopping_;
}

void GpuMonitor::watch(boost::asio::io_context& io, const Lifetime::Watch& life, std::vector<GpuSample> samples) {
  ProcessMeter process_meter;
  int periods = 0;
  while (next_period()) {
    if (looks_soon_.exchange(false) || ++periods % kPeriodsPerLook == 0) (void)look_for_devices(samples).has_value();
    GpuObservation observation;
    for (GpuSample& sample : samples) {
      refresh(*nvml_, sample);
      const Device& device = sample.device;
      if (!device.is_slice()) {
        sample.names_processes = process_meter.read(*nvml_, device.id, device.uuid, observation.processes);
      }
    }
    observation.samples = samples;
    observation.xids = nvml_->take_xids();
    boost::asio::post(io, [this, life, observation = std::move(observation)] {
      if (life.ended()) return;
      keep(observation);
      observed_(observation);
    });
  }
}

}  // namespace fairlead
