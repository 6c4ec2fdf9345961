// The node's end of the memory that a tensor passes through from stage to stage (wire/stage_ring.h): a memory file whose pages are taken
// at once, so that a machine that is short of memory refuses the pipeline and not one of its requests.
//
// Who owns a slot is RequestFlow's to say (decide/pipeline/request_flow.h). Here each slot has the number at which its word's next use
// begins. A slot is written by one call at a time: whoever starts another has seen the one before end, or its process gone.
//
// The file has no name. It goes with the last of those who have it: the node and the device servers that were told of it.
//
// Threads: not thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "wire/device_frames.h"
#include "wire/stage_ring.h"

namespace fairlead {

class HostRing {
 public:
  // kInvalidArgument: a shape beyond its bounds. kResourceExhausted: the machine lacks the memory. `held` as long as the ring: what counts
  // its bytes (ring_budget.h).
  static Result<std::unique_ptr<HostRing>> make(wire::StageRingShape shape, std::shared_ptr<void> held = {});
  ~HostRing();
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  std::uint64_t number() const { return number_; }  // of no other ring of this process
  const wire::StageRingShape& shape() const { return shape_; }
  Bytes bytes() const { return Bytes(static_cast<std::int64_t>(shape_.bytes())); }
  int descriptor() const { return memory_.get(); }
  wire::OpenRing frame() const { return {number_, shape_.slots, shape_.slot_bytes}; }

  // For a call that writes the slot, from here on; and for those that read what was written last.
  wire::RingSlot write(std::uint32_t slot, std::uint32_t buffer);
  wire::RingSlot read(std::uint32_t slot, std::uint32_t buffer) const;
  // Who waits for the slot waits no longer: its writer, a program without a device, has written it; or will never write, and what is
  // read then means nothing.
  void let_go(std::uint32_t slot);

  std::string_view tensor(std::uint32_t slot) const { return {at_ + shape_.data_offset(slot), shape_.slot_bytes}; }

 private:
  HostRing(wire::StageRingShape shape, UniqueFd memory, char* at, std::shared_ptr<void> held);

  const std::uint64_t number_;
  const wire::StageRingShape shape_;
  const UniqueFd memory_;
  char* const at_;
  const std::shared_ptr<void> held_;   // shared with nobody; its destruction is what counts
  std::vector<std::uint32_t> starts_;  // of the last use; 0 before the first
};

}  // namespace fairlead
