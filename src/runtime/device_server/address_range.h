// The addresses of one tenant in a device server that serves several, and the physical memory behind them. A range is a
// power of two long and aligned to it, so that the fence (src/gpu/fence) can keep a tenant's kernels inside, and what lies next
// to it is reserved and never mapped. Objects and scratch memory grow from its beginning, module variables, which
// never move, from its end. Physical memory comes in pieces of one size: what a range has free at its heap's end goes back
// to the pool, and another range maps it.
//
//   base                                                   base + span
//     │ heap: piece, piece, piece │ ... unmapped ... │ piece: variables │ guard
//
// A piece is overwritten with zeros before a range maps it, not after: its last user may have been another tenant, and a
// kernel that runs already may read all of its range.
//
// Threads: the device server's loop.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gpu/context.h"
#include "runtime/device_server/range_allocator.h"

namespace fairlead {

class PiecePool {
 public:
  PiecePool(CudaContext& cuda, std::uint64_t piece_bytes) : cuda_(cuda), piece_bytes_(piece_bytes) {}

  std::uint64_t piece_bytes() const { return piece_bytes_; }
  // So many pieces may be out at a time.
  void set_limit(std::uint64_t pieces) { limit_ = pieces; }
  std::uint64_t taken() const { return taken_; }

  std::optional<CUmemGenericAllocationHandle> take();  // zeros; none: the limit, or the driver has no more
  void give_back(CUmemGenericAllocationHandle piece);

 private:
  Status overwrite(CUmemGenericAllocationHandle piece);

  CudaContext& cuda_;
  const std::uint64_t piece_bytes_;
  std::uint64_t limit_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<CUmemGenericAllocationHandle> free_;
  CUstream stream_ = nullptr;    // of overwrite(), from its first use on
  CUdeviceptr in_no_range_ = 0;  // where it maps a piece
};

class AddressRange {
 public:
  static constexpr std::uint64_t kGuardBytes = 64 << 10;  // of the fence; at least so much is unmapped around a range
  static constexpr std::uint64_t kVariablesAlignment = 4096;

  // `span`: a power of two, a multiple of the pool's pieces.
  // The `index`th of the process.
  static Result<std::unique_ptr<AddressRange>> reserve(CudaContext& cuda, PiecePool& pool, std::uint64_t span,
                                                       std::size_t index);

  CUdeviceptr base() const { return base_; }
  std::uint64_t span() const { return span_; }
  RangeAllocator& heap() { return heap_; }  // offsets from the base
  std::uint64_t mapped() const { return heap_.size() + variables_mapped_; }
  bool contains(CUdeviceptr address) const { return (address & ~(span_ - 1)) == base_; }

  // One piece more. False: the pool has none.
  bool grow_heap();
  // Pieces that are free at the heap's end go back. REQUIRES: nothing that is queued uses them.
  void shrink_heap();

  // Room that stays for good, aligned to kVariablesAlignment; none: grow_variables() first.
  std::optional<CUdeviceptr> place_variables(std::uint64_t bytes);
  bool grow_variables();
  std::uint64_t variable_bytes() const { return variables_used_; }

 private:
  AddressRange(CudaContext& cuda, PiecePool& pool, CUdeviceptr base, std::uint64_t span)
      : cuda_(cuda), pool_(pool), base_(base), span_(span) {}
  std::optional<CUmemGenericAllocationHandle> map_piece(std::uint64_t offset);

  CudaContext& cuda_;
  PiecePool& pool_;
  const CUdeviceptr base_;
  const std::uint64_t span_;
  RangeAllocator heap_;
  std::vector<CUmemGenericAllocationHandle> heap_pieces_;  // in the order of their addresses
  std::uint64_t variables_used_ = 0;                       // from the end
  std::uint64_t variables_mapped_ = 0;
};

}  // namespace fairlead
