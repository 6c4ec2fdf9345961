#include "runtime/device_server/device_objects.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMapStep = 64 << 20;     // device memory is taken from the driver in such pieces
constexpr std::uint64_t kPinAbove = 1 << 20;     // pinning costs about as much as copying a MiB
constexpr std::uint64_t kBounceBytes = 8 << 20;  // compaction, when a part moves by less than its size
constexpr std::uint64_t kWorthDirectMove = 1 << 20;

std::uint64_t size_of(Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.count());
}
Bytes bytes_of(std::uint64_t size) {
  return Bytes(static_cast<std::int64_t>(size));
}

}  // namespace

Result<std::unique_ptr<DeviceObjects>> DeviceObjects::create(CudaContext& cuda, const ObjectCacheOptions& options) {
  std::unique_ptr<DeviceObjects> objects(new DeviceObjects(cuda, options));
  // A power of two, aligned to itself: an address is inside when its upper bits are those of the base.
  const Bytes span = bytes_of(std::bit_ceil(std::max(size_of(options.device), kMapStep)));
  const auto base = cuda.reserve_addresses(span, span);
  if (!base) return fail(base.error());
  objects->base_ = *base;
  const auto stream = cuda.make_stream();
  if (!stream) return fail(stream.error());
  objects->copy_stream_ = *stream;
  return objects;
}

DeviceObjects::~DeviceObjects() = default;  // memory and context go with the process

Status DeviceObjects::supply(ObjectId id, Bytes bytes, const UniqueFd& memory) {
  if (available(id)) return {};
  struct stat info {};
  if (::fstat(memory.get(), &info) != 0 || info.st_size < bytes.count()) {
    return fail(Errc::kInvalidArgument, "an object of {} bytes came as a file of {}", bytes.count(), info.st_size);
  }
  void* data = ::mmap(nullptr, size_of(bytes), PROT_READ, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) return fail(errno_error(errno, "map an object"));
  Object& object = objects_[id];
  object.bytes = bytes;
  object.host = {.data = data, .is_mapping = true};
  if (size_of(bytes) >= kPinAbove) object.host.is_pinned = cuda_.pin(data, bytes, true);
  return {};
}

bool DeviceObjects::available(ObjectId id) const {
  const auto found = objects_.find(id);
  return found != objects_.end() && (found->second.placed || found->second.host.data != nullptr);
}

CUdeviceptr DeviceObjects::address(ObjectId id) const {
  return base_ + objects_.at(id).offset;
}

Status DeviceObjects::acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Scratch& scratch) {
  // The cache counts whole units, so that what it admits fits without gaps.
  std::vector<ObjectNeed> rounded = needs;
  for (ObjectNeed& need : rounded) need.bytes = bytes_of(RangeAllocator::round_up(size_of(need.bytes)));
  scratch.bytes = bytes_of(RangeAllocator::round_up(size_of(scratch.bytes)));
  CacheActions actions;
  if (Status acquired = cache_.acquire(now, request, rounded, scratch.bytes, actions); !acquired) return acquired;
  for (const ObjectNeed& need : needs) {
    Object& object = objects_[need.object];
    if (object.bytes == Bytes(0)) object.bytes = need.bytes;  // an output
  }
  Status done = carry_out(actions);
  if (done) done = take(scratch);
  if (done) {
    scratches_[request] = &scratch;
  } else {
    undo(request, needs);
  }
  return done;
}

Status DeviceObjects::take(Scratch& scratch) {
  if (scratch.bytes == Bytes(0)) return {};
  const auto offset = allocate(scratch.bytes);
  if (!offset) return fail(offset.error());
  scratch.offset = *offset;
  return {};
}

// The driver had less memory than the cache may use: what was not placed is not there.
void DeviceObjects::undo(RequestId request, const std::vector<ObjectNeed>& needs) {
  CacheActions gone;
  cache_.release(request, false, gone);
  for (const ObjectNeed& need : needs) {
    const auto found = objects_.find(need.object);
    if (found != objects_.end() && !found->second.placed) cache_.remove(need.object, gone);
  }
  const Status done = carry_out(gone);
  FL_CHECK(done.has_value(), "{}", done.error().message);  // frees only
}

