#include "runtime/device_server/device_objects.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kPinAbove = 1 << 20;  // pinning costs about as much as copying a MiB

std::uint64_t size_of(Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.count());
}
Bytes bytes_of(std::uint64_t size) {
  return Bytes(static_cast<std::int64_t>(size));
}

}  // namespace

DeviceObjects::~DeviceObjects() = default;  // memory and context go with the process

Status DeviceObjects::supply(ObjectId id, Bytes bytes, const UniqueFd& memory, RangeIndex range) {
  if (available(id)) return {};
  struct stat info {};
  if (::fstat(memory.get(), &info) != 0 || info.st_size < bytes.count()) {
    return fail(Errc::kInvalidArgument, "an object of {} bytes came as a file of {}", bytes.count(), info.st_size);
  }
  void* data = ::mmap(nullptr, size_of(bytes), PROT_READ, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) return fail(errno_error(errno, "map an object"));
  Object& object = objects_[id];
  object.bytes = bytes;
  object.range = range;
  object.host = {.data = data, .is_mapping = true};
  if (size_of(bytes) >= kPinAbove) object.host.is_pinned = cuda_.pin(data, bytes, true);
  return {};
}

bool DeviceObjects::available(ObjectId id) const {
  const auto found = objects_.find(id);
  return found != objects_.end() && (found->second.placed || found->second.host.data != nullptr);
}

CUdeviceptr DeviceObjects::address(ObjectId id) const {
  const Object& object = objects_.at(id);
  return ranges_[object.range].base + object.offset;
}

Status DeviceObjects::acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Scratch& scratch,
                              CopyStreams::Batch& copies) {
  // The cache counts whole units, so that what it admits fits without gaps.
  std::vector<ObjectNeed> rounded = needs;
  for (ObjectNeed& need : rounded) need.bytes = bytes_of(RangeAllocator::round_up(size_of(need.bytes)));
  scratch.bytes = bytes_of(RangeAllocator::round_up(size_of(scratch.bytes)));
  CacheActions actions;
  if (Status acquired = cache_.acquire(now, request, rounded, scratch.bytes, actions); !acquired) return acquired;
  for (const ObjectNeed& need : needs) {
    Object& object = objects_[need.object];
    if (object.bytes == Bytes(0)) {  // an output
      object.bytes = need.bytes;
      object.range = scratch.range;
    }
    FL_CHECK(object.range == scratch.range, "object {} is in range {}, the call's is {}", need.object.value(),
             object.range, scratch.range);
  }
  copies_->begin(copies);
  Status done = carry_out(actions);
  if (done) done = take(scratch);
  const CUresult ended = copies_->end();
  if (done) done = cuda_.check(ended, "load objects");
  if (done) {
    scratches_[request] = &scratch;
  } else {
    undo(request, needs);
  }
  return done;
}

CUresult DeviceObjects::wait(CUstream user, const std::vector<ObjectNeed>& needs, const Scratch& scratch,
                             const CopyStreams::Batch& copies) {
  if (copies_->none_pending()) return CUDA_SUCCESS;
  CopyPoint point = copies.last;
  for (const ObjectNeed& need : needs) point.include(copies_->before(address(need.object), size_of(need.bytes)));
  if (scratch.bytes > Bytes(0)) point.include(copies_->before(address(scratch), size_of(scratch.bytes)));
  return copies_->wait(user, point);
}

Status DeviceObjects::take(Scratch& scratch) {
  if (scratch.bytes == Bytes(0)) return {};
  const auto offset = allocate(scratch.range, scratch.bytes);
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
  if (scratch.bytes > Bytes(0)) ranges_[scratch.range].heap().release(scratch.offset, size_of(scratch.bytes));
  CacheActions actions;
  cache_.release(request, completed, actions);
  const Status done = carry_out(actions);
  FL_CHECK(done.has_value(), "{}", done.error().message);  // frees only
  free_retired();
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
  return cuda_.check(copies_->copy_out(*memory, address(action.object), size_of(object.bytes)), "write an output back");
}

Status DeviceObjects::act(const EvictObject& action) {
  const auto found = objects_.find(action.object);
  if (found == objects_.end()) return {};
  Object& object = found->second;
  if (object.placed) ranges_[object.range].heap().release(object.offset, size_of(object.bytes));
  object.placed = false;
  moved_.push_back(action.object);
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
  moved_.push_back(action.object);
  const CUresult code = copies_->copy_in(address(action.object), object.host.data, size_of(object.bytes));
  if (!cache_.on_host(action.object)) forget_host(object);  // no room for it in the host tier
  return cuda_.check(code, "load an object");
}

Status DeviceObjects::act(const PlaceOutput& action) {
  return place(objects_.at(action.object));
}

Status DeviceObjects::place(Object& object) {
  const auto offset = allocate(object.range, object.bytes);
  if (!offset) return fail(offset.error());
  object.offset = *offset;
  object.placed = true;
  return {};
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
    done = cuda_.check(copies_->copy_out(target, address(id), bytes), "read an output");
    if (done) done = synchronize();
  } else {
    done = synchronize();  // a write-back may still run
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
  retired_.push_back({std::exchange(object.host, {}), object.bytes, copies_->queued()});
  free_retired();
}

void DeviceObjects::free_retired() {
  const CopyPoint over = copies_->over();
  for (; !retired_.empty() && retired_.front().readers.reached_by(over); retired_.pop_front()) {
    free_host(retired_.front().copy, retired_.front().bytes);
  }
}

void DeviceObjects::free_host(const HostCopy& copy, Bytes bytes) {
  if (!copy.is_mapping) return cuda_.free_pinned(copy.data);
  if (copy.is_pinned) cuda_.unpin(copy.data);
  ::munmap(copy.data, size_of(bytes));
}

}  // namespace fairlead
