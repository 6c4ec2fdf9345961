#include "softgpu/driver/memory/is_mapped.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace softgpu {

bool is_mapped(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  std::vector<unsigned char> resident(1 << 12);
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(begin), bytes, &end)) return false;
  for (std::uintptr_t at = first; at < end; at += resident.size() * page) {
    const std::size_t length = std::min<std::size_t>(end - at, resident.size() * page);
    if (::mincore(reinterpret_cast<void*>(at), length, resident.data()) != 0 && errno == ENOMEM) return false;
  }
  return true;
}

}  // namespace softgpu