void DeviceObjects::release(RequestId request, bool completed, const Scratch& scratch) {
  scratches_.erase(request);
  if (scratch.bytes > Bytes(0)) ranges_.release(scratch.offset, size_of(scratch.bytes));
  CacheActions actions;
  cache_.release(request, completed, actions);
  const Status done = carry_out(actions);
  FL_CHECK(done.has_value(), "{}", done.error().message);  // frees only
  if (!copying_) free_retired();
}

Status DeviceObjects::carry_out(const CacheActions& actions) {
  for (const CacheAction& action : actions) {
    if (Status done = std::visit([this](const auto& a) { return act(a); }, action); !done) return done;
  }
  return {};
}

Status DeviceObjects::act(const WriteBack& action) {
  Object& object = objects_.at(action.object);
  const auto memory = cuda_.allocate_pinned(object.bytes);
  if (!memory) return fail(memory.error());
  object.host = {.data = *memory, .is_pinned = true};
  copying_ = true;
  return cuda_.check(cuda_.copy_out(*memory, address(action.object), size_of(object.bytes), copy_stream_),
                     "write an output back");
}

Status DeviceObjects::act(const EvictObject& action) {
  const auto found = objects_.find(action.object);
  if (found == objects_.end()) return {};
  Object& object = found->second;
  if (object.placed) ranges_.release(object.offset, size_of(object.bytes));
  object.placed = false;
  erase_if_nowhere(action.object);
  return {};
}

Status DeviceObjects::act(const ForgetObject& action) {
  if (const auto found = objects_.find(action.object); found != objects_.end()) forget_host(found->second);
  erase_if_nowhere(action.object);
  return {};
}

Status DeviceObjects::act(const LoadObject& action) {
  Object& object = objects_.at(action.object);
  if (Status placed = place(object); !placed) return placed;
  copying_ = true;
  const CUresult code = cuda_.copy_in(base_ + object.offset, object.host.data, size_of(object.bytes), copy_stream_);
  if (!cache_.on_host(action.object)) forget_host(object);  // no room for it in the host tier
  return cuda_.check(code, "load an object");
}

Status DeviceObjects::act(const PlaceOutput& action) {
  return place(objects_.at(action.object));
}

Status DeviceObjects::place(Object& object) {
  const auto offset = allocate(object.bytes);
  if (!offset) return fail(offset.error());
  object.offset = *offset;
  object.placed = true;
  return {};
}

Result<std::uint64_t> DeviceObjects::allocate(Bytes bytes) {
  if (const auto offset = ranges_.allocate(size_of(bytes))) return *offset;
  if (map_more(RangeAllocator::round_up(size_of(bytes)))) {
    if (const auto offset = ranges_.allocate(size_of(bytes))) return *offset;
  }
  if (Status compacted = compact(); !compacted) return fail(compacted.error());
  map_more(RangeAllocator::round_up(size_of(bytes)));
  if (const auto offset = ranges_.allocate(size_of(bytes))) return *offset;
  return fail(
      Errc::kResourceExhausted,
      "the driver has no {} bytes of device memory more: the device server holds {} of the {} it may, others the "
      "rest of the device",
      bytes.count(), ranges_.size(), options_.device.count());
}

// So much that `bytes` fit at the end, in whole steps; up to the limit, rounded up to what can be mapped.
bool DeviceObjects::map_more(std::uint64_t bytes) {
  const auto granularity = size_of(cuda_.mapping_granularity());
  const std::uint64_t limit = (size_of(options_.device) + granularity - 1) / granularity * granularity;
  const std::uint64_t missing = bytes - std::min(bytes, ranges_.free_at_end());
  std::uint64_t step = std::max(missing, kMapStep);
  step = (step + granularity - 1) / granularity * granularity;
  step = std::min(step, limit - ranges_.size());
  if (step < missing || step == 0) return false;
  if (!cuda_.map_memory(base_ + ranges_.size(), bytes_of(step))) return false;
  ranges_.grow(step);
  return true;
}

