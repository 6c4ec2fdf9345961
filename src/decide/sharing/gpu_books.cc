#include "decide/sharing/gpu_books.h"

#include <algorithm>

namespace fairlead {
namespace {

Duration part(Duration of, double share) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(of.count()) * share));
}

}  // namespace

Duration GpuBooks::delivered(Instant now, InstanceId instance, FlowId flow, Duration reported) {
  const auto [entry, is_new] = accounts_.try_emplace(instance);
  Account& account = entry->second;
  if (is_new) {
    account.flow = flow;
    account.opened = now;
    account.counted = reported;
  }
  const Duration outside = std::max(Duration(0), reported - account.counted);
  account.charged += outside;
  account.counted = account.at_delivery = std::max(reported, account.counted);
  account.delivered = now;
  account.is_open = true;
  account.answered.reset();
  account.is_quiet = false;
  return outside;
}

std::optional<Duration> GpuBooks::used(Instant now, InstanceId instance, Duration reported) {
  const auto entry = accounts_.find(instance);
  if (entry == accounts_.end()) return std::nullopt;
  Account& account = entry->second;
  account.counted = std::max(account.counted, reported);
  if (!account.answered) account.answered = now;
  const Duration used = reported - account.at_delivery;
  return used > Duration(0) ? std::optional(used) : std::nullopt;
}

void GpuBooks::charged(InstanceId instance, Duration service) {
  const auto entry = accounts_.find(instance);
  if (entry == accounts_.end()) return;
  entry->second.charged += service;
  entry->second.is_open = false;
  entry->second.device_between = Duration(0);
}

void GpuBooks::device_worked(InstanceId instance, Instant from, Instant until, Duration busy) {
  const auto entry = accounts_.find(instance);
  if (entry == accounts_.end() || from < entry->second.opened) return;
  Account& account = entry->second;
  const Duration worked = std::min(busy, until - from);
  account.device += worked;
  if (!account.is_open || from < account.delivered) account.device_between += worked;
  account.observed += until - from;
  account.works |= busy > Duration(0);
}

void GpuBooks::observed(Instant now) {
  for (auto& [instance, account] : accounts_) {
    const bool is_after_answer = account.answered && *account.answered <= last_observed_;
    account.is_quiet |= is_after_answer && !account.works;
    account.works = false;
  }
  last_observed_ = now;
}

bool GpuBooks::is_suspect(InstanceId instance) const {
  const auto entry = accounts_.find(instance);
  return entry != accounts_.end() && suspects_.contains(entry->second.flow);
}

bool GpuBooks::may_still_work(InstanceId instance) const {
  return is_suspect(instance) && !accounts_.at(instance).is_quiet;
}

Duration GpuBooks::margin(const Account& account) const {
  if (suspects_.contains(account.flow)) return kSuspectSlack;
  return kSlack + part(account.observed, kObservedMargin) + part(account.device, kDeviceMargin);
}

std::optional<GpuBooks::Finding> GpuBooks::compare(Instant now, InstanceId instance, Duration reported, bool is_busy) {
  const auto entry = accounts_.find(instance);
  if (entry == accounts_.end()) return std::nullopt;
  Account& account = entry->second;
  // To be charged yet: at most the time held; between invocations what was reported.
  const Duration coming = account.is_open ? now - account.delivered : std::max(Duration(0), reported - account.counted);
  const bool must_have_reported = suspects_.contains(account.flow) || (!account.is_open && !is_busy);
  if (must_have_reported) account.device_between = Duration(0);
  const Duration missing = account.device - account.device_between - account.charged - coming;
  if (missing <= margin(account)) return std::nullopt;
  account.charged += missing;
  return Finding{account.flow, missing, suspects_.insert(account.flow).second};
}

}  // namespace fairlead
