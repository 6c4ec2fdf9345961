#include "runtime/pipeline/host_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace fairlead {
namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

Error lacking(int error, std::uint64_t bytes, const char* step) {
  const Error why = errno_error(error, step);
  return {Errc::kResourceExhausted, fmt::format("{} bytes of host memory between stages: {}", bytes, why.message)};
}

}  // namespace

Result<std::unique_ptr<HostRing>> HostRing::make(wire::StageRingShape shape, std::shared_ptr<void> held) {
  if (!shape.valid()) {
    return fail(Errc::kInvalidArgument, "a ring of {} slots of {} bytes; at most {} of {}", shape.slots,
                shape.slot_bytes, wire::StageRingShape::kMostSlots, wire::StageRingShape::kMostSlotBytes);
  }
  UniqueFd memory(::memfd_create("fairlead-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return fail(lacking(errno, shape.bytes(), "memfd_create"));
  const auto size = static_cast<off_t>(shape.bytes());
  if (::ftruncate(memory.get(), size) != 0) return fail(lacking(errno, shape.bytes(), "ftruncate"));
  if (const int error = ::posix_fallocate(memory.get(), 0, size); error != 0) {
    return fail(lacking(error, shape.bytes(), "fallocate"));
  }
  // A server that shrank it would end the node with a bus error.
  ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* const at = ::mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return fail(lacking(errno, shape.bytes(), "mmap"));
  return std::unique_ptr<HostRing>(new HostRing(shape, std::move(memory), static_cast<char*>(at), std::move(held)));
}

HostRing::HostRing(wire::StageRingShape shape, UniqueFd memory, char* at, std::shared_ptr<void> held)
    : number_(next_number()),
      shape_(shape),
      memory_(std::move(memory)),
      at_(at),
      held_(std::move(held)),
      starts_(shape.slots, 0) {}

HostRing::~HostRing() {
  ::munmap(at_, shape_.bytes());
}

// The word begins where the node says, whatever the last writer has left.
wire::RingSlot HostRing::write(std::uint32_t slot, std::uint32_t buffer) {
  starts_[slot] += shape_.chunks();
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at_ + shape_.word_offset(slot)), starts_[slot], __ATOMIC_RELEASE);
  return read(slot, buffer);
}

wire::RingSlot HostRing::read(std::uint32_t slot, std::uint32_t buffer) const {
  return {.buffer = buffer, .slot = slot, .start = starts_[slot], .ring = number_};
}

void HostRing::let_go(std::uint32_t slot) {
  auto* const word = reinterpret_cast<std::uint32_t*>(at_ + shape_.word_offset(slot));
  __atomic_store_n(word, starts_[slot] + shape_.chunks(), __ATOMIC_RELEASE);
}

}  // namespace fairlead
