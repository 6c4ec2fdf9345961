#include "base/spare_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace fairlead {

void keep_large_blocks_apart() {
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
}

std::size_t spare_bytes() {
  return ::mallinfo2().fordblks;
}

void return_spare_memory() {
  ::malloc_trim(0);
}

std::size_t release_pages(std::string& block, std::size_t begin, std::size_t end) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<std::uintptr_t>(block.data());
  const std::uintptr_t from = (base + begin + page - 1) / page * page;
  const std::uintptr_t to = (base + end) / page * page;
  if (from >= to || ::madvise(block.data() + (from - base), to - from, MADV_DONTNEED) != 0) return 0;
  return to - base - begin;
}

}  // namespace fairlead
