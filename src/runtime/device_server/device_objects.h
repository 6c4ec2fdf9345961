// The objects and the memory of one device server: carries out what the ObjectCache decided, in one range of addresses
// that is mapped as far as it was ever needed; or, where a server fences several tenants, in a range for each
// (address_range.h), between which physical memory moves. The cache is one for all of them.
//
// What moves bytes of objects is queued on two copy streams (copy_streams.h), and whoever uses device memory waits for the
// copies that touch it: so room that a copy still reads is never written early. When free memory is there but in pieces,
// the device is waited for and everything is moved together; that is rare, since best fit wastes little.
//
// Room for a tenant, in this order: free in its range; a new piece; free pieces at the end of others' ranges; its own range
// moved together; the others' ranges moved together, and then their ends. After that every range has less than a piece
// free at its end, so pieces for what the cache admits, and two more for each range, are always enough.
//
// Threads: the device server's loop.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "decide/residency/object_cache.h"
#include "gpu/context.h"
#include "runtime/device_server/address_range.h"
#include "runtime/device_server/copy_streams.h"
#include "runtime/device_server/range_allocator.h"
#include "runtime/device_server/variable_bytes.h"

namespace fairlead {

enum class AddressSpaces {
  kOne,        // for all that the server runs
  kPerTenant,  // each fenced
};

class DeviceObjects {
 public:
  using RangeIndex = std::uint32_t;
  static constexpr std::size_t kMaxRanges = 128;

  // What several ranges may map beyond their contents, all together; of little memory more, two of the driver's steps each.
  static constexpr std::uint64_t slack(std::uint64_t device) { return device / 16; }

  // With kOne there is range 0 from the start.
  static Result<std::unique_ptr<DeviceObjects>> create(CudaContext& cuda, const ObjectCacheOptions& options,
                                                       AddressSpaces spaces = AddressSpaces::kOne);
  ~DeviceObjects();

  // kPerTenant. kResourceExhausted: kMaxRanges.
  Result<RangeIndex> add_range();
  const AddressRange& range(RangeIndex index) const { return *ranges_[index].fenced; }
  // kPerTenant. Room for a module's variables, until the process ends. A tenant may have a sixteenth of the memory for
  // them, but at least kVariables. kTooLarge, kResourceExhausted.
  static constexpr std::uint64_t kVariables = 64 << 20;
  Result<CUdeviceptr> reserve_variables(Instant now, RangeIndex range, std::uint64_t bytes);
  // Zeros, and the pieces in them. REQUIRES: each piece is within `bytes`.
  Status fill_variables(CUdeviceptr address, std::uint64_t bytes, const VariablePieces& pieces);

  // Its bytes, to be loaded when a call needs it. The mapping keeps them. An object stays in its range.
  Status supply(ObjectId object, Bytes bytes, const UniqueFd& memory, RangeIndex range = 0);
  bool available(ObjectId object) const;  // on the device, or its bytes are here

  struct Scratch {
    RangeIndex range = 0;  // the call's: its objects are there too
    std::uint64_t offset = 0;
    Bytes bytes{0};
  };
  // As ObjectCache::acquire(), and done: copies are queued, wait() waits for them. `copies` says which are the request's.
  Status acquire(Instant now, RequestId request, const std::vector<ObjectNeed>& needs, Scratch& scratch,
                 CopyStreams::Batch& copies);
  // The stream may use what was acquired. All copies of the request are waited for, whatever they were good for.
  CUresult wait(CUstream user, const std::vector<ObjectNeed>& needs, const Scratch& scratch,
                const CopyStreams::Batch& copies);
  const CopyStreams& copies() const { return *copies_; }
  // Objects that were loaded or evicted since the last call, some of them more than once.
  std::vector<ObjectId> take_moved() { return std::exchange(moved_, {}); }
  void release(RequestId request, bool completed, const Scratch& scratch);
  CUdeviceptr address(ObjectId object) const;
  CUdeviceptr address(const Scratch& scratch) const { return ranges_[scratch.range].base + scratch.offset; }

  // Writes an output's bytes where `destination` is.
  Status fetch(ObjectId object, const UniqueFd& destination);
  void drop(ObjectId object);

  const ObjectCache& cache() const { return cache_; }
  Bytes mapped() const;

 private:
  // Where an object's bytes are in this process.
  struct HostCopy {
    void* data = nullptr;
    bool is_mapping = false;  // of shared memory; else pinned memory of our own
    bool is_pinned = false;
  };
  struct Object {
    Bytes bytes{0};
    RangeIndex range = 0;
    std::uint64_t offset = 0;
    bool placed = false;
    HostCopy host;
  };
  struct Retired {
    HostCopy copy;
    Bytes bytes{0};
    CopyPoint readers;
  };

  struct Range {
    CUdeviceptr base = 0;
    RangeAllocator own;                    // with kOne
    std::unique_ptr<AddressRange> fenced;  // with kPerTenant

    RangeAllocator& heap() { return fenced ? fenced->heap() : own; }
  };

  DeviceObjects(CudaContext& cuda, const ObjectCacheOptions& options, AddressSpaces spaces);

  Status take(Scratch& scratch);
  void undo(RequestId request, const std::vector<ObjectNeed>& needs);
  Status carry_out(const CacheActions& actions);
  Status act(const WriteBack& action);
  Status act(const EvictObject& action);
  Status act(const ForgetObject& action);
  Status act(const LoadObject& action);
  Status act(const PlaceOutput& action);
  Result<std::uint64_t> allocate(RangeIndex range, Bytes bytes);
  Status synchronize();
  bool map_more(Range& range, std::uint64_t bytes);
  static bool map_pieces(AddressRange& range, std::uint64_t bytes);
  Status compact(RangeIndex range);
  Status move_down(CUdeviceptr from, CUdeviceptr to, std::uint64_t bytes);
  // Pieces of other ranges become free until `enough` holds.
  Status shrink_others(RangeIndex except, const std::function<bool()>& enough);
  Status compact_others(RangeIndex except, const std::function<bool()>& enough);
  Status place(Object& object);
  void forget_host(Object& object);
  void erase_if_nowhere(ObjectId id);
  void free_retired();
  void free_host(const HostCopy& copy, Bytes bytes);

  CudaContext& cuda_;
  const ObjectCacheOptions options_;
  ObjectCache cache_;
  const AddressSpaces spaces_;
  PiecePool pieces_;
  std::unique_ptr<CopyStreams> copies_;
  std::vector<Range> ranges_;
  std::uint64_t variable_requests_ = 0;
  std::unordered_map<ObjectId, Object> objects_;
  std::unordered_map<RequestId, Scratch*> scratches_;  // of calls that run: they move too
  std::vector<ObjectId> moved_;
  std::deque<Retired> retired_;  // host copies that a queued copy may still use
};

}  // namespace fairlead
