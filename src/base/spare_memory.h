// What the allocator keeps after a flood goes back to the kernel. Two causes, two cures:
//
//   - glibc serves large blocks from mappings of their own, which are gone once freed, but raises the bound for "large" to the
//     largest that was freed, 32 MiB at most: the next large ones share heaps, and one small block above keeps all below it.
//     keep_large_blocks_apart() fixes the bound.
//   - Small blocks of many connections leave free pages in the middle of a heap. return_spare_memory() gives those back; it walks
//     all heaps, so SpareMemory says when that is worthwhile.
//
// Example, 2,000 connections that send 2 kB of a body each, then leave: 18 MiB before, 41 after; with both, 26.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace fairlead {

inline constexpr std::size_t kLargeBlock = 1 << 20;

// For the life of the process. Before much is allocated.
void keep_large_blocks_apart();

std::size_t spare_bytes();  // free in the heaps; what was returned to the kernel counts
void return_spare_memory();

// Gives whole pages of [begin, end) of `block` back at once; they read as zeros then. The bytes from `begin` on that need not be given
// back again: 0 where there is no whole page. For blocks of kLargeBlock and more, whose last use was what lies there: freed in one go
// their pages would be one long turn. Threads: any, `block` being the caller's.
std::size_t release_pages(std::string& block, std::size_t begin, std::size_t end);

// When to return it: once the process has so much more in memory than after the last time, and as much is free. What is free alone does
// not say it: what was returned still counts, and is in memory again once a flood that came and went between two looks has used it.
//
// Example: 20 MiB are free and returned. The next flood uses them, and frees them: 20 MiB are free, as before, and 20 MiB more in memory.
//
// Not thread-safe.
class SpareMemory {
 public:
  static constexpr std::size_t kWorthwhile = 2 << 20;  // a tenth of what a node has before its first call

  // Bytes: free in the heaps, and of the process in memory.
  bool is_worth_returning(std::size_t spare, std::size_t resident) {
    known_ = std::min(known_, resident);
    return resident - known_ >= kWorthwhile && spare >= kWorthwhile;
  }
  void returned(std::size_t resident) { known_ = resident; }  // bytes in memory, right afterwards

 private:
  std::size_t known_ = 0;  // in memory when it was returned last, or at least since
};

}  // namespace fairlead
