// DeviceObjects' memory: ranges of addresses, what is mapped in them, and how room is made.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "runtime/device_server/device_objects.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMapStep = 64 << 20;     // device memory is taken from the driver in such pieces
constexpr std::uint64_t kBounceBytes = 8 << 20;  // compaction, when a part moves by less than its size
constexpr std::uint64_t kWorthDirectMove = 1 << 20;
constexpr std::uint64_t kSmallestFencedRange = std::uint64_t{4}
                                               << 30;  // from here on only an address's upper half is masked
constexpr std::uint64_t kUnusedPieces = 2;  // of a range, at most: half used at the heap's end, half used for variables
constexpr std::uint64_t kFirstVariableRequest = std::uint64_t{1} << 63;

std::uint64_t size_of(Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.count());
}
Bytes bytes_of(std::uint64_t size) {
  return Bytes(static_cast<std::int64_t>(size));
}

// So small that kUnusedPieces of all ranges together stay within DeviceObjects::slack().
std::uint64_t piece_bytes(const CudaContext& cuda, std::uint64_t device) {
  const std::uint64_t step = size_of(cuda.mapping_granularity());
  const std::uint64_t most = DeviceObjects::slack(device) / (kUnusedPieces * DeviceObjects::kMaxRanges);
  return std::clamp(std::bit_floor(std::max<std::uint64_t>(most, 1)), step, std::max(step, kMapStep));
}

}  // namespace

DeviceObjects::DeviceObjects(CudaContext& cuda, const ObjectCacheOptions& options, AddressSpaces spaces)
    : cuda_(cuda),
      options_(options),
      cache_(options),
      spaces_(spaces),
      pieces_(cuda, piece_bytes(cuda, size_of(options.device))) {}

Result<std::unique_ptr<DeviceObjects>> DeviceObjects::create(CudaContext& cuda, const ObjectCacheOptions& options,
                                                             AddressSpaces spaces) {
  std::unique_ptr<DeviceObjects> objects(new DeviceObjects(cuda, options, spaces));
  auto copies = CopyStreams::create(cuda);
  if (!copies) return fail(copies.error());
  objects->copies_ = *std::move(copies);
  if (spaces == AddressSpaces::kPerTenant) return objects;
  // A power of two, aligned to itself: an address is inside when its upper bits are those of the base.
  const Bytes span = bytes_of(std::bit_ceil(std::max(size_of(options.device), kMapStep)));
  const auto base = cuda.reserve_addresses(span, span);
  if (!base) return fail(base.error());
  objects->ranges_.push_back({.base = *base, .own = {}, .fenced = nullptr});
  return objects;
}

Result<DeviceObjects::RangeIndex> DeviceObjects::add_range() {
  FL_CHECK(spaces_ == AddressSpaces::kPerTenant, "a second range where there is one for all");
  if (ranges_.size() >= kMaxRanges) {
    return fail(Errc::kResourceExhausted, "the device server has {} tenants, which is the most it serves in its life",
                kMaxRanges);
  }
  const std::uint64_t most = size_of(options_.device) + 2 * kUnusedPieces * pieces_.piece_bytes();
  auto range =
      AddressRange::reserve(cuda_, pieces_, std::bit_ceil(std::max(most, kSmallestFencedRange)), ranges_.size());
  if (!range) return fail(range.error());
  const CUdeviceptr base = (*range)->base();
  ranges_.push_back({.base = base, .own = {}, .fenced = *std::move(range)});
  const std::uint64_t full = (size_of(options_.device) + pieces_.piece_bytes() - 1) / pieces_.piece_bytes();
  pieces_.set_limit(full + kUnusedPieces * ranges_.size());
  return static_cast<RangeIndex>(ranges_.size() - 1);
}

Bytes DeviceObjects::mapped() const {
  if (spaces_ == AddressSpaces::kPerTenant) return bytes_of(pieces_.taken() * pieces_.piece_bytes());
  return bytes_of(ranges_[0].own.size());
}

