#include "decide/sharing/gpu_books.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

Duration part(Duration of, double share) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(of.count()) * share));
}

}  // namespace

void GpuBooks::opened(Instant now, InstanceId instance, FlowId flow, Duration reported) {
  const auto [entry, is_new] = accounts_.try_emplace(instance);
  if (!is_new) return;
  Account& account = entry->second;
  account.flow = flow;
  account.opened = account.settled = now;
  account.counted = reported;
}

Duration GpuBooks::delivered(Instant now, InstanceId instance, FlowId flow, Duration reported) {
  opened(now, instance, flow, reported);
  Account& account = accounts_.at(instance);
  const Duration outside = std::max(Duration(0), reported - account.counted);
  account.charged += outside;
  account.counted = account.at_delivery = std::max(reported, account.counted);
  account.delivered = now;
  account.before_delivery = now - account.settled;
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
  account.settled = now;
  if (!account.answered) account.answered = now;
  const Duration used = reported - account.at_delivery;
  // A report cannot cover more than the time in which it was made.
  account.before_it = std::clamp(used - (now - account.delivered), Duration(0), account.before_delivery);
  return used > Duration(0) ? std::optional(used) : std::nullopt;
}

GpuBooks::Debt GpuBooks::charged(InstanceId instance, Duration service) {
  const auto entry = accounts_.find(instance);
  if (entry == accounts_.end()) return {};
  Account& account = entry->second;
  const Duration before_it = std::exchange(account.before_it, Duration(0));
  account.charged += service + before_it;
  account.is_open = false;
  account.device_between = Duration(0);
  return {account.flow, before_it};
}

// An open invocation is charged the time held.
GpuBooks::Leftover GpuBooks::gone(Instant now, InstanceId instance, Duration reported) {
  const auto entry = accounts_.extract(instance);
  if (entry.empty()) return {};
  const Account& account = entry.mapped();
  const Duration charged = account.charged + (account.is_open ? now - account.delivered : Duration(0));
  const Duration said =
      account.is_open ? Duration(0) : std::max(Duration(0), std::max(reported, account.seen) - account.counted);
  const Duration not_charged = account.device - charged - said;
  Leftover left{.debt = {account.flow, said}, .finding = std::nullopt};
  if (not_charged <= margin(account)) return left;
  if (not_charged - account.device_between <= margin(account)) {
    left.debt.owed += not_charged;  // it was under way
  } else {
    left.finding = Finding{account.flow, not_charged, suspects_.insert(account.flow).second};
  }
  return left;
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
  account.seen = std::max(account.seen, reported);
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
