#include "sim/gpu_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead::sim {

double DeviceModel::slowdown_at(std::size_t running) const {
  if (running == 0 || slowdown.empty()) return 1.0;
  if (running <= slowdown.size()) return slowdown[running - 1];
  return slowdown.back() * static_cast<double>(running) / static_cast<double>(slowdown.size());
}

void GpuModel::start(Instant now, InvocationId invocation, InstanceId instance, Duration work) {
  advance(now);
  running_.push_back({invocation, instance, std::max(work, Duration(1))});
}

void GpuModel::begin_start(Instant now, InstanceId instance, Duration work) {
  start(now, InvocationId(), instance, work);
  ++starting_;
}

bool GpuModel::stop(Instant now, InstanceId instance) {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](const Running& r) { return r.instance == instance; });
  if (found == running_.end()) return false;
  advance(now);
  const bool was_starting = !found->invocation;
  if (was_starting) --starting_;
  running_.erase(found);
  return was_starting;
}

std::optional<Instant> GpuModel::next_end() const {
  if (running_.empty()) return std::nullopt;
  return updated_ + wall_left(*next());
}

GpuModel::Finished GpuModel::finish(Instant now) {
  FL_CHECK(!running_.empty());
  advance(now);
  const auto least = next();
  const Finished finished{least->invocation, least->instance};
  if (!finished.invocation) --starting_;
  running_.erase(least);
  return finished;
}

std::vector<GpuModel::Running>::const_iterator GpuModel::next() const {
  return std::min_element(running_.begin(), running_.end(),
                          [this](const Running& a, const Running& b) { return wall_left(a) < wall_left(b); });
}

void GpuModel::advance(Instant now) {
  const Duration passed = now - updated_;
  updated_ = now;
  if (running_.size() > starting_) busy_ += passed;
  for (Running& running : running_) {
    const double done = static_cast<double>(passed.count()) / slowdown_of(running);
    running.left -= Duration(static_cast<Duration::rep>(done));
  }
}

double GpuModel::slowdown_of(const Running& running) const {
  const std::size_t runs = running_.size() - starting_;
  const auto beside = static_cast<double>(running.invocation ? starting_ : running_.size() - 1);
  return (running.invocation ? device_->slowdown_at(runs) : 1.0) * (1 + (device_->start_slowdown - 1) * beside);
}

Duration GpuModel::wall_left(const Running& running) const {
  const double wall = std::ceil(static_cast<double>(running.left.count()) * slowdown_of(running));
  return Duration(static_cast<Duration::rep>(std::max(0.0, wall)));
}

}  // namespace fairlead::sim
