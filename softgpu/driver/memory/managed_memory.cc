#include "softgpu/driver/memory/managed_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "softgpu/device/device.h"
#include "softgpu/device/memory/memory_use.h"
#include "softgpu/driver/context/context.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// How far touch() looks for neighbouring pages that are resident too.
constexpr std::uint64_t kNeighbours = 32;
constexpr std::uint32_t kHostBit = 1U << 31;

// Frees the managed memory of a context with it.
class ContextManaged final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kManagedMemory;
  explicit ContextManaged(CUctx_st& context) : context_(context) {}
  void close() override { ManagedMemory::instance().release_all(&context_); }

 private:
  CUctx_st& context_;
};

// A resident page: which physical page, and the number of its claim, which its entry in the page table carries.
std::uint64_t pack_residence(std::uint64_t physical, std::uint32_t claim) {
  return (physical + 1) << 32 | claim;
}
std::uint64_t physical_of(std::uint64_t residence) {
  return (residence >> 32) - 1;
}
PageEntry entry_of(const DriverDevice& device, std::uint64_t residence) {
  return {PageEntry::Kind::kEvictable, device.device->self(), {}, residence & UINT32_MAX};
}

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;  // all addresses of a process

std::uint64_t pages_for(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

// Memory at an address that is a multiple of the page size; only what is touched costs the computer anything.
std::uint64_t map_aligned(std::uint64_t bytes) {
  void* mapping =
      ::mmap(nullptr, bytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(mapping);
  const std::uint64_t aligned = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (aligned != begin) ::munmap(mapping, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + bytes), begin + kPageBytes - aligned);
  return aligned;
}

}  // namespace

ManagedMemory& ManagedMemory::instance() {
  static auto* memory = new ManagedMemory;  // outlives the threads of streams
  return *memory;
}

std::uint64_t ManagedMemory::allocate(CUcontext context, std::uint64_t bytes, unsigned) {
  if (bytes > kMostBytes) return 0;
  if (context != nullptr) context->part<ContextManaged>();
  const std::uint64_t pages = pages_for(bytes);
  const std::uint64_t address = map_aligned(pages * kPageBytes);
  if (address == 0) return 0;
  auto range = std::make_unique<Range>();
  range->bytes = bytes;
  range->context = context;
  range->advice.resize(pages);
  range->resident = std::vector<std::atomic<std::uint64_t>>(pages * Process::get()->devices().size());
  const LockGuard guard(mutex_);
  ranges_[address] = std::move(range);
  count_.store(ranges_.size());
  return address;
}

bool ManagedMemory::release(std::uint64_t address) {
  const LockGuard guard(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end()) return false;
  const auto range = std::move(found->second);
  ranges_.erase(found);
  count_.store(ranges_.size());
  drop(address, *range);
  return true;
}

void ManagedMemory::release_all(CUcontext context) {
  const LockGuard guard(mutex_);
  std::erase_if(ranges_, [&](const auto& entry) {
    if (entry.second->context != context) return false;
    drop(entry.first, *entry.second);
    return true;
  });
  count_.store(ranges_.size());
}

// Gives up what a range had. Kernels that reached it over the link look again too. REQUIRES: mutex_, exclusive, which
// lookups take, so none finds it.
void ManagedMemory::drop(std::uint64_t address, Range& range) {
  for (std::uint64_t page = 0; page < range.advice.size(); ++page) leave(range, page, nullptr);
  epoch_.fetch_add(1);
  MemoryUse::retire_mapping(address, range.advice.size() * kPageBytes);
}

ManagedMemory::Allocation ManagedMemory::at(std::uint64_t address) const {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  const ReadGuard guard(mutex_);
  const Pages pages = find(address, 1);
  if (pages.range == nullptr) return {};
  return {{pages.begin, pages.begin + pages.range->bytes}, pages.range->context};
}

// The pages of [address, address + bytes), if one allocation contains it.
ManagedMemory::Pages ManagedMemory::find(std::uint64_t address, std::uint64_t bytes) const {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return {};
  --next;
  const std::uint64_t offset = address - next->first;
  if (offset >= next->second->bytes || bytes > next->second->bytes - offset) return {};
  const std::uint64_t last = (offset + std::max<std::uint64_t>(bytes, 1) - 1) / kPageBytes;
  return {next->second.get(), next->first, offset / kPageBytes, last};
}

std::atomic<std::uint64_t>& ManagedMemory::residence(const Range& range, std::uint64_t page, int ordinal) const {
  const std::size_t devices = Process::get()->devices().size();
  return const_cast<Range&>(range).resident[page * devices + static_cast<std::size_t>(ordinal)];
}

bool ManagedMemory::holds(const Range& range, std::uint64_t page, const DriverDevice& device) const {
  const std::uint64_t word = residence(range, page, device.ordinal).load(std::memory_order_acquire);
  return word != 0 && device.device->pool().holds(physical_of(word), entry_of(device, word));
}

