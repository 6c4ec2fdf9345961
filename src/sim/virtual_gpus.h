// The modelled GPUs of a virtual node, and who of them all is next to end something. That changes with all that begins or
// stops there, so it is kept here and is no event.
//
// Example: on GPU 1 a run ends at 4 s; another begins beside it, now both end later: first() moves from 4 s to 4.6 s.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/gpu_model.h"
#include "sim/virtual_clock.h"

namespace fairlead::sim {

class VirtualGpus {
 public:
  explicit VirtualGpus(VirtualClock& clock) : clock_(clock) {}

  // `device` must outlive this.
  void add(GpuId gpu, const DeviceModel& device) {
    if (gpus_.size() < gpu.value()) {
      gpus_.resize(gpu.value());
      ends_.resize(gpu.value(), kNothing);
    }
    gpus_[row(gpu)].emplace(device);
  }
  bool has(GpuId gpu) const { return gpu.value() <= gpus_.size() && gpus_[row(gpu)].has_value(); }

  // REQUIRES of all that follow: has(gpu).
  void run(GpuId gpu, InvocationId invocation, InstanceId instance, Duration work) {
    gpus_[row(gpu)]->start(clock_.now(), invocation, instance, work);
    note_end(gpu);
  }
  void begin_start(GpuId gpu, InstanceId instance, Duration work) {
    gpus_[row(gpu)]->begin_start(clock_.now(), instance, work);
    note_end(gpu);
  }
  // True: it was starting.
  bool stop(GpuId gpu, InstanceId instance) {
    const bool was_starting = gpus_[row(gpu)]->stop(clock_.now(), instance);
    note_end(gpu);
    return was_starting;
  }

  Duration busy(GpuId gpu) const { return gpus_[row(gpu)]->busy(clock_.now()); }

  // When something ends, if nothing begins or stops before; kNothing: nothing runs.
  const Moment& first() const { return ends_[first_]; }
  // It has ended. REQUIRES: first() is now or before.
  GpuModel::Finished finish_first() {
    const GpuModel::Finished finished = gpus_[first_]->finish(clock_.now());
    note_end(GpuId(first_ + 1));
    return finished;
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (gpus_[i]) visit(GpuId(i + 1), gpus_[i]->device());
    }
  }
  double busy_seconds() const {
    double seconds = 0;
    for (const auto& gpu : gpus_) seconds += gpu ? gpu->busy_seconds() : 0;
    return seconds;
  }

 private:
  static std::size_t row(GpuId gpu) { return gpu.value() - 1; }
  void note_end(GpuId gpu) {
    const auto end = gpus_[row(gpu)]->next_end();
    ends_[row(gpu)] = end ? Moment{*end, clock_.take_order()} : kNothing;
    first_ = static_cast<std::size_t>(std::min_element(ends_.begin(), ends_.end()) - ends_.begin());  // GPUs are few
  }

  VirtualClock& clock_;
  std::vector<std::optional<GpuModel>> gpus_;
  std::vector<Moment> ends_{kNothing};  // of each GPU
  std::size_t first_ = 0;               // of them
};

}  // namespace fairlead::sim
