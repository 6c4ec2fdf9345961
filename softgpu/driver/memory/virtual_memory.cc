#include "softgpu/driver/memory/virtual_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "softgpu/device/memory/memory_use.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// How far find() looks for neighbouring pages, in pages: an extent may be smaller than what is accessible.
constexpr std::uint64_t kNeighbours = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;  // all addresses of a process

std::uint64_t page_count_of(const std::vector<PageRun>& runs) {
  std::uint64_t count = 0;
  for (const PageRun& run : runs) count += run.count;
  return count;
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

// Addresses without access: at `hint` if they are free there, else anywhere. 0 when the system has none.
std::uint64_t reserve_addresses(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t hint) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (bytes > kMostBytes || alignment > kMostBytes) return 0;
  if (hint != 0 && hint % alignment == 0) {
    void* wanted = ::mmap(pointer(hint), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (wanted == pointer(hint)) return hint;
    if (wanted != MAP_FAILED) ::munmap(wanted, bytes);
  }
  void* found = ::mmap(nullptr, bytes + alignment, PROT_NONE, kFlags, -1, 0);
  if (found == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(found);
  const std::uint64_t aligned = (begin + alignment - 1) / alignment * alignment;
  if (aligned != begin) ::munmap(found, aligned - begin);
  ::munmap(pointer(aligned + bytes), begin + alignment - aligned);
  return aligned;
}

// The first pages of `runs`, `count` of them.
std::vector<PageRun> first_pages(const std::vector<PageRun>& runs, std::uint64_t count) {
  std::vector<PageRun> first;
  for (const PageRun& run : runs) {
    if (count == 0) break;
    first.push_back({run.first, std::min(run.count, count)});
    count -= first.back().count;
  }
  return first;
}

}  // namespace

PhysicalMemory::PhysicalMemory(DriverDevice& device, const CUmemAllocationProp& its_properties,
                               std::vector<PageRun> pages, Share its_share)
    : owner(device),
      properties(its_properties),
      runs(std::move(pages)),
      share(std::move(its_share)),
      bytes(page_count_of(runs) * kPageBytes) {}

PhysicalMemory::~PhysicalMemory() {
  if (!share.valid()) {
    owner.device->release_pages(runs);
    return;
  }
  share.close();
  owner.device->collect_pages();  // if nobody else holds the share
}

VirtualMemory& VirtualMemory::instance() {
  static auto* memory = new VirtualMemory;  // outlives the threads of streams
  return *memory;
}

VirtualMemory::Reservations::const_iterator VirtualMemory::containing(std::uint64_t address,
                                                                      std::uint64_t bytes) const {
  auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return reservations_.end();
  --next;
  const std::uint64_t offset = address - next->first;
  return offset < next->second.bytes && bytes <= next->second.bytes - offset ? next : reservations_.end();
}

VirtualMemory::Reservations::iterator VirtualMemory::containing(std::uint64_t address, std::uint64_t bytes) {
  const auto found = static_cast<const VirtualMemory*>(this)->containing(address, bytes);
  return reservations_.erase(found, found);  // erases nothing: a const_iterator's iterator
}

CUresult VirtualMemory::reserve(std::uint64_t& address, std::uint64_t bytes, std::uint64_t alignment,
                                std::uint64_t hint) {
  const std::uint64_t reserved = reserve_addresses(bytes, std::max(alignment, kPageBytes), hint);
  if (reserved == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const LockGuard guard(mutex_);
  reservations_[reserved] = {bytes, {}, std::vector<std::uint32_t>(bytes / kPageBytes)};
  count_.store(reservations_.size());
  address = reserved;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::free(std::uint64_t address, std::uint64_t bytes) {
  const LockGuard guard(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!found->second.mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(found);
  count_.store(reservations_.size());
  MemoryUse::retire_mapping(address, bytes);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::map(std::uint64_t address, std::uint64_t bytes, const std::shared_ptr<PhysicalMemory>& memory) {
  if (bytes > memory->bytes) return CUDA_ERROR_INVALID_VALUE;
  const LockGuard guard(mutex_);
  const auto found = containing(address, bytes);
  if (found == reservations_.end()) return CUDA_ERROR_INVALID_VALUE;
  auto& mappings = found->second.mappings;
  auto next = mappings.lower_bound(address + bytes);
  if (next != mappings.begin() && std::prev(next)->second.extent.end > address) return CUDA_ERROR_INVALID_VALUE;
  Window& window = memory->owner.device->window();
  // Readable from now on, for kernels of a mapping that was here before; nobody finds it until access is set.
  if (!window.map(address, first_pages(memory->runs, bytes / kPageBytes))) {
    window.unmap(address, bytes / kPageBytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  mappings[address] = {{address, address + bytes}, memory, 0};
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  std::vector<Mapping> removed;  // destroyed last: what they held is given back without the locks
  const LockGuard guard(mutex_);
  const auto found = containing(address, bytes);
  if (found == reservations_.end()) return CUDA_ERROR_INVALID_VALUE;
  auto& [begin, reservation] = *found;
  const auto first = reservation.mappings.lower_bound(address);
  const auto last = reservation.mappings.lower_bound(address + bytes);
  if (first == last) {  // nothing is mapped there, which hardware accepts, or it is the inside of a mapping
    const bool inside = first != reservation.mappings.begin() && std::prev(first)->second.extent.end > address;
    return inside ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  // The range must be exactly one or more mappings, without a hole.
  std::uint64_t at = address;
  for (auto mapping = first; mapping != last && mapping->first == at; ++mapping) at = mapping->second.extent.end;
  if (at != address + bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto page = static_cast<std::ptrdiff_t>((address - begin) / kPageBytes);
  std::fill_n(reservation.access.begin() + page, bytes / kPageBytes, 0);
  for (auto mapping = first; mapping != last; ++mapping) removed.push_back(std::move(mapping->second));
  reservation.mappings.erase(first, last);
  epoch_.fetch_add(1);
  removed.front().memory->owner.device->window().unmap(address, bytes / kPageBytes);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::set_access(std::uint64_t address, std::uint64_t bytes, std::uint32_t mask, bool allowed) {
  const LockGuard guard(mutex_);
  const auto found = containing(address, bytes);
  if (found == reservations_.end()) return CUDA_ERROR_INVALID_VALUE;
  auto& [begin, reservation] = *found;
  auto mapping = reservation.mappings.upper_bound(address);
  if (mapping == reservation.mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t at = address;
  for (--mapping; at < address + bytes; ++mapping) {
    if (mapping == reservation.mappings.end() || mapping->first > at || mapping->second.extent.end <= at) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    at = mapping->second.extent.end;
  }
  for (std::uint64_t page = (address - begin) / kPageBytes; page < (address + bytes - begin) / kPageBytes; ++page) {
    std::uint32_t& access = reservation.access[page];
    access = allowed ? access | mask : access & ~mask;
  }
  epoch_.fetch_add(1);
  return CUDA_SUCCESS;
}

Extent VirtualMemory::find(int ordinal, std::uint64_t address) const {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  const ReadGuard guard(mutex_);
  const auto found = containing(address, 1);
  if (found == reservations_.end()) return {};
  const auto& [begin, reservation] = *found;
  const auto allowed = [&, &access = reservation.access](std::uint64_t page) {
    return (access[page] & 1U << ordinal) != 0;
  };
  std::uint64_t first = (address - begin) / kPageBytes;
  if (!allowed(first)) return {};
  std::uint64_t last = first;
  const std::uint64_t low = first > kNeighbours ? first - kNeighbours : 0;
  const std::uint64_t high = std::min<std::uint64_t>(last + kNeighbours, reservation.access.size() - 1);
  while (first > low && allowed(first - 1)) --first;
  while (last < high && allowed(last + 1)) ++last;
  return {begin + first * kPageBytes, begin + (last + 1) * kPageBytes};
}

bool VirtualMemory::accessible(std::uint64_t address, std::uint64_t bytes) const {
  const ReadGuard guard(mutex_);
  const auto found = containing(address, bytes);
  if (found == reservations_.end() || bytes == 0) return false;
  const std::uint64_t last = (address + bytes - 1 - found->first) / kPageBytes;
  for (std::uint64_t page = (address - found->first) / kPageBytes; page <= last; ++page) {
    if (found->second.access[page] == 0) return false;
  }
  return true;
}

bool VirtualMemory::contains(std::uint64_t address) const {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const ReadGuard guard(mutex_);
  return containing(address, 1) != reservations_.end();
}

VirtualMemory::Mapping VirtualMemory::mapping_at(std::uint64_t address) const {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  const ReadGuard guard(mutex_);
  const auto found = containing(address, 1);
  if (found == reservations_.end()) return {};
  auto next = found->second.mappings.upper_bound(address);
  if (next == found->second.mappings.begin() || std::prev(next)->second.extent.end <= address) return {};
  Mapping mapping = std::prev(next)->second;
  mapping.access = found->second.access[(address - found->first) / kPageBytes];
  return mapping;
}

MemoryHandles& MemoryHandles::instance() {
  static auto* handles = new MemoryHandles;
  return *handles;
}

CUmemGenericAllocationHandle MemoryHandles::add(std::shared_ptr<PhysicalMemory> memory) {
  const LockGuard guard(mutex_);
  entries_[next_] = {std::move(memory), 1};
  return next_++;
}

CUmemGenericAllocationHandle MemoryHandles::retain(const std::shared_ptr<PhysicalMemory>& memory) {
  {
    const LockGuard guard(mutex_);
    for (auto& [handle, entry] : entries_) {
      if (entry.memory != memory) continue;
      ++entry.references;
      return handle;
    }
  }
  return add(memory);
}

std::shared_ptr<PhysicalMemory> MemoryHandles::find(CUmemGenericAllocationHandle handle) {
  const LockGuard guard(mutex_);
  const auto found = entries_.find(handle);
  return found != entries_.end() ? found->second.memory : nullptr;
}

bool MemoryHandles::release(CUmemGenericAllocationHandle handle) {
  std::shared_ptr<PhysicalMemory> last;  // destroyed without the lock
  const LockGuard guard(mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return false;
  if (--found->second.references > 0) return true;
  last = std::move(found->second.memory);
  entries_.erase(found);
  return true;
}

}  // namespace softgpu
