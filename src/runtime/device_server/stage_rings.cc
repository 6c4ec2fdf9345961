#include "runtime/device_server/stage_rings.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

namespace fairlead {

using wire::StageRingShape;

StageRings::~StageRings() {
  for (const auto& [number, ring] : rings_) unmap(ring);
}

void StageRings::unmap(const Ring& ring) {
  cuda_.unpin(ring.memory);
  ::munmap(ring.memory, ring.shape.bytes());
}

Status StageRings::open(const wire::OpenRing& frame, const UniqueFd& memory) {
  const StageRingShape shape{frame.slots, frame.slot_bytes};
  if (!shape.valid()) {
    return fail(Errc::kInvalidArgument, "ring {} has {} slots of {} bytes; at most {} of {}", frame.ring, frame.slots,
                frame.slot_bytes, StageRingShape::kMostSlots, StageRingShape::kMostSlotBytes);
  }
  if (rings_.contains(frame.ring)) return fail(Errc::kInvalidArgument, "ring {} is open already", frame.ring);
  if (!words_.there()) {
    return fail(Errc::kUnavailable,
                "the driver has no cuStreamWaitValue32: a pipeline cannot pass tensors between slices");
  }
  struct stat file {};
  if (::fstat(memory.get(), &file) != 0 || static_cast<std::uint64_t>(file.st_size) < shape.bytes()) {
    return fail(Errc::kInvalidArgument, "ring {}: its memory has {} bytes, it needs {}", frame.ring, file.st_size,
                shape.bytes());
  }
  void* const at = ::mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return fail(errno_error(errno, "map a ring"));
  const auto pinned = words_.pin(at, Bytes(static_cast<std::int64_t>(shape.bytes())));
  if (!pinned) {
    ::munmap(at, shape.bytes());
    return fail(pinned.error());
  }
  rings_[frame.ring] = {shape, static_cast<char*>(at), *pinned};
  return {};
}

void StageRings::close(std::uint64_t ring) {
  const auto found = rings_.find(ring);
  if (found == rings_.end()) return;
  unmap(found->second);
  rings_.erase(found);
}

Status StageRings::check(const wire::RingSlot& slot, std::uint64_t bytes) const {
  const auto found = rings_.find(slot.ring);
  if (found == rings_.end()) return fail(Errc::kInvalidArgument, "ring {} is not open", slot.ring);
  const StageRingShape& shape = found->second.shape;
  if (slot.slot >= shape.slots || bytes != shape.slot_bytes) {
    return fail(Errc::kInvalidArgument, "ring {} has {} slots of {} bytes: slot {} was asked for, of {} bytes",
                slot.ring, shape.slots, shape.slot_bytes, slot.slot, bytes);
  }
  return {};
}

CUresult StageRings::wait_first(const wire::RingSlot& slot, CUstream stream) const {
  const Ring& ring = rings_.at(slot.ring);
  return words_.wait(stream, ring.words + ring.shape.word_offset(slot.slot), slot.start + 1);
}

CUresult StageRings::read(const wire::RingSlot& slot, CUdeviceptr to, CUstream stream) const {
  const Ring& ring = rings_.at(slot.ring);
  const char* const data = ring.memory + ring.shape.data_offset(slot.slot);
  const CUdeviceptr word = ring.words + ring.shape.word_offset(slot.slot);
  CUresult code = CUDA_SUCCESS;
  for (std::uint32_t chunk = 0; chunk < ring.shape.chunks() && code == CUDA_SUCCESS; ++chunk) {
    const std::uint64_t at = chunk * StageRingShape::kChunk;
    code = words_.wait(stream, word, slot.start + chunk + 1);
    if (code != CUDA_SUCCESS) break;
    code = cuda_.copy_in(to + at, data + at, std::min(StageRingShape::kChunk, ring.shape.slot_bytes - at), stream);
  }
  return code;
}

CUresult StageRings::write(const wire::RingSlot& slot, CUdeviceptr from, CUstream stream) const {
  const Ring& ring = rings_.at(slot.ring);
  char* const data = ring.memory + ring.shape.data_offset(slot.slot);
  const CUdeviceptr word = ring.words + ring.shape.word_offset(slot.slot);
  CUresult code = CUDA_SUCCESS;
  for (std::uint32_t chunk = 0; chunk < ring.shape.chunks() && code == CUDA_SUCCESS; ++chunk) {
    const std::uint64_t at = chunk * StageRingShape::kChunk;
    code = cuda_.copy_out(data + at, from + at, std::min(StageRingShape::kChunk, ring.shape.slot_bytes - at), stream);
    if (code != CUDA_SUCCESS) break;
    code = words_.set(stream, word, slot.start + chunk + 1);
  }
  return code;
}

}  // namespace fairlead
