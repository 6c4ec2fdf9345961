// A device server's end of the memory that tensors of a pipeline pass through (wire/stage_ring.h): mapped and pinned once, when the node
// opens a ring, and what a call queues to read a slot or to write one.
//
// Threads: the device server's loop.
#pragma once

#include <map>

#include "base/unique_fd.h"
#include "gpu/context.h"
#include "wire/device_frames.h"
#include "wire/stage_ring.h"

namespace fairlead {

class StageRings {
 public:
  explicit StageRings(CudaContext& cuda) : cuda_(cuda), words_(cuda) {}
  ~StageRings();
  StageRings(const StageRings&) = delete;
  StageRings& operator=(const StageRings&) = delete;

  // kInvalidArgument: a shape beyond its bounds, a file that is smaller, a number that is open. kUnavailable: the driver cannot pin
  // it, or has no streams that wait for memory; pipelines of several stages do not work there.
  Status open(const wire::OpenRing& frame, const UniqueFd& memory);
  // REQUIRES: no call that runs uses it.
  void close(std::uint64_t ring);

  // Whether there is such a slot, of exactly so many bytes.
  Status check(const wire::RingSlot& slot, std::uint64_t bytes) const;

  // The stream waits for the slot's first chunk. REQUIRES, as below: check().
  CUresult wait_first(const wire::RingSlot& slot, CUstream stream) const;
  // Chunk for chunk, as they come.
  CUresult read(const wire::RingSlot& slot, CUdeviceptr to, CUstream stream) const;
  // Chunk for chunk, each told as soon as it is there.
  CUresult write(const wire::RingSlot& slot, CUdeviceptr from, CUstream stream) const;

 private:
  struct Ring {
    wire::StageRingShape shape;
    char* memory = nullptr;
    CUdeviceptr words = 0;  // the memory as streams name it
  };
  void unmap(const Ring& ring);

  CudaContext& cuda_;
  const StreamWords words_;
  std::map<std::uint64_t, Ring> rings_;
};

}  // namespace fairlead
