// The objects and the memory of one device server: carries out what the ObjectCache decided, in one range of addresses
// that is mapped as far as it was ever needed.
//
// Everything that moves bytes of objects is queued on one copy stream, in order, and whoever uses the device memory waits
// for an event behind it: so room that a copy still reads is never written early. When free memory is there but in pieces,
// the device is waited for and everything is moved together; that is rare, since best fit wastes little.
//
// Threads: the device server's loop.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "cuda/context.h"
#include "residency/object_cache.h"
#include "runtime/device_server/range_allocator.h"

namespace fairlead {

class DeviceObjects {
 public:
  static Result<std::unique_ptr<DeviceObjects>> create(CudaContext& cuda, const ObjectCacheOptions& options);
  ~DeviceObjects();

  // Its bytes, to be loaded when a call needs it. The mapping keeps them.
  Status supply(ObjectId object, Bytes bytes, const UniqueFd& memory);
  bool available(ObjectId object) const;  // on the device, or its bytes are here

  struct Scratch {
    std::uint64_t offset = 0;
    Bytes bytes{0};
  };
  // As ObjectCache::acquire(), and done: copies are queued on copy_stream().
  Status acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Scratch& scratch);
  void release(RequestId request, bool completed, const Scratch& scratch);
  CUdeviceptr address(ObjectId object) const;
  CUdeviceptr address(const Scratch& scratch) const { return base_ + scratch.offset; }
  CUstream copy_stream() const { return copy_stream_; }
  // Whether anything was queued on the copy stream since settled() was last told.
  bool copying() const { return copying_; }
  void settled() { copying_ = false; }

  // Writes an output's bytes where `destination` is.
  Status fetch(ObjectId object, const UniqueFd& destination);
  void drop(ObjectId object);

  const ObjectCache& cache() const { return cache_; }
  Bytes mapped() const { return Bytes(static_cast<std::int64_t>(ranges_.size())); }

 private:
  // Where an object's bytes are in this process.
  struct HostCopy {
    void* data = nullptr;
    bool is_mapping = false;  // of shared memory; else pinned memory of our own
    bool is_pinned = false;
  };
  struct Object {
    Bytes bytes{0};
    std::uint64_t offset = 0;
    bool placed = false;
    HostCopy host;
  };
  struct Retired {
    HostCopy copy;
    Bytes bytes{0};
  };

  DeviceObjects(CudaContext& cuda, const ObjectCacheOptions& options)
      : cuda_(cuda), options_(options), cache_(options) {}

  Status take(Scratch& scratch);
  void undo(RequestId request, const std::vector<ObjectNeed>& needs);
  Status carry_out(const CacheActions& actions);
  Status act(const WriteBack& action);
  Status act(const EvictObject& action);
  Status act(const ForgetObject& action);
  Status act(const LoadObject& action);
  Status act(const PlaceOutput& action);
  Result<std::uint64_t> allocate(Bytes bytes);
  bool map_more(std::uint64_t bytes);
  Status compact();
  Status move_down(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  Status place(Object& object);
  void forget_host(Object& object);
  void erase_if_nowhere(ObjectId id);
  void free_retired();
  void free_host(const HostCopy& copy, Bytes bytes);

  CudaContext& cuda_;
  const ObjectCacheOptions options_;
  ObjectCache cache_;
  CUdeviceptr base_ = 0;
  CUstream copy_stream_ = nullptr;
  RangeAllocator ranges_;
  std::unordered_map<ObjectId, Object> objects_;
  std::unordered_map<RequestId, Scratch*> scratches_;  // of calls that run: they move too
  std::vector<Retired> retired_;                       // host copies that a queued copy may still read
  bool copying_ = false;
};

}  // namespace fairlead