Extent ManagedMemory::touch(DriverDevice& device, std::uint64_t address, std::atomic<std::uint64_t>& migrated) {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  {
    const ReadGuard guard(mutex_);
    const Pages pages = find(address, 1);
    if (pages.range == nullptr) return {};
    const Range& range = *pages.range;
    std::uint64_t first = pages.first;
    std::uint64_t last = pages.first;
    if (holds(range, first, device)) {
      const std::uint64_t low = first > kNeighbours ? first - kNeighbours : 0;
      const std::uint64_t high = std::min<std::uint64_t>(last + kNeighbours, range.advice.size() - 1);
      while (first > low && holds(range, first - 1, device)) --first;
      while (last < high && holds(range, last + 1, device)) ++last;
      return {pages.begin + first * kPageBytes, pages.begin + std::min((last + 1) * kPageBytes, range.bytes)};
    }
  }
  const LockGuard guard(mutex_);
  const Pages pages = find(address, 1);
  if (pages.range == nullptr) return {};
  const Advice& advice = pages.range->advice[pages.first];
  const bool elsewhere = advice.preferred != kNowhere || (advice.accessed_by & 1U << device.ordinal) != 0;
  const bool over_link = elsewhere && advice.preferred != device.ordinal;
  if (!over_link && !holds(*pages.range, pages.first, device) && migrate(*pages.range, pages.first, device)) {
    migrated.fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint64_t begin = pages.begin + pages.first * kPageBytes;
  return {begin, std::min(begin + kPageBytes, pages.begin + pages.range->bytes)};
}

// Claims a page of the device; false when the device has none to give, and the page is reached over the link.
// REQUIRES: mutex_, exclusive.
bool ManagedMemory::migrate(Range& range, std::uint64_t page, DriverDevice& device) {
  Control& control = device.device->control();
  const auto claim = static_cast<std::uint32_t>(control.migrations.load() + 1);
  const auto runs = device.device->claim_pages(entry_of(device, claim), 1);
  if (runs.empty()) return false;
  control.migrations.fetch_add(1);
  if (!range.advice[page].read_mostly) leave(range, page, &device);
  residence(range, page, device.ordinal).store(pack_residence(runs.front().first, claim), std::memory_order_release);
  return true;
}

// Takes the page off every device but `except`. REQUIRES: mutex_, exclusive.
void ManagedMemory::leave(Range& range, std::uint64_t page, const DriverDevice* except) {
  for (const auto& device : Process::get()->devices()) {
    if (device.get() == except) continue;
    const std::uint64_t word = residence(range, page, device->ordinal).exchange(0);
    if (word == 0) continue;
    device->device->pool().drop(physical_of(word), entry_of(*device, word));
    epoch_.fetch_add(1);
  }
}

std::uint64_t ManagedMemory::prefetch(std::uint64_t address, std::uint64_t bytes, int location) {
  const LockGuard guard(mutex_);
  const Pages pages = find(address, bytes);
  if (pages.range == nullptr) return 0;
  DriverDevice* device = Process::get()->device(location);
  std::uint64_t moved = 0;
  for (std::uint64_t page = pages.first; page <= pages.last; ++page) {
    pages.range->advice[page].prefetched = location;
    if (device != nullptr) {
      if (!holds(*pages.range, page, *device) && migrate(*pages.range, page, *device)) ++moved;
      continue;
    }
    const auto& devices = Process::get()->devices();
    if (std::any_of(devices.begin(), devices.end(),
                    [&](const auto& each) { return holds(*pages.range, page, *each); })) {
      ++moved;
    }
    leave(*pages.range, page, nullptr);
  }
  return moved;
}

void ManagedMemory::discard(std::uint64_t address, std::uint64_t bytes) {
  const LockGuard guard(mutex_);
  const Pages pages = find(address, bytes);
  if (pages.range == nullptr) return;
  for (std::uint64_t page = pages.first; page <= pages.last; ++page) leave(*pages.range, page, nullptr);
}

void ManagedMemory::advise(std::uint64_t address, std::uint64_t bytes, CUmem_advise advice, int location) {
  const LockGuard guard(mutex_);
  const Pages pages = find(address, bytes);
  if (pages.range == nullptr) return;
  const std::uint32_t bit = location == kHost ? kHostBit : 1U << location;
  for (std::uint64_t page = pages.first; page <= pages.last; ++page) {
    Advice& own = pages.range->advice[page];
    switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY: own.read_mostly = true; break;
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY: own.read_mostly = false; break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: own.preferred = location; break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: own.preferred = kNowhere; break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY: own.accessed_by |= bit; break;
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY: own.accessed_by &= ~bit; break;
    }
  }
}

std::vector<ManagedMemory::Advice> ManagedMemory::advice(std::uint64_t address, std::uint64_t bytes) const {
  const ReadGuard guard(mutex_);
  const Pages pages = find(address, bytes);
  if (pages.range == nullptr) return {};
  const auto first = pages.range->advice.begin() + static_cast<std::ptrdiff_t>(pages.first);
  return {first, first + static_cast<std::ptrdiff_t>(pages.last - pages.first) + 1};
}

}  // namespace softgpu
