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

#include <cstddef>
#include <string>

namespace fairlead {

inline constexpr std::size_t kLargeBlock = 1 << 20;

// For the life of the process. Before much is allocated.
void keep_large_blocks_apart();

std::size_t spare_bytes();  // free, and not yet known to be the kernel's again
void return_spare_memory();

// Gives whole pages of [begin, end) of `block` back at once; they read as zeros then. The bytes from `begin` on that need not be given
// back again: 0 where there is no whole page. For blocks of kLargeBlock and more, whose last use was what lies there: freed in one go
// their pages would be one long turn. Threads: any, `block` being the caller's.
std::size_t release_pages(std::string& block, std::size_t begin, std::size_t end);

// When to return it: once so much more is free than after the last time. Not thread-safe.
class SpareMemory {
 public:
  static constexpr std::size_t kWorthwhile = 2 << 20;  // a tenth of what a node has before its first call

  bool is_worth_returning(std::size_t spare) {
    if (spare < known_) known_ = spare;  // it is in use again
    if (spare - known_ < kWorthwhile) return false;
    known_ = spare;
    return true;
  }

 private:
  std::size_t known_ = 0;  // was spare when it was returned last
};

}  // namespace fairlead
