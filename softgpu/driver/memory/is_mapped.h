#pragma once

#include <cstddef>

namespace softgpu {

// Whether all pages of the range exist, as far as the system says. Thread-safe.
bool is_mapped(const void* begin, std::size_t bytes);

}  // namespace softgpu
