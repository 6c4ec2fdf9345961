// Watches the GPUs through NVML at the monitor period (spec/1: 200 ms) on a thread of its own: an NVML call may block for
// milliseconds.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "cuda/nvml.h"

namespace fairlead {

struct GpuSample {
  GpuId gpu;
  std::string name;
  std::string uuid;
  Bytes memory_total{0};
  Bytes memory_used{0};
  double utilisation = 0;  // 0-1
};

class GpuMonitor {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);

  // library_dir: where libnvidia-ml.so.1 is; empty: the system's. kUnavailable when there is no library or no GPU, with
  // what to do. Starts no thread yet.
  static Result<std::unique_ptr<GpuMonitor>> open(const std::string& library_dir);
  ~GpuMonitor();

  void start(boost::asio::io_context& io);

  // The last sample of every device, in device order. On the io_context's thread.
  const std::vector<GpuSample>& samples() const { return samples_; }

 private:
  explicit GpuMonitor(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}
  Result<std::vector<GpuSample>> sample() const;
  void watch(boost::asio::io_context& io);

  std::unique_ptr<Nvml> nvml_;
  std::vector<GpuSample> samples_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with messages that may arrive after our end
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace fairlead
