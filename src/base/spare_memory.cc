#include "base/spare_memory.h"

#include <malloc.h>

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

}  // namespace fairlead
