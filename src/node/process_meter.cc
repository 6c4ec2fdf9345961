#include "node/process_meter.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace fairlead {
namespace {

// NVML's clock: microseconds since 1970.
std::uint64_t device_now_us() {
  return static_cast<std::uint64_t>(wall_clock_ms()) * 1000;
}

}  // namespace

bool ProcessMeter::read(const Nvml& nvml, GpuId gpu, const std::string& uuid, std::vector<ProcessSample>& out) {
  Asked& asked = asked_[uuid];
  const Instant now = monotonic_now();
  const std::uint64_t asked_at_us = device_now_us();
  const auto use = nvml.process_use(uuid, asked.until_us);
  if (!use) return true;  // a device that does not answer is another's concern (GpuHealth)
  if (!*use) return false;
  const Asked before = std::exchange(asked, {asked_at_us, now});
  for (const Nvml::ProcessUse& process : **use) asked.until_us = std::max(asked.until_us, process.until_us);
  if (before.until_us == 0) return true;  // what came before the first question is of unknown length
  for (const Nvml::ProcessUse& process : **use) {
    const auto length = std::chrono::microseconds(process.until_us - std::min(process.until_us, before.until_us));
    const Duration time = std::min<Duration>(length, now - before.at);
    const auto busy = Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * process.share));
    out.push_back({gpu, process.pid, now - time, now, busy});
  }
  return true;
}

}  // namespace fairlead
