#include "runtime/device_server/address_range.h"

#include "base/check.h"
#include "base/log.h"

namespace fairlead {
namespace {

// Between programs and libraries, where Linux puts nothing by itself: so a range lies where the one of that index lay in the
// server before, and modules fenced for it are the same. Nothing else depends on it; a range that cannot be there is
// elsewhere.
constexpr CUdeviceptr kFirstRange = CUdeviceptr{1} << 46;

Bytes bytes_of(std::uint64_t size) {
  return Bytes(static_cast<std::int64_t>(size));
}

}  // namespace

std::optional<CUmemGenericAllocationHandle> PiecePool::take() {
  if (taken_ >= limit_) return std::nullopt;
  if (free_.empty()) {
    const auto made = cuda_.create_memory(bytes_of(piece_bytes_));
    if (!made) return std::nullopt;
    free_.push_back(*made);
  }
  const CUmemGenericAllocationHandle piece = free_.back();
  if (Status zeros = overwrite(piece); !zeros) {
    spdlog::warn("device memory is not handed on: {}", zeros.error().message);
    return std::nullopt;
  }
  free_.pop_back();
  ++taken_;
  return piece;
}

Status PiecePool::overwrite(CUmemGenericAllocationHandle piece) {
  if (stream_ == nullptr) {
    const auto stream = cuda_.make_stream();
    if (!stream) return fail(stream.error());
    const auto address = cuda_.reserve_addresses(bytes_of(piece_bytes_), bytes_of(piece_bytes_));
    if (!address) return fail(address.error());
    stream_ = *stream;
    in_no_range_ = *address;
  }
  if (Status mapped = cuda_.map(in_no_range_, bytes_of(piece_bytes_), piece); !mapped) return mapped;
  Status zeros = cuda_.check(cuda_.fill_zero(in_no_range_, piece_bytes_, stream_), "overwrite device memory");
  if (zeros) zeros = cuda_.synchronize(stream_);
  Status unmapped = cuda_.unmap(in_no_range_, bytes_of(piece_bytes_));
  return zeros ? unmapped : zeros;
}

void PiecePool::give_back(CUmemGenericAllocationHandle piece) {
  FL_CHECK(taken_ > 0, "a piece comes back that nobody took");
  --taken_;
  free_.push_back(piece);
}

// The range is the middle of what is reserved: on both sides there is more than the guard that nobody else can be given.
Result<std::unique_ptr<AddressRange>> AddressRange::reserve(CudaContext& cuda, PiecePool& pool, std::uint64_t span,
                                                            std::size_t index) {
  FL_CHECK(span % pool.piece_bytes() == 0, "{} bytes in pieces of {}", span, pool.piece_bytes());
  const std::uint64_t guard = static_cast<std::uint64_t>(cuda.mapping_granularity().count());
  FL_CHECK(guard >= kGuardBytes, "memory is mapped in steps of {} bytes, the guard has {}", guard, kGuardBytes);
  const CUdeviceptr hint = kFirstRange + 3 * span * index;
  const auto start = cuda.reserve_addresses(bytes_of(2 * span + guard), bytes_of(span), hint);
  if (!start) return fail(start.error());
  return std::unique_ptr<AddressRange>(new AddressRange(cuda, pool, *start + span, span));
}

std::optional<CUmemGenericAllocationHandle> AddressRange::map_piece(std::uint64_t offset) {
  if (mapped() + pool_.piece_bytes() > span_) return std::nullopt;
  const auto piece = pool_.take();
  if (!piece || cuda_.map(base_ + offset, bytes_of(pool_.piece_bytes()), *piece)) return piece;
  pool_.give_back(*piece);
  return std::nullopt;
}

bool AddressRange::grow_heap() {
  const auto piece = map_piece(heap_.size());
  if (!piece) return false;
  heap_pieces_.push_back(*piece);
  heap_.grow(pool_.piece_bytes());
  return true;
}

void AddressRange::shrink_heap() {
  while (heap_.free_at_end() >= pool_.piece_bytes()) {
    const std::uint64_t offset = heap_.size() - pool_.piece_bytes();
    if (Status unmapped = cuda_.unmap(base_ + offset, bytes_of(pool_.piece_bytes())); !unmapped) {
      spdlog::warn("device memory stays where it is: {}", unmapped.error().message);
      return;
    }
    pool_.give_back(heap_pieces_.back());
    heap_pieces_.pop_back();
    heap_.shrink(pool_.piece_bytes());
  }
}

std::optional<CUdeviceptr> AddressRange::place_variables(std::uint64_t bytes) {
  const std::uint64_t size = (bytes + kVariablesAlignment - 1) / kVariablesAlignment * kVariablesAlignment;
  if (variables_used_ + size > variables_mapped_) return std::nullopt;
  variables_used_ += size;
  return base_ + span_ - variables_used_;
}

bool AddressRange::grow_variables() {
  if (!map_piece(span_ - variables_mapped_ - pool_.piece_bytes())) return false;
  variables_mapped_ += pool_.piece_bytes();
  return true;
}

}  // namespace fairlead
