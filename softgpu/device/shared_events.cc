#include "softgpu/device/shared_events.h"

#include <string>

#include "softgpu/device/files.h"
#include "softgpu/device/futex.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMagic = 0x31746E6576656773;  // "sgevent1"
// Who waits looks this often whether the process it waits for lives.
constexpr int kPatienceMs = 20;

// One recording: its number, as far as it fits, whether it has run, and Owner::pack of its process. 0: none.
struct Recording {
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 31) - 1;
  std::uint64_t number = 0;
  bool done = false;
  std::uint32_t recorder = 0;

  std::uint64_t pack() const {
    return (number & kNumberMask) << 33 | std::uint64_t{done} << 32 | std::uint64_t{recorder};
  }
  static Recording unpack(std::uint64_t word) {
    return {word >> 33, (word >> 32 & 1) != 0, static_cast<std::uint32_t>(word)};
  }
  bool is(std::uint64_t wanted) const { return number == (wanted & kNumberMask) && recorder != 0; }
};

}  // namespace

struct SharedEvents::Row {
  std::atomic<std::uint32_t> creator;   // Owner::pack, 0 when free
  std::atomic<std::uint32_t> use;       // how often the row was taken
  std::atomic<std::uint32_t> recorder;  // Owner::pack of the last recording
  std::atomic<std::uint32_t> changes;   // futex: grows with every completion
  std::atomic<std::uint64_t> submitted;
  std::atomic<std::uint64_t> completed;                // the highest number that has run
  std::atomic<std::uint64_t> recordings[kRecordings];  // Recording::pack, by number modulo kRecordings

  std::atomic<std::uint64_t>& recording(std::uint64_t number) { return recordings[number % kRecordings]; }
};

struct SharedEvents::Table {
  std::uint64_t magic;
  Row rows[kMaxSharedEvents];
};

Status SharedEvents::make(const Machine& machine) {
  return make_table(machine.path("events"), kMagic, sizeof(Table));
}

std::string SharedEvents::damage(const Machine& machine) {
  return damage_of_table(machine.path("events"), kMagic, sizeof(Table));
}

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
    for (auto& recording : row.recordings) recording.store(0);  // recordings of the row's last use
    row.completed.store(row.submitted.load());
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
  Row& own = row(name);
  own.recorder.store(self_.pack());
  const std::uint64_t number = own.submitted.fetch_add(1) + 1;
  own.recording(number).store(Recording{number, false, self_.pack()}.pack());
  return number;
}

void SharedEvents::complete(Name name, std::uint64_t number) {
  Row& own = row(name);
  std::uint64_t word = Recording{number, false, self_.pack()}.pack();
  own.recording(number).compare_exchange_strong(word, Recording{number, true, self_.pack()}.pack());
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
  Row& own = row(name);
  if (number == 0 || own.use.load() != name.use) return true;
  if (const auto recording = Recording::unpack(own.recording(number).load()); recording.is(number)) {
    if (recording.done || !clients_->alive(Owner::unpack(recording.recorder))) return true;
    return own.use.load() != name.use;
  }
  // Older than the words, or submitted this moment.
  return own.completed.load() >= number || !clients_->alive(Owner::unpack(own.recorder.load()));
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
