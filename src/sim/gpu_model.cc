#include "sim/gpu_model.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead::sim {
namespace {

// Rounded up, so that the work is done by then; 0 for what is over-done by a rounding.
Duration wall_time(Duration work, double slowdown) {
  const double wall = static_cast<double>(work.count()) * slowdown;
  const auto whole = static_cast<Duration::rep>(wall);
  return Duration(std::max<Duration::rep>(0, whole + (static_cast<double>(whole) < wall ? 1 : 0)));
}

}  // namespace

double DeviceModel::slowdown_at(std::size_t running) const {
  if (running == 0 || slowdown.empty()) return 1.0;
  if (running <= slowdown.size()) return slowdown[running - 1];
  return slowdown.back() * static_cast<double>(running) / static_cast<double>(slowdown.size());
}

void GpuModel::start(Instant now, InvocationId invocation, InstanceId instance, Duration work) {
  advance(now);
  running_.push_back({invocation, instance, std::max(work, Duration(1))});
  if (!invocation) ++starting_;
  note_slowdown();
}

void GpuModel::begin_start(Instant now, InstanceId instance, Duration work) {
  start(now, InvocationId(), instance, work);
}

bool GpuModel::stop(Instant now, InstanceId instance) {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](const Running& r) { return r.instance == instance; });
  if (found == running_.end()) return false;
  advance(now);
  const bool was_starting = !found->invocation;
  if (was_starting) --starting_;
  running_.erase(found);
  note_slowdown();
  return was_starting;
}

std::optional<Instant> GpuModel::next_end() const {
  if (running_.empty()) return std::nullopt;
  return updated_ + next().left;
}

GpuModel::Finished GpuModel::finish(Instant now) {
  FL_CHECK(!running_.empty());
  advance(now);
  const auto least = next().which;
  const Finished finished{least->invocation, least->instance};
  if (!finished.invocation) --starting_;
  running_.erase(least);
  note_slowdown();
  return finished;
}

GpuModel::Next GpuModel::next() const {
  Next least{running_.end(), Duration::max()};
  for (auto i = running_.begin(); i != running_.end(); ++i) {
    const Duration left = wall_time(i->left, slowdown_.of(*i));
    if (left < least.left) least = {i, left};
  }
  return least;
}

void GpuModel::advance(Instant now) {
  const Duration passed = now - updated_;
  updated_ = now;
  if (running_.size() > starting_) busy_ += passed;
  for (Running& running : running_) {
    const double done = static_cast<double>(passed.count()) / slowdown_.of(running);
    running.left -= Duration(static_cast<Duration::rep>(done));
  }
}

void GpuModel::note_slowdown() {
  const std::size_t all = running_.size(), runs = all - starting_;
  const double each = device_->start_slowdown - 1;
  const auto beside_a_start = static_cast<double>(all - std::min<std::size_t>(all, 1));
  slowdown_ = {.of_runs = device_->slowdown_at(runs) * (1 + each * static_cast<double>(starting_)),
               .of_starts = 1 + each * beside_a_start};
}

}  // namespace fairlead::sim
