// Copies and fills: rectangles of bytes, checked before they are queued.
#pragma once

#include <cstdint>
#include <functional>

#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu {

// `height` rows of `width` bytes, or `depth` planes of them; a linear copy has one row.
struct Rectangle {
  std::uint64_t target = 0;
  std::uint64_t target_pitch = 0;
  std::uint64_t source = 0;
  std::uint64_t source_pitch = 0;
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t target_slice = 0;  // bytes from plane to plane
  std::uint64_t source_slice = 0;
  std::uint64_t depth = 1;
};

// The sides that an entry point's name fixes: a device side may not be memory the driver does not know.
enum class Sides { kAny, kTargetDevice, kSourceDevice, kBothDevice };

// Copies before returning, in the order of the default stream.
CUresult copy_now(const Rectangle& rectangle, Sides sides);

// Queues the copy. Pageable memory is done with when the call returns, as on hardware: small sources are copied aside,
// anything else waits for the stream.
CUresult copy_async(const Rectangle& rectangle, Sides sides, CUstream stream);

// Fills rows with a pattern of 1, 2 or 4 bytes; `width` counts patterns.
struct Fill {
  std::uint64_t target = 0;
  std::uint64_t pitch = 0;
  std::uint32_t pattern = 0;
  unsigned pattern_bytes = 1;
  std::uint64_t width = 0;
  std::uint64_t height = 1;
};
CUresult fill_now(const Fill& fill);
CUresult fill_async(const Fill& fill, CUstream stream);

// What executes a copy or fill of a graph's node; may be called many times. Checked as for the calls above; a copy of no
// bytes is INVALID_VALUE. `context` is the one whose device and faults it belongs to.
CUresult prepare_copy(const CUDA_MEMCPY3D& copy, CUcontext context, std::function<void()>& run);
CUresult prepare_fill(const Fill& fill, CUcontext context, std::function<void()>& run);

}  // namespace softgpu
