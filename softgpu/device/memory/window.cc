#include "softgpu/device/memory/window.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "softgpu/check.h"
#include "softgpu/device/mapping_guard.h"
#include "softgpu/device/memory/memory_use.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

// Addresses cost nothing, so a fragmented window is avoided by making it larger than the device.
constexpr std::uint64_t kWindowsPerCapacity = 8;

void* reserve_addresses(std::uint64_t bytes) {
  return ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

Result<std::unique_ptr<Window>> Window::reserve(std::uint64_t capacity, int memory_file) {
  void* base = MAP_FAILED;
  std::uint64_t bytes = capacity * kWindowsPerCapacity;
  while (base == MAP_FAILED && bytes >= capacity) {
    base = reserve_addresses(bytes + kPageBytes);
    if (base == MAP_FAILED) bytes /= 2;
  }
  if (base == MAP_FAILED) {
    return failure("cannot reserve " + std::to_string(capacity >> 20) + " MiB of addresses (" + std::strerror(errno) +
                   "); raise `ulimit -v` or set SOFTGPU_MEMORY_SCALE");
  }
  const std::uint64_t aligned = (reinterpret_cast<std::uint64_t>(base) + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uint64_t pages = bytes / kPageBytes;
  void* table =
      ::mmap(nullptr, pages * sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return failure(std::string("cannot map the window's page table: ") + std::strerror(errno));
  guard_mapping(reinterpret_cast<void*>(aligned), bytes);
  return std::unique_ptr<Window>(new Window(aligned, pages, static_cast<Page*>(table), memory_file));
}

Extent Window::find(std::uint64_t address) const {
  if (!contains(address)) return find_host(address);
  const Page& entry = page(address);
  if (const Slab* slab = entry.slab.load(std::memory_order_acquire); slab != nullptr) {
    const std::uint64_t base = slab->base.load(std::memory_order_acquire);
    const std::uint64_t block = (address - base) / slab->block_bytes;
    if (block >= slab->sizes.size()) return {};
    const std::uint64_t begin = base + block * slab->block_bytes;
    const std::uint64_t end = begin + slab->sizes[block].load(std::memory_order_acquire);
    return address < end ? Extent{begin, end} : Extent{};
  }
  const std::uint64_t end = entry.end.load(std::memory_order_acquire);
  const std::uint64_t begin = entry.begin.load(std::memory_order_acquire);
  return address >= begin && address < end ? Extent{begin, end} : Extent{};
}

bool Window::covers(std::uint64_t address, std::uint64_t bytes) const {
  const Extent extent = find(address);
  return extent.end != 0 && bytes <= extent.end - address;
}

std::uint64_t Window::take_addresses(std::uint64_t count) {
  const LockGuard guard(addresses_mutex_);
  const auto fits = [&](const auto& range) { return range.second >= count; };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (found == free_.end()) return 0;
  const auto [first, available] = *found;
  free_.erase(found);
  if (available > count) free_[first + count] = available - count;
  return base_ + first * kPageBytes;
}

void Window::return_addresses(std::uint64_t address, std::uint64_t count) {
  const LockGuard guard(addresses_mutex_);
  auto [range, inserted] = free_.emplace(window_page(address), count);
  // Returned twice, addresses would be taken twice, and one allocation mapped over another.
  SOFTGPU_CHECK(inserted && (std::next(range) == free_.end() || range->first + count <= std::next(range)->first));
  if (const auto next = std::next(range); next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto previous = std::prev(range);
  SOFTGPU_CHECK(previous->first + previous->second <= range->first);
  if (previous->first + previous->second == range->first) {
    previous->second += range->second;
    free_.erase(range);
  }
}

bool Window::map(std::uint64_t address, const std::vector<PageRun>& runs) {
  for (const PageRun& run : runs) {
    void* mapping = ::mmap(reinterpret_cast<void*>(address), run.count * kPageBytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, memory_file_, static_cast<off_t>(run.first * kPageBytes));
    if (mapping == MAP_FAILED) return false;
    address += run.count * kPageBytes;
  }
  return true;
}

void Window::unmap(std::uint64_t address, std::uint64_t count) {
  const int protection = MemoryUse::none() ? PROT_NONE : PROT_READ | PROT_WRITE;
  ::mmap(reinterpret_cast<void*>(address), count * kPageBytes, protection,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void Window::add_extent(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at = address - address % kPageBytes; at < address + bytes; at += kPageBytes) {
    page(at).begin.store(address, std::memory_order_release);
    page(at).end.store(address + bytes, std::memory_order_release);
  }
}

void Window::remove_extent(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at = address - address % kPageBytes; at < address + bytes; at += kPageBytes) {
    page(at).end.store(0, std::memory_order_release);
  }
  invalidate();
}

void Window::set_slab(std::uint64_t address, Slab* slab) {
  page(address).slab.store(slab, std::memory_order_release);
  invalidate();
}

Slab* Window::slab_at(std::uint64_t address) const {
  return contains(address) ? page(address).slab.load(std::memory_order_acquire) : nullptr;
}

void Window::add_host(std::uint64_t address, std::uint64_t bytes) {
  const LockGuard guard(host_mutex_);
  host_[address] = address + bytes;
  host_count_.store(host_.size());
}

void Window::remove_host(std::uint64_t address) {
  const LockGuard guard(host_mutex_);
  host_.erase(address);
  host_count_.store(host_.size());
  invalidate();
}

Extent Window::find_host(std::uint64_t address) const {
  if (host_count_.load() == 0) return {};
  const ReadGuard guard(host_mutex_);
  auto next = host_.upper_bound(address);
  if (next == host_.begin()) return {};
  --next;
  return address < next->second ? Extent{next->first, next->second} : Extent{};
}

}  // namespace softgpu