// All that is placed, in the order of its addresses, moved to the beginning.
Status DeviceObjects::compact() {
  if (Status idle = cuda_.synchronize(); !idle) return idle;
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> parts;
  for (auto& [id, object] : objects_) {
    if (object.placed) parts.emplace_back(&object.offset, RangeAllocator::round_up(size_of(object.bytes)));
  }
  for (auto& [request, scratch] : scratches_) {
    if (scratch->bytes > Bytes(0)) parts.emplace_back(&scratch->offset, size_of(scratch->bytes));
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return *a.first < *b.first; });
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : parts) {
    if (Status moved = move_down(*offset, end, bytes); !moved) return moved;
    *offset = end;
    end += bytes;
  }
  ranges_.reset(end);
  return cuda_.synchronize();
}

// A copy within the device must not overlap itself: it goes in pieces as long as the gap, or through the host where those
// would be many.
Status DeviceObjects::move_down(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const std::uint64_t gap = from - to;
  if (gap == 0) return {};
  if (gap >= std::min(bytes, kWorthDirectMove)) {
    for (std::uint64_t done = 0; done < bytes; done += gap) {
      const CUresult code =
          cuda_.copy_within(base_ + to + done, base_ + from + done, std::min(gap, bytes - done), copy_stream_);
      if (Status copied = cuda_.check(code, "move an object"); !copied) return copied;
    }
    return {};
  }
  const auto bounce = cuda_.allocate_pinned(bytes_of(kBounceBytes));
  if (!bounce) return fail(bounce.error());
  CUresult code = CUDA_SUCCESS;
  for (std::uint64_t done = 0; done < bytes && code == CUDA_SUCCESS; done += kBounceBytes) {
    const std::uint64_t piece = std::min(kBounceBytes, bytes - done);
    code = cuda_.copy_out(*bounce, base_ + from + done, piece, copy_stream_);
    if (code == CUDA_SUCCESS) code = cuda_.copy_in(base_ + to + done, *bounce, piece, copy_stream_);
  }
  Status moved = cuda_.check(code, "move an object");
  if (moved) moved = cuda_.synchronize();
  cuda_.free_pinned(*bounce);
  return moved;
}

// Into shared memory, through pinned memory: a mapping that is written once is not worth pinning.
Status DeviceObjects::fetch(ObjectId id, const UniqueFd& destination) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return fail(Errc::kNotFound, "the device server does not have object {}", id.value());
  const Object& object = found->second;
  const std::size_t bytes = size_of(object.bytes);
  void* target = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, destination.get(), 0);
  if (target == MAP_FAILED) return fail(errno_error(errno, "map the destination of an output"));
  Status done;
  if (object.placed) {
    done = cuda_.check(cuda_.copy_out(target, address(id), bytes, copy_stream_), "read an output");
    if (done) done = cuda_.synchronize();
  } else {
    done = cuda_.synchronize();  // a write-back may still run
    std::copy_n(static_cast<const char*>(object.host.data), bytes, static_cast<char*>(target));
  }
  ::munmap(target, bytes);
  if (done) cache_.written_back(id);
  return done;
}

void DeviceObjects::drop(ObjectId id) {
  if (!objects_.contains(id)) return;
  CacheActions actions;
  cache_.remove(id, actions);
  const Status done = carry_out(actions);
  FL_CHECK(done.has_value(), "{}", done.error().message);  // frees only
  if (const auto left = objects_.find(id); left != objects_.end() && !left->second.placed) {
    forget_host(left->second);  // supplied and never loaded
    objects_.erase(left);
  }
}

void DeviceObjects::erase_if_nowhere(ObjectId id) {
  const auto found = objects_.find(id);
  if (found != objects_.end() && !found->second.placed && found->second.host.data == nullptr) objects_.erase(found);
}

void DeviceObjects::forget_host(Object& object) {
  if (object.host.data == nullptr) return;
  retired_.push_back({std::exchange(object.host, {}), object.bytes});
  if (!copying_) free_retired();
}

void DeviceObjects::free_retired() {
  for (const Retired& retired : retired_) free_host(retired.copy, retired.bytes);
  retired_.clear();
}

void DeviceObjects::free_host(const HostCopy& copy, Bytes bytes) {
  if (!copy.is_mapping) return cuda_.free_pinned(copy.data);
  if (copy.is_pinned) cuda_.unpin(copy.data);
  ::munmap(copy.data, size_of(bytes));
}

}  // namespace fairlead
