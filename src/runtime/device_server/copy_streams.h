// The two streams on which a device server copies: what is large on one, the rest on the other. A copy waits for those
// before it that touch the same device memory (pending_copies.h), and whoever else uses the memory waits by wait().
//
// Large copies are queued in pieces of kPieceBytes: an engine of the device that serves both streams takes what they have
// queued in turns, so a piece is what an input waits for (1.4 ms at 12 GB/s; for 2 GB it would be 167 ms).
//
// Host memory needs no order of its own: the size of an object does not change, so all its copies are on one stream, and a
// load stands behind the write-back that it reads.
//
// Threads: the device server's loop.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "decide/residency/pending_copies.h"
#include "gpu/context.h"

namespace fairlead {

class CopyStreams {
 public:
  static constexpr std::uint64_t kPieceBytes = 16 << 20;

  // What was queued from begin() to end(), and events around it on each stream.
  struct Batch {
    std::array<CUevent, kCopyLanes> begin{}, end{};
    CopyPoint last;  // 0: none on that stream
    std::uint64_t large_bytes = 0;
  };

  static Result<std::unique_ptr<CopyStreams>> create(CudaContext& cuda);

  // Whoever queues on a stream himself synchronizes before anybody else can use the memory.
  CUstream stream(CopyLane lane) const { return streams_[static_cast<std::size_t>(lane)]; }

  CUresult copy_in(CUdeviceptr to, const void* from, std::uint64_t bytes);
  CUresult copy_out(void* to, CUdeviceptr from, std::uint64_t bytes);

  void begin(Batch& batch);
  CUresult end();
  Duration elapsed(const Batch& batch) const;  // of the stream that took longer. REQUIRES: it is over

  std::optional<double> bytes_per_second(const Batch& batch) const;  // of its large copies. REQUIRES: as elapsed()

  // What must be over before this memory is used, and a stream that waits for it.
  CopyPoint before(CUdeviceptr address, std::uint64_t bytes) const { return pending_.before(part(address, bytes)); }
  CUresult wait(CUstream user, const CopyPoint& point);
  bool none_pending() const { return pending_.none(); }

  CopyPoint queued() const { return pending_.queued(); }
  CopyPoint over();      // as far as the device says now
  Status synchronize();  // with both streams

 private:
  struct Mark {  // an event behind the copy of that number
    std::uint64_t number;
    CUevent event;
  };

  explicit CopyStreams(CudaContext& cuda) : cuda_(cuda) {}

  static PendingCopies::Part part(CUdeviceptr address, std::uint64_t bytes) { return {address, address + bytes}; }
  CUresult prepare(CopyLane lane, CUdeviceptr address, std::uint64_t bytes);
  CUresult wait(CUstream user, CopyLane lane, std::uint64_t number);
  CUresult mark(CopyLane lane);
  std::deque<Mark>& marks(CopyLane lane) { return marks_[static_cast<std::size_t>(lane)]; }

  CudaContext& cuda_;
  std::array<CUstream, kCopyLanes> streams_{};
  PendingCopies pending_;
  std::array<std::deque<Mark>, kCopyLanes> marks_;  // in order
  std::vector<CUevent> free_events_;
  Batch* batch_ = nullptr;
};

}  // namespace fairlead