// Counted by the cache as temporaries of a request that never ends.
Result<CUdeviceptr> DeviceObjects::reserve_variables(Instant now, RangeIndex index, std::uint64_t bytes) {
  AddressRange& range = *ranges_[index].fenced;
  const std::uint64_t most = std::max(kVariables, size_of(options_.device) / 16);
  const std::uint64_t size = (bytes + AddressRange::kVariablesAlignment - 1) / AddressRange::kVariablesAlignment *
                             AddressRange::kVariablesAlignment;
  if (size > most - std::min(most, range.variable_bytes())) {
    return fail(Errc::kTooLarge,
                "the module's variables have {} bytes; those of all modules of a tenant may have {}, {} are taken",
                bytes, most, range.variable_bytes());
  }
  CacheActions actions;
  const RequestId request(kFirstVariableRequest + variable_requests_++);
  if (Status taken = cache_.acquire(now, request, {}, bytes_of(size), actions); !taken) {
    return fail(taken.error());
  }
  Status done = carry_out(actions);
  const auto grown = [&] { return range.grow_variables(); };
  while (done) {
    if (const auto address = range.place_variables(bytes)) return *address;
    bool mapped = grown();
    const auto enough = [&] { return mapped || (mapped = grown()); };
    if (!mapped) done = shrink_others(index, enough);
    if (done && !mapped) done = compact_others(kMaxRanges, enough);
    if (done && !mapped)
      done = fail(Errc::kResourceExhausted, "the driver has no {} bytes of device memory more", bytes);
  }
  CacheActions gone;
  cache_.release(request, false, gone);
  return fail(done.error());
}

Status DeviceObjects::fill_variables(CUdeviceptr address, std::uint64_t bytes, const VariablePieces& pieces) {
  const CUstream stream = copies_->stream(CopyLane::kSmall);
  CUresult code = cuda_.fill_zero(address, bytes, stream);
  for (const auto& piece : pieces) {
    if (code == CUDA_SUCCESS)
      code = cuda_.copy_in(address + piece.offset, piece.bytes.data(), piece.bytes.size(), stream);
  }
  if (Status copied = cuda_.check(code, "copy a module's variables"); !copied) return copied;
  return cuda_.synchronize(stream);
}

Result<std::uint64_t> DeviceObjects::allocate(RangeIndex index, Bytes bytes) {
  Range& range = ranges_[index];
  RangeAllocator& heap = range.heap();
  const std::uint64_t size = RangeAllocator::round_up(size_of(bytes));
  if (const auto offset = heap.allocate(size)) return *offset;
  const auto fits = [&] { return heap.free_at_end() >= size || map_more(range, size); };
  if (fits()) return *heap.allocate(size);
  if (range.fenced) {
    if (Status shrunk = shrink_others(index, fits); !shrunk) return fail(shrunk.error());
    if (fits()) return *heap.allocate(size);
  }
  if (Status compacted = compact(index); !compacted) return fail(compacted.error());
  if (fits()) return *heap.allocate(size);
  if (range.fenced) {
    if (Status compacted = compact_others(index, fits); !compacted) return fail(compacted.error());
    if (fits()) return *heap.allocate(size);
  }
  return fail(
      Errc::kResourceExhausted,
      "the driver has no {} bytes of device memory more: the device server holds {} of the {} it may, others the "
      "rest of the device",
      bytes.count(), mapped().count(), options_.device.count());
}

// So much that `bytes` fit at the end, in whole steps; up to the limit, rounded up to what can be mapped.
bool DeviceObjects::map_more(Range& range, std::uint64_t bytes) {
  if (range.fenced) return map_pieces(*range.fenced, bytes);
  const auto granularity = size_of(cuda_.mapping_granularity());
  const std::uint64_t limit = (size_of(options_.device) + granularity - 1) / granularity * granularity;
  const std::uint64_t missing = bytes - std::min(bytes, range.own.free_at_end());
  std::uint64_t step = std::max(missing, kMapStep);
  step = (step + granularity - 1) / granularity * granularity;
  step = std::min(step, limit - range.own.size());
  if (step < missing || step == 0) return false;
  if (!cuda_.map_memory(range.base + range.own.size(), bytes_of(step))) return false;
  range.own.grow(step);
  return true;
}

