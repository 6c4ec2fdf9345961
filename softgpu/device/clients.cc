#include "softgpu/device/clients.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "softgpu/device/files.h"
#include "softgpu/device/futex.h"
#include "softgpu/device/private_descriptors.h"
#include "softgpu/device/shared_events.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMagic = 0x32746E65696C6373;  // "sclient2"

constexpr int kHoldPatienceMs = 20;

struct flock byte_lock(std::uint32_t byte) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Leaves the open file description, and its locks, to a mapping that is never read and not inherited.
bool keep_by_mapping(int descriptor) {
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* mapping = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED) return false;
  if (::madvise(mapping, bytes, MADV_DONTFORK) == 0) return true;
  ::munmap(mapping, bytes);
  return false;
}

}  // namespace

struct Clients::Table {
  std::uint64_t magic;
  std::atomic<std::uint32_t> ever_checkpointed;
  ClientRow rows[kMaxClients];
};

Result<Clients> Clients::open(const Machine& machine) {
  const auto mapping = map_table(machine.path("clients"), kMagic, sizeof(Table));
  if (!mapping) return failure(mapping.error());
  auto* table = static_cast<Table*>(*mapping);
  const auto slots = open_file(machine.path("slots"));
  if (!slots) return failure(slots.error());
  if (const auto made = SharedEvents::make(machine); !made) return failure(made.error());
  auto shares = Shares::open(machine);
  if (!shares) return failure(shares.error());
  return Clients(table, *slots, machine.path("slots"), std::move(*shares));
}

// A container's processes see one another's pids, and of other containers' processes none.
Result<std::uint32_t> Clients::slots_to_take() const {
  struct stat slots = {};
  const bool shared = ::fstat(slots_, &slots) == 0 && (slots.st_mode & S_IWGRP) != 0;
  if (!shared || slots.st_uid == ::geteuid()) return kMaxClients;
  std::uint32_t own = 0;
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    if (table_->rows[slot].generation.load() == 0) continue;  // was never taken
    if (holder_of_byte(slot).alive && holder_of_byte(kMaxClients + slot).pid > 0) ++own;
  }
  if (own < kMostOfContainer) return kMaxClients - kOwnersSlots;
  return failure("this container has " + std::to_string(own) + " client processes of the machine, it may have " +
                 std::to_string(kMostOfContainer) + "; end some of them");
}

Result<Owner> Clients::join() {
  const auto slot_count = slots_to_take();
  if (!slot_count) return failure(slot_count.error());
  const PrivateDescriptors::NoFork no_fork;
  const auto descriptor = open_file(path_);
  if (!descriptor) return failure(descriptor.error());
  std::uint32_t slot = 0;
  struct flock lock = byte_lock(slot);
  while (slot < *slot_count && ::fcntl(*descriptor, F_OFD_SETLK, &lock) != 0) lock = byte_lock(++slot);
  const bool kept = slot < *slot_count && keep_by_mapping(*descriptor);
  ::close(*descriptor);
  if (slot == *slot_count) {
    return failure("the machine has " + std::to_string(*slot_count) + " client processes, the most it can have");
  }
  if (!kept) return failure("cannot map " + path_ + ": the process has too many mappings (vm.max_map_count)");
  struct flock pid = byte_lock(kMaxClients + slot);  // after close(), which would drop it
  ::fcntl(slots_, F_SETLK, &pid);
  ClientRow& row = table_->rows[slot];
  std::uint32_t next = (row.generation.load() + 1) & Owner::kGenerationMask;
  if (next == 0) next = 1;
  const Owner self{slot, next};
  row.under_way.store(0);
  row.shares.store(0);
  row.hold.store(ClientRow::hold_word(self, HoldState::kRunning));
  row.generation.store(next);  // last: who finds it finds the rest
  return self;
}

// Open-file-description requests also see the locks of their own process.
Clients::Holder Clients::holder_of_byte(std::uint32_t byte) const {
  struct flock lock = byte_lock(byte);
  if (::fcntl(slots_, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  return {true, lock.l_pid > 0 ? lock.l_pid : 0};
}

bool Clients::alive(Owner owner) const {
  if (owner.slot >= kMaxClients) return false;  // a damaged word
  // The generation is read after the lock: a new owner locks first and raises the generation afterwards.
  return holder_of_byte(owner.slot).alive && table_->rows[owner.slot].generation.load() == owner.generation;
}

std::string Clients::damage() const {
  if (table_->magic != kMagic || table_->ever_checkpointed.load() > 1) return path_ + ": the client table is damaged";
  for (const ClientRow& row : table_->rows) {
    if (row.generation.load() > Owner::kGenerationMask || row.shares.load() > 1) {
      return path_ + ": a row of the client table is damaged";
    }
  }
  return shares_.damage();
}

ClientRow& Clients::row(Owner owner) const {
  return table_->rows[owner.slot];
}

HoldState Clients::held(Owner owner) const {
  if (owner.slot >= kMaxClients) return HoldState::kRunning;  // a damaged word
  const std::uint32_t word = row(owner).hold.load();
  for (const HoldState state : {HoldState::kLocked, HoldState::kCheckpointed, HoldState::kStranded}) {
    if (word == ClientRow::hold_word(owner, state)) return state;
  }
  return HoldState::kRunning;
}

bool Clients::ever_checkpointed() const {
  return table_->ever_checkpointed.load(std::memory_order_relaxed) != 0;
}

void Clients::note_checkpoint() const {
  table_->ever_checkpointed.store(1);
}

void Clients::wait_while_checkpointed(Owner owner) const {
  for (HoldState state = held(owner); is_off_device(state); state = held(owner)) {
    futex_wait(row(owner).hold, ClientRow::hold_word(owner, state), kHoldPatienceMs);
  }
}

std::optional<Clients::Live> Clients::live(std::uint32_t slot) const {
  if (!holder_of_byte(slot).alive) return std::nullopt;
  const std::uint32_t generation = table_->rows[slot].generation.load();
  if (generation == 0) return std::nullopt;
  return Live{{slot, generation}, holder_of_byte(kMaxClients + slot).pid};
}

}  // namespace softgpu
