#include "softgpu/device/time/activity.h"

#include <algorithm>

#include "softgpu/device/time/fair_share.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

enum MpsWord : std::uint32_t { kTakesTurns, kMpsClient, kMpsBelowNormal };

bool lives(const ClientActivity& client, const Clients& clients) {
  return clients.alive(Owner::unpack(client.owner.load(std::memory_order_acquire)));
}

std::span<const ClientActivity> used_slots(const Control& control) {
  return {control.activity, std::min(control.activity_count.load(), kMaxClients)};
}

}  // namespace

Activity::Activity(Control& control, DeviceLock& lock, const Clients& clients, Owner self, const ClientShare& share)
    : control_(control), lock_(lock), clients_(clients), self_(self), meter_(control), users_(control, clients) {
  ClientActivity& client = mine();
  client.owner.store(0);  // nobody's until all words are this process's
  for (auto* word : {&client.contexts, &client.connected, &client.kernels, &client.sms_wanted, &client.copies[0],
                     &client.copies[1]}) {
    word->store(0);
  }
  for (auto* word : {&client.kernel_count, &client.kernel_ns, &client.copy_count, &client.copy_ns}) word->store(0);
  client.sm_share.store(static_cast<std::uint32_t>(share.sms));
  client.memory_limit.store(share.memory_limit);
  client.mps.store(!share.mps ? kTakesTurns : share.below_normal ? kMpsBelowNormal : kMpsClient);
  client.owner.store(self.pack(), std::memory_order_release);
  std::uint32_t count = control_.activity_count.load();
  while (count <= self.slot && !control_.activity_count.compare_exchange_weak(count, self.slot + 1)) {
  }
}

bool Activity::living(const ClientActivity& client) const {
  return client.owner.load() == self_.pack() || lives(client, clients_);
}

// The meter runs while any MPS client computes: the first to begin starts it, the last to end stops it.
void Activity::begin_kernel(std::uint64_t sms) {
  const LockGuard guard(lock_);
  const std::uint64_t now = monotonic_ns();
  if (!mps_kernels_run(control_, clients_)) meter_.begin(now);
  if (mine().kernels.load() == 0) users_.begin(self_, now);
  mine().sms_wanted.fetch_add(static_cast<std::uint32_t>(sms));
  mine().kernels.fetch_add(1);
}

void Activity::end_kernel(std::uint64_t sms) {
  const LockGuard guard(lock_);
  mine().kernels.fetch_sub(1);
  mine().sms_wanted.fetch_sub(static_cast<std::uint32_t>(sms));
  const std::uint64_t now = monotonic_ns();
  if (mine().kernels.load() == 0) users_.end(self_, now);
  if (!mps_kernels_run(control_, clients_)) meter_.end(now);
}

KernelGrant Activity::grant(std::uint64_t sm_count, std::uint64_t sms) const {
  std::vector<SmDemand> demands;
  std::size_t own = 0;
  KernelGrant grant{0, 0};
  for (const ClientActivity& client : used_slots(control_)) {
    const std::uint32_t kernels = client.kernels.load();
    if (kernels == 0 || client.mps.load() == kTakesTurns || !living(client)) continue;
    if (&client == &mine()) own = demands.size();
    demands.push_back({client.sm_share.load(), client.sms_wanted.load(), client.mps.load() == kMpsBelowNormal});
    grant.memory_users += kernels;
  }
  if (demands.empty()) return {sms * 1000, 1};
  // A client's kernels share what it gets by what they can use.
  const std::uint64_t wanted = std::max<std::uint64_t>(demands[own].wanted, sms);
  grant.milli_sms = grant_milli_sms(sm_count, demands)[own] * sms / wanted;
  return grant;
}

std::uint64_t Activity::copies(Direction direction) const {
  std::uint64_t count = 0;
  for (const ClientActivity& client : used_slots(control_)) {
    const std::uint32_t copies = client.copies[static_cast<int>(direction)].load();
    if (copies != 0 && living(client)) count += copies;
  }
  return std::max<std::uint64_t>(count, 1);
}

// A client was hit if it connected before the last fault, whether or not it has a context now: it must exit.
Activity::ContextRefusal Activity::add_context(const ClientShare& share) {
  const LockGuard guard(lock_);
  const auto faults = static_cast<std::uint32_t>(control_.mps_fault.load() >> 32);
  std::uint64_t contexts = 0;
  for (const ClientActivity& client : used_slots(control_)) {
    const std::uint32_t connected = client.connected.load();
    if (connected == 0 || !living(client)) continue;
    if (share.faults_shared && connected <= faults) return ContextRefusal::kDraining;
    contexts += client.contexts.load();
  }
  if (contexts >= share.max_contexts) return ContextRefusal::kTooMany;
  mine().contexts.fetch_add(1);
  if (mine().connected.load() == 0) mine().connected.store(faults + 1);
  return ContextRefusal::kNone;
}

void Activity::charge_kernel(std::uint64_t modelled_ns) {
  mine().kernel_count.fetch_add(1, std::memory_order_relaxed);
  mine().kernel_ns.fetch_add(modelled_ns, std::memory_order_relaxed);
}

void Activity::charge_copy(std::uint64_t modelled_ns) {
  mine().copy_count.fetch_add(1, std::memory_order_relaxed);
  mine().copy_ns.fetch_add(modelled_ns, std::memory_order_relaxed);
}

bool mps_kernels_run(const Control& control, const Clients& clients) {
  for (const ClientActivity& client : used_slots(control)) {
    if (client.kernels.load() != 0 && client.mps.load() != kTakesTurns && lives(client, clients)) return true;
  }
  return false;
}

}  // namespace softgpu
