#include "softgpu/device/time/execution.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "softgpu/device/time/trace.h"

namespace softgpu {
namespace {

// How long the speed of a kernel or copy is taken as constant.
constexpr std::uint64_t kStepNs = 1'000'000;
constexpr int kHangPatienceMs = 20;

// Sleeps until as much of a duration is over as `done` says is missing, in steps; `duration_ns` is asked for each step
// anew and may change. `between` runs after each step, and its time does not count.
template <typename Duration, typename Between>
void progress(std::uint64_t spent_ns, const StopCheck& stop, Duration duration_ns, Between between) {
  double done = 0;
  std::uint64_t passed = spent_ns;
  while (true) {
    const double whole = duration_ns();
    done += static_cast<double>(passed) / std::max(whole, 1.0);
    if (done >= 1 || stop()) return;
    const double missing = (1 - done) * whole;
    const std::uint64_t begin = monotonic_ns();
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(static_cast<std::uint64_t>(std::min<double>(missing, kStepNs))));
    passed = monotonic_ns() - begin;
    between();
  }
}

}  // namespace

Execution::Execution(Device& device, Kernel kernel, const StopCheck& stop)
    : device_(device),
      kernel_(std::move(kernel)),
      stop_(stop),
      sms_(std::clamp<std::uint64_t>(std::min(kernel_.blocks, kernel_.most_sms), 1, device.sms())) {}

bool Execution::begin() {
  asked_ns_ = monotonic_ns();
  if (device_.share().mps) {
    device_.activity().begin_kernel(sms_);
    if (tracing()) trace_sms(device_.index(), grant().milli_sms, monotonic_ns());
  } else if (!device_.turn().enter(stop_)) {
    return false;
  }
  begin_ns_ = monotonic_ns();
  away_at_begin_ns_ = device_.turn().away_ns();
  return true;
}

const std::atomic<std::uint64_t>& Execution::set_timeout(std::uint64_t timeout_ns) {
  timeout_ns_ = timeout_ns;
  move_deadline();
  return deadline_ns_;
}

// Never backwards, whichever thread is last.
void Execution::move_deadline() {
  const std::uint64_t deadline = begin_ns_ + timeout_ns_ + away_ns();
  std::uint64_t known = deadline_ns_.load();
  while (known < deadline && !deadline_ns_.compare_exchange_weak(known, deadline)) {
  }
}

void Execution::pause() {
  if (stop_()) return;  // asking is also how a running kernel's context learns of a fault of the device
  if (device_.faults().hung()) wait_while_hung();
  if (device_.share().mps) return;
  device_.turn().pause(stop_);
  if (timeout_ns_ != 0) move_deadline();
}

void Execution::wait_while_hung() {
  while (device_.faults().hung() && !stop_()) {
    if (timeout_ns_ != 0 && monotonic_ns() >= deadline_ns_.load()) return;
    device_.faults().wait_while_hung(kHangPatienceMs);
  }
}

void Execution::end(KernelWork work) {
  executed_ns_ = monotonic_ns();
  work.blocks = kernel_.blocks;
  const std::uint64_t modelled = kernel_ns(device_.profile(), work, {share_milli_sms()});
  device_.activity().charge_kernel(modelled);
  if (device_.machine().paced()) hold(work);
  device_.meter().moved(work.global_bytes, monotonic_ns());
  if (device_.share().mps) {
    device_.activity().end_kernel(sms_);
    if (tracing()) trace_sms(device_.index(), 0, monotonic_ns());
  } else {
    device_.turn().leave();
  }
  if (tracing()) trace(work, modelled);
}

KernelGrant Execution::grant() const {
  if (!device_.share().mps) return {share_milli_sms()};
  return device_.activity().grant(device_.profile().sm_count, sms_);
}

void Execution::hold(const KernelWork& work) {
  const std::uint64_t away = away_ns();
  const std::uint64_t spent = executed_ns_ - begin_ns_;
  const auto duration = [&] {
    return static_cast<double>(kernel_ns(device_.profile(), work, grant())) * device_.machine().time_scale;
  };
  progress(spent - std::min(spent, away), stop_, duration, [this] { pause(); });
}

void Execution::trace(const KernelWork& work, std::uint64_t modelled_ns) const {
  const std::uint64_t now = monotonic_ns();
  trace_span("wait", "wait for the device", asked_ns_, begin_ns_);
  trace_span("execute", "execute", begin_ns_, executed_ns_);
  if (device_.machine().paced()) trace_span("hold", "modelled time", executed_ns_, now);
  trace_span("kernel", kernel_.name, asked_ns_, now,
             TraceArguments()
                 .add("gpu", device_.index())
                 .add("modelled_ns", modelled_ns)
                 .add("lane_instructions", work.lane_instructions)
                 .add("global_bytes", work.global_bytes)
                 .add("blocks", work.blocks)
                 .add("away_ns", away_ns()));
}

Transfer::Transfer(Device& device, Direction direction)
    : device_(device), direction_(direction), begin_ns_(monotonic_ns()) {
  device_.activity().begin_copy(direction_);
}

void Transfer::finish(std::uint64_t bytes, const StopCheck& stop) {
  const auto duration_of = [&](std::uint64_t users) {
    return static_cast<double>(link_copy_ns(device_.profile(), bytes, users)) * device_.faults().link_factor();
  };
  const auto modelled = static_cast<std::uint64_t>(duration_of(1));
  device_.activity().charge_copy(modelled);
  if (device_.machine().paced()) {
    const auto shared = [&] {
      return duration_of(device_.activity().copies(direction_)) * device_.machine().time_scale;
    };
    progress(monotonic_ns() - begin_ns_, stop, shared, [] {});
  }
  const std::uint64_t now = monotonic_ns();
  device_.meter().moved(bytes, now);
  if (!tracing()) return;
  trace_span("copy", direction_ == Direction::kToDevice ? "copy to device" : "copy from device", begin_ns_, now,
             TraceArguments().add("gpu", device_.index()).add("bytes", bytes).add("modelled_ns", modelled));
}

}  // namespace softgpu
