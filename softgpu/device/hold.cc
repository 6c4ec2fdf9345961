#include "softgpu/device/hold.h"

#include <algorithm>
#include <set>

#include "softgpu/device/futex.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// How long who waits sleeps at most before it looks again: whoever should wake it may have died.
constexpr int kPatienceMs = 20;

PagePool pool_of(const DeviceView& view, const Clients& clients) {
  return {view.memory(), view.part().page_count(), clients, -1};
}

// Every part of the machine that a process can use.
Result<std::vector<Part>> all_parts(const Machine& machine) {
  std::vector<Part> parts;
  for (unsigned gpu = 0; gpu < machine.device_count; ++gpu) {
    const auto settings = read_settings(machine, gpu);
    if (!settings) return failure(settings.error());
    if (settings->mig.enabled()) {
      for (Part& part : mig_parts(machine, gpu, settings->mig)) parts.push_back(std::move(part));
    } else {
      parts.push_back(whole_gpu(machine, gpu));
    }
  }
  return parts;
}

}  // namespace

void CallGate::enter() {
  for (add(); !open(); add()) {
    leave();
    wait();
  }
}

void CallGate::wake_who_locks() {
  futex_wake_all(row_.under_way);
}

void CallGate::wait() const {
  for (std::uint32_t word = row_.hold.load(); word != running_; word = row_.hold.load()) {
    futex_wait(row_.hold, word, kPatienceMs);
  }
}

// The locks of several devices, taken in the order of their files, as everybody takes them who takes more than one.
class Holder::Locks {
 public:
  Locks(const std::vector<Memory>& memories, const Clients& clients, Owner self) {
    for (const Memory& memory : memories) {
      locks_.push_back(std::make_unique<DeviceLock>(memory.view->memory().lock, clients, self));
      locks_.back()->lock();
    }
  }
  ~Locks() {
    for (const auto& lock : locks_) lock->unlock();
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

 private:
  std::vector<std::unique_ptr<DeviceLock>> locks_;
};

std::optional<Owner> Holder::find(int pid) const {
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    if (clients_.row({slot, 0}).generation.load() == 0) continue;
    const auto live = clients_.live(slot);
    if (live && live->pid == pid) return live->owner;
  }
  return std::nullopt;
}

bool Holder::change(Owner owner, HoldState from, HoldState to) const {
  std::uint32_t word = ClientRow::hold_word(owner, from);
  if (!clients_.row(owner).hold.compare_exchange_strong(word, ClientRow::hold_word(owner, to))) return false;
  if (to == HoldState::kRunning || from == HoldState::kCheckpointed) futex_wake_all(clients_.row(owner).hold);
  return true;
}

std::optional<HoldState> Holder::state(int pid) const {
  const auto owner = find(pid);
  return owner ? std::optional(clients_.held(*owner)) : std::nullopt;
}

HoldResult Holder::lock(int pid, unsigned timeout_ms) const {
  const auto owner = find(pid);
  if (!owner) return HoldResult::kNoProcess;
  if (!change(*owner, HoldState::kRunning, HoldState::kLocked)) return HoldResult::kWrongState;
  const std::uint64_t end = monotonic_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  const auto& under_way = clients_.row(*owner).under_way;
  for (std::uint32_t left = under_way.load(); left != 0; left = under_way.load()) {
    const std::uint64_t now = monotonic_ns();
    if (timeout_ms != 0 && now >= end) {
      change(*owner, HoldState::kLocked, HoldState::kRunning);
      return HoldResult::kTimeout;
    }
    if (!clients_.alive(*owner)) return HoldResult::kNoProcess;
    const auto left_ms = timeout_ms == 0 ? kPatienceMs : static_cast<int>((end - now) / 1'000'000 + 1);
    futex_wait(under_way, left, std::min(kPatienceMs, left_ms));
  }
  return HoldResult::kDone;
}

HoldResult Holder::unlock(int pid) const {
  const auto owner = find(pid);
  if (!owner) return HoldResult::kNoProcess;
  return change(*owner, HoldState::kLocked, HoldState::kRunning) ? HoldResult::kDone : HoldResult::kWrongState;
}

// The memories of the machine, by their files; each once.
Result<std::vector<Holder::Memory>> Holder::memories(Owner owner) {
  auto parts = all_parts(machine_);
  if (!parts) return failure(parts.error());
  std::sort(parts->begin(), parts->end(), [](const Part& a, const Part& b) { return a.memory_files < b.memory_files; });
  std::vector<Memory> found;
  const LockGuard guard(mutex_);
  for (const Part& part : *parts) {
    if (!found.empty() && found.back().view->part().memory_files == part.memory_files) continue;
    auto& view = views_[part.uuid_text()];
    if (view == nullptr) {
      auto opened = DeviceView::open(clients_, part);
      if (!opened) return failure(opened.error());
      view = std::move(*opened);
    }
    found.push_back({view.get(), pool_of(*view, clients_).owned_by(owner)});
  }
  return found;
}

void Holder::copy_all(const std::vector<Memory>& memories, Direction direction, const Copy& copy) {
  for (const Memory& memory : memories) {
    if (memory.pages != 0) copy(memory.view->part(), direction, memory.pages * kPageBytes);
  }
}

// The bytes cross the link while the pages are still in use, as they would be.
HoldResult Holder::checkpoint(int pid, const Copy& copy) {
  const auto owner = find(pid);
  if (!owner) return HoldResult::kNoProcess;
  if (clients_.held(*owner) != HoldState::kLocked) return HoldResult::kWrongState;
  if (clients_.row(*owner).under_way.load() != 0) return HoldResult::kUnderWay;
  if (clients_.row(*owner).shares.load() != 0) return HoldResult::kShares;
  auto all = memories(*owner);
  if (!all) return HoldResult::kBroken;
  for (const Memory& memory : *all) pool_of(*memory.view, clients_).drop_evictable(*owner);
  for (Memory& memory : *all) memory.pages = pool_of(*memory.view, clients_).owned_by(*owner);
  copy_all(*all, Direction::kFromDevice, copy);
  const Locks locks(*all, clients_, self_);
  clients_.note_checkpoint();
  return change(*owner, HoldState::kLocked, HoldState::kCheckpointed) ? HoldResult::kDone : HoldResult::kWrongState;
}

HoldResult Holder::restore(int pid, const Copy& copy) {
  const auto owner = find(pid);
  if (!owner) return HoldResult::kNoProcess;
  const HoldState held = clients_.held(*owner);
  if (held == HoldState::kStranded) return HoldResult::kStranded;
  if (held != HoldState::kCheckpointed) return HoldResult::kWrongState;
  const auto all = memories(*owner);
  if (!all) return HoldResult::kBroken;
  {
    const Locks locks(*all, clients_, self_);
    for (const Memory& memory : *all) {
      if (pool_of(*memory.view, clients_).can_make_room(memory.pages)) continue;
      change(*owner, HoldState::kCheckpointed, HoldState::kStranded);
      return HoldResult::kNoRoom;
    }
    for (const Memory& memory : *all) pool_of(*memory.view, clients_).make_room(memory.pages);
    if (!change(*owner, HoldState::kCheckpointed, HoldState::kLocked)) return HoldResult::kWrongState;
  }
  copy_all(*all, Direction::kToDevice, copy);
  return HoldResult::kDone;
}

}  // namespace softgpu
