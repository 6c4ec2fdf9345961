// Memory pools: what stream-ordered allocations (cuMemAllocAsync) are taken from.
//
// A pool is a heap of its own that keeps the pages of freed memory, mapped but not live: an access is error 700, and
// the next allocation of that size needs no system call. At synchronisation, what exceeds the release threshold goes
// back to the device.
//
// Order: memory may be used as soon as the allocating call returns, which is earlier than the stream promises. A free
// is an operation of its stream, so memory is never handed out again before the work submitted ahead of it has ended.
//
// A pool whose memory other processes may import claims its pages in the name of a share (device/shares.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "softgpu/driver/handle.h"
#include "softgpu/driver/process.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

namespace softgpu {

class Pool {
 public:
  Pool(DriverDevice& owner, const CUmemPoolProps& its_properties, Share its_share, bool its_imported);

  DriverDevice& owner;
  const CUmemPoolProps properties;
  const bool imported;
  const Share share;  // of a pool that may be exported, or was imported

  // 0 when the device or the pool is full. Thread-safe, as is everything here.
  std::uint64_t allocate(std::uint64_t bytes);
  // Announces a free: false when `address` begins no allocation or is being freed already.
  bool begin_free(std::uint64_t address);
  // Carries it out.
  void end_free(std::uint64_t address);
  bool owns(std::uint64_t address) { return heap_->owns(address); }

  // Maps memory that another process allocated from this (imported) pool; 0 when it is not there.
  std::uint64_t import(std::uint64_t page, std::uint64_t offset, std::uint64_t bytes);

  // Gives unused memory back down to `keep` bytes.
  void trim(std::uint64_t keep) { heap_->trim((keep + kPageBytes - 1) / kPageBytes); }
  bool above_threshold() const {
    return heap_->unused_page_count() != 0 && reserved_bytes() > release_threshold.load();
  }

  // Destroyed, and nothing of it in use.
  bool over() const { return destroyed.load() && used_bytes() == 0; }

  std::uint64_t reserved_bytes() const { return heap_->page_count() * kPageBytes; }
  std::uint64_t used_bytes() const { return used_.load(); }
  void reset_reserved_high() { reserved_high_.store(reserved_bytes()); }
  void reset_used_high() { used_high_.store(used_bytes()); }
  std::uint64_t reserved_high() const { return reserved_high_.load(); }
  std::uint64_t used_high() const { return used_high_.load(); }

  std::atomic<std::uint64_t> release_threshold{0};
  std::atomic<int> reuse[3] = {1, 1, 1};  // CU_MEMPOOL_ATTR_REUSE_*: kept, and always true here
  std::atomic<std::uint32_t> access;      // bit d: device d may use the memory
  std::atomic<bool> destroyed{false};

 private:
  void count_used(std::uint64_t address, std::uint64_t bytes);

  const std::unique_ptr<Heap> heap_;
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_ SOFTGPU_GUARDED_BY(mutex_);  // live allocations
  std::unordered_set<std::uint64_t> freeing_ SOFTGPU_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> used_high_{0};
  std::atomic<std::uint64_t> reserved_high_{0};
};

}  // namespace softgpu

struct CUmemPoolHandle_st {
  static constexpr std::uint32_t kMagic = 0x706F6F6C;  // "pool"
  std::atomic<std::uint32_t> magic{0};
  std::shared_ptr<softgpu::Pool> pool;
};

namespace softgpu {

using PoolHandles = HandlePool<CUmemPoolHandle_st>;

// All pools of the process.
class Pools {
 public:
  static Pools& instance();

  CUmemoryPool add(std::shared_ptr<Pool> pool);
  // The default pool of a device, and the one that cuMemAllocAsync uses.
  CUmemoryPool default_of(DriverDevice& device);
  CUmemoryPool current_of(DriverDevice& device);
  void set_current(DriverDevice& device, CUmemoryPool pool);
  // Ends the handle; its memory stays until it is freed. False for default pools.
  bool destroy(CUmemoryPool pool);

  // The pool that holds the allocation beginning at `address`, or null; its handle if it is not destroyed.
  std::shared_ptr<Pool> find(std::uint64_t address);
  CUmemoryPool handle_of(const Pool& pool);

  // Releases what the thresholds allow.
  void after_synchronise();

 private:
  struct OfDevice {
    CUmemoryPool first = nullptr;
    CUmemoryPool current = nullptr;
  };

  Mutex mutex_;
  std::vector<std::shared_ptr<Pool>> pools_ SOFTGPU_GUARDED_BY(mutex_);  // also destroyed ones with memory in use
  std::unordered_map<const Pool*, CUmemoryPool> handles_ SOFTGPU_GUARDED_BY(mutex_);
  std::unordered_map<int, OfDevice> devices_ SOFTGPU_GUARDED_BY(mutex_);  // by ordinal
  std::atomic<std::size_t> count_{0};
};

// Allocates for the stream; frees in the stream's order. Errors as cuMemAllocFromPoolAsync and cuMemFreeAsync.
CUresult allocate_in_stream(Pool& pool, std::uint64_t bytes, const StreamUse& use, CUdeviceptr& address);
CUresult free_in_stream(const std::shared_ptr<Pool>& pool, std::uint64_t address, const StreamUse& use);

}  // namespace softgpu
