// Watches the GPUs through NVML at the monitor period (200 ms) on a thread of its own: an NVML call may block for milliseconds. Every
// few seconds it asks which devices there are: a slice that is made while the node runs is used, one that is taken away is missed.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/lifetime.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu/nvml.h"
#include "model/device.h"
#include "node/device_list.h"
#include "node/process_meter.h"

namespace fairlead {

struct GpuSample {
  Device device;
  Bytes memory_used{0};
  double utilisation = 0;       // 0-1; 0 of slices, whose use NVML does not know
  std::string failure;          // why it does not answer; "": it does
  bool names_processes = true;  // NVML says which process computes
};

struct GpuObservation {
  std::vector<GpuSample> samples;        // of every device that is there, by id
  std::vector<Nvml::Xid> xids;           // since the one before
  std::vector<ProcessSample> processes;  // likewise
};

class GpuMonitor {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);

  // library_dir: where libnvidia-ml.so.1 is; empty: the system's. slices_only: leaves out GPUs that are not cut into MIG
  // slices. kUnavailable when there is no library or no device, with what to do. Starts no thread yet.
  static Result<std::unique_ptr<GpuMonitor>> open(const std::string& library_dir, bool slices_only);
  // Of a node that uses no GPUs, whatever the machine has.
  static std::unique_ptr<GpuMonitor> none();
  ~GpuMonitor();

  // `observed` is called on the io_context's thread, once each period.
  void start(boost::asio::io_context& io, std::function<void(const GpuObservation&)> observed);

  // The last sample of every device, by id; also of those that are no longer there, until forget(). On the io_context's thread.
  const std::vector<GpuSample>& samples() const { return samples_; }
  const GpuSample* find(GpuId gpu) const;  // null: there is none
  void forget(GpuId gpu);
  // Which devices there are is asked at the next period. Any thread.
  void look_soon() { looks_soon_ = true; }

 private:
  GpuMonitor(std::unique_ptr<Nvml> nvml, bool slices_only) : nvml_(std::move(nvml)), slices_only_(slices_only) {}
  Status look_for_devices(std::vector<GpuSample>& samples);
  bool next_period();
  void watch(boost::asio::io_context& io, const Lifetime::Watch& life, std::vector<GpuSample> samples);
  void keep(const GpuObservation& observation);

  std::unique_ptr<Nvml> nvml_;  // null: nothing is watched
  const bool slices_only_;
  DeviceList devices_;  // of the thread, once it runs
  std::vector<GpuSample> samples_;
  std::function<void(const GpuObservation&)> observed_;
  std::atomic<bool> looks_soon_ = false;
  Lifetime life_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ FL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fairlead