bool DeviceObjects::map_pieces(AddressRange& range, std::uint64_t bytes) {
  while (range.heap().free_at_end() < bytes) {
    if (!range.grow_heap()) return false;
  }
  return true;
}

// Only copies may still use memory that is free: kernels that used it have ended.
Status DeviceObjects::shrink_others(RangeIndex except, const std::function<bool()>& enough) {
  bool waited = false;
  for (RangeIndex i = 0; i < ranges_.size(); ++i) {
    AddressRange& range = *ranges_[i].fenced;
    if (i == except || range.heap().free_at_end() < pieces_.piece_bytes()) continue;
    if (!std::exchange(waited, true)) {
      if (Status idle = copies_->synchronize(); !idle) return idle;
    }
    range.shrink_heap();
    if (enough()) return {};
  }
  return {};
}

Status DeviceObjects::compact_others(RangeIndex except, const std::function<bool()>& enough) {
  for (RangeIndex i = 0; i < ranges_.size(); ++i) {
    if (i == except) continue;
    if (Status compacted = compact(i); !compacted) return compacted;
    ranges_[i].fenced->shrink_heap();
    if (enough()) return {};
  }
  return {};
}

// Kernels, and copies.
Status DeviceObjects::synchronize() {
  if (Status idle = cuda_.synchronize(); !idle) return idle;
  return copies_->synchronize();
}

// All that is placed, in the order of its addresses, moved to the beginning.
Status DeviceObjects::compact(RangeIndex index) {
  if (Status idle = synchronize(); !idle) return idle;
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> parts;
  for (auto& [id, object] : objects_) {
    if (object.placed && object.range == index)
      parts.emplace_back(&object.offset, RangeAllocator::round_up(size_of(object.bytes)));
  }
  for (auto& [request, scratch] : scratches_) {
    if (scratch->range == index && scratch->bytes > Bytes(0))
      parts.emplace_back(&scratch->offset, size_of(scratch->bytes));
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return *a.first < *b.first; });
  const CUdeviceptr base = ranges_[index].base;
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : parts) {
    if (Status moved = move_down(base + *offset, base + end, bytes); !moved) return moved;
    *offset = end;
    end += bytes;
  }
  ranges_[index].heap().reset(end);
  return cuda_.synchronize();
}

// A copy within the device must not overlap itself: it goes in pieces as long as the gap, or through the host where those
// would be many.
Status DeviceObjects::move_down(CUdeviceptr from, CUdeviceptr to, std::uint64_t bytes) {
  const std::uint64_t gap = from - to;
  const CUstream stream = copies_->stream(CopyLane::kSmall);
  if (gap == 0) return {};
  if (gap >= std::min(bytes, kWorthDirectMove)) {
    for (std::uint64_t done = 0; done < bytes; done += gap) {
      const CUresult code = cuda_.copy_within(to + done, from + done, std::min(gap, bytes - done), stream);
      if (Status copied = cuda_.check(code, "move an object"); !copied) return copied;
    }
    return {};
  }
  const auto bounce = cuda_.allocate_pinned(bytes_of(kBounceBytes));
  if (!bounce) return fail(bounce.error());
  CUresult code = CUDA_SUCCESS;
  for (std::uint64_t done = 0; done < bytes && code == CUDA_SUCCESS; done += kBounceBytes) {
    const std::uint64_t piece = std::min(kBounceBytes, bytes - done);
    code = cuda_.copy_out(*bounce, from + done, piece, stream);
    if (code == CUDA_SUCCESS) code = cuda_.copy_in(to + done, *bounce, piece, stream);
  }
  Status moved = cuda_.check(code, "move an object");
  if (moved) moved = cuda_.synchronize();
  cuda_.free_pinned(*bounce);
  return moved;
}

}  // namespace fairlead
