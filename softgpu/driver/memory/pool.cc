#include "softgpu/driver/memory/pool.h"

#include <algorithm>
#include <iterator>

#include "softgpu/mutex.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kGrain = 512;  // what an allocation counts as used is rounded up to this

void raise(std::atomic<std::uint64_t>& high, std::uint64_t value) {
  std::uint64_t seen = high.load();
  while (seen < value && !high.compare_exchange_weak(seen, value)) {
  }
}

PageEntry name_of(const DriverDevice& device, const Share& share) {
  if (share.valid()) return {PageEntry::Kind::kShared, {}, share.name(), 0};
  return {PageEntry::Kind::kPrivate, device.device->self(), {}, 0};
}

std::uint64_t limit_of(const CUmemPoolProps& properties) {
  return properties.maxSize == 0 ? UINT64_MAX : std::max<std::uint64_t>(1, properties.maxSize / kPageBytes);
}

}  // namespace

Pool::Pool(DriverDevice& device, const CUmemPoolProps& its_properties, Share its_share, bool its_imported)
    : owner(device),
      properties(its_properties),
      imported(its_imported),
      share(std::move(its_share)),
      access(1U << device.ordinal),
      heap_(device.device->make_pool_heap(name_of(device, share), limit_of(its_properties))) {}

std::uint64_t Pool::allocate(std::uint64_t bytes) {
  const std::uint64_t address = heap_->allocate(bytes);
  if (address == 0) return 0;
  count_used(address, bytes);
  return address;
}

void Pool::count_used(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t counted = (bytes + kGrain - 1) / kGrain * kGrain;
  const LockGuard guard(mutex_);
  sizes_[address] = counted;
  raise(used_high_, used_.fetch_add(counted) + counted);
  raise(reserved_high_, reserved_bytes());
}

bool Pool::begin_free(std::uint64_t address) {
  const LockGuard guard(mutex_);
  return sizes_.contains(address) && freeing_.insert(address).second;
}

void Pool::end_free(std::uint64_t address) {
  {
    const LockGuard guard(mutex_);
    freeing_.erase(address);
    const auto found = sizes_.find(address);
    used_.fetch_sub(found->second);
    sizes_.erase(found);
  }
  heap_->release(address);  // what is imported is unmapped; what is the pool's own stays mapped
}

std::uint64_t Pool::import(std::uint64_t page, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t count = (offset + bytes + kPageBytes - 1) / kPageBytes;
  const auto runs = owner.device->find_pages({PageEntry::Kind::kShared, {}, share.name(), page}, count);
  const std::uint64_t address = runs.empty() ? 0 : heap_->adopt(runs, offset, bytes);
  if (address != 0) count_used(address, bytes);
  return address;
}

Pools& Pools::instance() {
  static auto* pools = [] {
    on_synchronise([] { instance().after_synchronise(); });
    return new Pools;  // outlives the threads of streams
  }();
  return *pools;
}

CUmemoryPool Pools::add(std::shared_ptr<Pool> pool) {
  CUmemoryPool handle = PoolHandles::take();
  const LockGuard guard(mutex_);
  handles_[pool.get()] = handle;
  pools_.push_back(pool);
  handle->pool = std::move(pool);
  count_.store(pools_.size());
  return handle;
}

CUmemoryPool Pools::default_of(DriverDevice& device) {
  {
    const LockGuard guard(mutex_);
    if (const OfDevice& own = devices_[device.ordinal]; own.first != nullptr) return own.first;
  }
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  CUmemoryPool made = add(std::make_shared<Pool>(device, properties, Share(), false));
  {
    const LockGuard guard(mutex_);
    OfDevice& own = devices_[device.ordinal];
    if (own.first == nullptr) {
      own = {made, made};
      return made;
    }
  }
  destroy(made);  // another thread was first
  const LockGuard guard(mutex_);
  return devices_[device.ordinal].first;
}

CUmemoryPool Pools::current_of(DriverDevice& device) {
  CUmemoryPool first = default_of(device);
  const LockGuard guard(mutex_);
  CUmemoryPool current = devices_[device.ordinal].current;
  return PoolHandles::valid(current) ? current : first;
}

void Pools::set_current(DriverDevice& device, CUmemoryPool pool) {
  default_of(device);
  const LockGuard guard(mutex_);
  devices_[device.ordinal].current = pool;
}

bool Pools::destroy(CUmemoryPool handle) {
  std::shared_ptr<Pool> last;  // destroyed without the lock
  const LockGuard guard(mutex_);
  const int ordinal = handle->pool->owner.ordinal;
  OfDevice& own = devices_[ordinal];
  if (own.first == handle) return false;
  if (own.current == handle) own.current = own.first;
  handles_.erase(handle->pool.get());
  handle->pool->destroyed.store(true);
  last = std::move(handle->pool);
  PoolHandles::give_back(handle);
  if (last->used_bytes() == 0) {
    std::erase(pools_, last);
    count_.store(pools_.size());
  }
  return true;
}

std::shared_ptr<Pool> Pools::find(std::uint64_t address) {
  if (count_.load() == 0) return nullptr;
  const LockGuard guard(mutex_);
  const auto found = std::find_if(pools_.begin(), pools_.end(), [&](const auto& pool) { return pool->owns(address); });
  return found != pools_.end() ? *found : nullptr;
}

CUmemoryPool Pools::handle_of(const Pool& pool) {
  const LockGuard guard(mutex_);
  const auto found = handles_.find(&pool);
  return found != handles_.end() ? found->second : nullptr;
}

void Pools::after_synchronise() {
  if (count_.load() == 0) return;
  std::vector<std::shared_ptr<Pool>> above;  // the last of a pool unmaps its memory: without the lock
  {
    const LockGuard guard(mutex_);
    const auto excess = [](const auto& pool) { return pool->over() || pool->above_threshold(); };
    std::copy_if(pools_.begin(), pools_.end(), std::back_inserter(above), excess);
  }
  if (above.empty()) return;
  for (const auto& pool : above) pool->trim(pool->release_threshold.load());
  const LockGuard guard(mutex_);
  std::erase_if(pools_, [&](const auto& pool) {
    return pool->over() && std::find(above.begin(), above.end(), pool) != above.end();
  });
  count_.store(pools_.size());
}

CUresult allocate_in_stream(Pool& pool, std::uint64_t bytes, const StreamUse& use, CUdeviceptr& address) {
  if (pool.imported) return CUDA_ERROR_INVALID_VALUE;
  Device& device = *pool.owner.device;
  if (bytes > device.total_bytes() || device.faults().take_allocation_failure()) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t allocated = pool.allocate(bytes);
  if (allocated == 0) {
    SOFTGPU_TRY(use.context->synchronise());  // frees that are still in streams, and what pools keep
    allocated = pool.allocate(bytes);
  }
  if (allocated == 0) {
    pool.trim(0);  // what is kept in pieces too small
    allocated = pool.allocate(bytes);
  }
  if (allocated == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  address = allocated;
  return CUDA_SUCCESS;
}

CUresult free_in_stream(const std::shared_ptr<Pool>& pool, std::uint64_t address, const StreamUse& use) {
  if (!pool->begin_free(address)) return CUDA_ERROR_INVALID_VALUE;
  if (use.context->streams().idle()) {
    pool->end_free(address);
    return CUDA_SUCCESS;
  }
  use.context->streams().submit(*use.stream, [pool, address] { pool->end_free(address); });
  return CUDA_SUCCESS;
}

}  // namespace softgpu
