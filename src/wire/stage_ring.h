// The memory through which tensors pass from stage to stage of a pipeline: one memory file, mapped by the node and by the device
// servers of both sides, and pinned once in each server, so that devices copy to and from it and no processor does.
//
//   | word of slot 0 | word of slot 1 | ... | to a page | slot 0 | slot 1 | ...
//
// Who owns a slot, and for which request, is the node's to say (runtime/pipeline/host_ring.h). All that the devices say to each other is
// a slot's word: how many chunks of it have been written, counted from a start that the node gives with each use. The writer's stream
// copies a chunk out of its device and then raises the word; the reader's stream waits for the word and copies the chunk in, while the
// writer's copies the next. So a tensor of n chunks is across after n + 1 chunk times and not after 2 n.
//
// Example: 10 MiB are 10 chunks of 1 MiB. The node says that the word begins at 40. The writer sets it to 41 after the first chunk, the
// reader waits for 41 before it copies that; at 50 the tensor is whole. The next use of the slot begins at 50.
//
// The word is compared as a cyclic number, as cuStreamWaitValue32 does: it may pass 2^32, and what a dead writer has left can be
// made whole by the node setting the word (the reader's result is then thrown away).
//
// Threads: plain functions.
#pragma once

#include <cstdint>

namespace fairlead::wire {

struct StageRingShape {
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;  // of the tensor
  bool operator==(const StageRingShape&) const = default;

  static constexpr std::uint32_t kMostSlots = 64;
  static constexpr std::uint64_t kMostSlotBytes = std::uint64_t{4} << 30;
  static constexpr std::uint64_t kChunk = 1 << 20;
  static constexpr std::uint64_t kWordStep = 64;  // a line of the cache for each word
  static constexpr std::uint64_t kPage = 4096;

  bool valid() const { return slots >= 1 && slots <= kMostSlots && slot_bytes >= 1 && slot_bytes <= kMostSlotBytes; }
  static constexpr std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
  // REQUIRES, of all that follow: valid().
  std::uint64_t word_offset(std::uint32_t slot) const { return slot * kWordStep; }
  std::uint64_t data_offset(std::uint32_t slot) const {
    return round_up(slots * kWordStep) + slot * round_up(slot_bytes);
  }
  std::uint64_t bytes() const { return data_offset(slots); }
  std::uint32_t chunks() const { return static_cast<std::uint32_t>((slot_bytes + kChunk - 1) / kChunk); }
};

}  // namespace fairlead::wire
