#include "softgpu/device/clients.h"

#include <fcntl.h>

#include <string>

#include "softgpu/device/files.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMagic = 0x31746E65696C6373;  // "sclient1"
constexpr int kNobody = -1;

}  // namespace

struct Clients::Table {
  std::uint64_t magic;
  std::atomic<std::uint32_t> generations[kMaxClients];
};

Result<Clients> Clients::open(const Machine& machine) {
  const auto mapping = map_table(machine.path("clients"), kMagic, sizeof(Table));
  if (!mapping) return failure(mapping.error());
  auto* table = static_cast<Table*>(*mapping);
  const auto slots = open_file(machine.path("slots"));
  if (!slots) return failure(slots.error());
  auto shares = Shares::open(machine);
  if (!shares) return failure(shares.error());
  return Clients(table, *slots, std::move(*shares));
}

Result<Owner> Clients::join() {
  for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = slot;
    lock.l_len = 1;
    if (::fcntl(slots_, F_SETLK, &lock) != 0) continue;
    auto& generation = table_->generations[slot];
    std::uint32_t next = (generation.load() + 1) & Owner::kGenerationMask;
    if (next == 0) next = 1;
    generation.store(next);
    return Owner{slot, next};
  }
  return failure("the machine has " + std::to_string(kMaxClients) + " client processes, the most it can have");
}

// The process that holds the slot's lock, 0 when it is outside the caller's pid namespace.
int Clients::holder(std::uint32_t slot) const {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  if (::fcntl(slots_, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return kNobody;
  return lock.l_pid;
}

bool Clients::alive(Owner owner) const {
  if (owner.slot >= kMaxClients) return false;  // a damaged word
  // The generation is read after the lock: a new owner locks first and raises the generation afterwards.
  return holder(owner.slot) != kNobody && table_->generations[owner.slot].load() == owner.generation;
}

std::optional<Clients::Live> Clients::live(std::uint32_t slot) const {
  const int pid = holder(slot);
  if (pid == kNobody) return std::nullopt;
  const std::uint32_t generation = table_->generations[slot].load();
  if (generation == 0) return std::nullopt;
  return Live{{slot, generation}, pid};
}

}  // namespace softgpu
