#include "softgpu/device/shared_events.h"

#include <string>

#include "softgpu/device/files.h"
#include "softgpu/device/futex.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMagic = 0x31746E6576656773;  // "sgevent1"
// Who waits looks this often whether the process it waits for lives.
constexpr int kPatienceMs = 20;

}  // namespace

struct SharedEvents::Row {
  std::atomic<std::uint32_t> creator;   // Owner::pack, 0 when free
  std::atomic<std::uint32_t> use;       // how often the row was taken
  std::atomic<std::uint32_t> recorder;  // Owner::pack of the last recording
  std::atomic<std::uint32_t> changes;   // futex: grows with every completion
  std::atomic<std::uint64_t> submitted;
  std::atomic<std::uint64_t> completed;
};

struct SharedEvents::Table {
  std::uint64_t magic;
  Row rows[kMaxSharedEvents];
};

Result<SharedEvents> SharedEvents::open(const Machine& machine, const Clients& clients, Owner self) {
  const auto mapping = map_table(machine.path("events"), kMagic, sizeof(Table));
  if (!mapping) return failure(mapping.error());
  auto* table = static_cast<Table*>(*mapping);
  return SharedEvents(table, clients, self);
}

std::optional<SharedEvents::Name> SharedEvents::create() {
  for (std::uint32_t index = 0; index < kMaxSharedEvents; ++index) {
    Row& row = table_->rows[index];
    std::uint32_t creator = row.creator.load();
    if (creator != 0 && clients_->alive(Owner::unpack(creator))) continue;
    if (!row.creator.compare_exchange_strong(creator, self_.pack())) continue;
    const std::uint32_t use = row.use.fetch_add(1) + 1;
    row.completed.store(row.submitted.load());  // recordings of the dead
    return Name{index, use};
  }
  return std::nullopt;
}

void SharedEvents::destroy(Name name) {
  std::uint32_t creator = self_.pack();
  if (valid(name)) row(name).creator.compare_exchange_strong(creator, 0);
}

bool SharedEvents::valid(Name name) const {
  return name.row < kMaxSharedEvents && row(name).creator.load() != 0 && row(name).use.load() == name.use;
}

Owner SharedEvents::creator(Name name) const {
  return Owner::unpack(row(name).creator.load());
}

std::uint64_t SharedEvents::submit(Name name) {
  row(name).recorder.store(self_.pack());
  return row(name).submitted.fetch_add(1) + 1;
}

void SharedEvents::complete(Name name, std::uint64_t number) {
  Row& own = row(name);
  std::uint64_t seen = own.completed.load();
  while (seen < number && !own.completed.compare_exchange_weak(seen, number)) {
  }
  own.changes.fetch_add(1);
  futex_wake_all(own.changes);
}

std::uint64_t SharedEvents::last(Name name) const {
  return row(name).submitted.load();
}

bool SharedEvents::reached(Name name, std::uint64_t number) const {
  const Row& own = row(name);
  if (own.completed.load() >= number || own.use.load() != name.use) return true;
  return !clients_->alive(Owner::unpack(own.recorder.load())) || own.completed.load() >= number;
}

void SharedEvents::wait(Name name, std::uint64_t number, const StopCheck& stop) const {
  while (!stop()) {
    const std::uint32_t changes = row(name).changes.load();
    if (reached(name, number)) return;
    futex_wait(row(name).changes, changes, kPatienceMs);
  }
}

SharedEvents::Row& SharedEvents::row(Name name) const {
  return table_->rows[name.row];
}

}  // namespace softgpu
