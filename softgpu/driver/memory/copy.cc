#include "softgpu/driver/memory/copy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/device/memory/memory_use.h"
#include "softgpu/device/time/execution.h"
#include "softgpu/driver/memory/copy_box.h"
#include "softgpu/driver/stream/capture.h"

namespace softgpu {
namespace {

using enum Direction;

constexpr std::uint64_t kStagedBytes = 64 << 10;

struct CheckedCopy {
  Rectangle rectangle;
  Place target;
  Place source;
};

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

// Bytes from the first of `count` runs to the end of the last; UINT64_MAX, which no memory has, when there are more.
std::uint64_t span_of(std::uint64_t pitch, std::uint64_t bytes, std::uint64_t count) {
  std::uint64_t span = 0;
  const bool overflows = __builtin_mul_overflow(count - 1, pitch, &span) || __builtin_add_overflow(span, bytes, &span);
  return overflows ? UINT64_MAX : span;
}

std::uint64_t target_span(const Rectangle& r) {
  return span_of(r.target_slice, span_of(r.target_pitch, r.width, r.height), r.depth);
}

std::uint64_t source_span(const Rectangle& r) {
  return span_of(r.source_slice, span_of(r.source_pitch, r.width, r.height), r.depth);
}

CUresult check(const Rectangle& r, Sides sides, CheckedCopy& copy) {
  copy.rectangle = r;
  if (r.height > 1 && (r.target_pitch < r.width || r.source_pitch < r.width)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(locate(r.target, target_span(r), copy.target));
  SOFTGPU_TRY(locate(r.source, source_span(r), copy.source));
  const bool target_device = sides == Sides::kTargetDevice || sides == Sides::kBothDevice;
  const bool source_device = sides == Sides::kSourceDevice || sides == Sides::kBothDevice;
  if (target_device && copy.target.pageable()) return CUDA_ERROR_INVALID_VALUE;
  if (source_device && copy.source.pageable()) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

void move_rows(const Rectangle& r) {
  for (std::uint64_t plane = 0; plane < r.depth; ++plane) {
    const std::uint64_t target = r.target + plane * r.target_slice;
    const std::uint64_t source = r.source + plane * r.source_slice;
    for (std::uint64_t row = 0; row < r.height; ++row) {
      std::memmove(pointer(target + row * r.target_pitch), pointer(source + row * r.source_pitch), r.width);
    }
  }
}

// Whether memory that was there when the operation was submitted is there still. REQUIRES: a MemoryUse.
bool still_there(const Place& place, std::uint64_t address, std::uint64_t bytes) {
  Place now;
  return place.pageable() || (locate(address, bytes, now) == CUDA_SUCCESS && !now.pageable());
}

void run_copy(CUcontext context, const CheckedCopy& copy) {
  if (context->fault() != CUDA_SUCCESS) return;
  Device& device = context->device();
  const std::uint64_t begin = monotonic_ns();
  const std::uint64_t bytes = copy.rectangle.width * copy.rectangle.height * copy.rectangle.depth;
  const bool within_device = copy.target.device != nullptr && copy.target.device == copy.source.device;
  std::optional<Transfer> transfer;
  if (!within_device) transfer.emplace(device, copy.target.device != nullptr ? kToDevice : kFromDevice);
  {
    const Rectangle& r = copy.rectangle;
    const MemoryUse use;
    if (!still_there(copy.target, r.target, target_span(r)) || !still_there(copy.source, r.source, source_span(r))) {
      context->set_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "a copy's memory was freed or unmapped before the copy ran");
      return;
    }
    move_rows(r);
  }
  if (transfer) {
    transfer->finish(bytes, [context] { return context->must_stop(); });
    return;
  }
  device.pace(begin, device_copy_ns(device.profile(), bytes), context->cancel());
  device.meter().moved(bytes, monotonic_ns());
}

// A checked copy as a graph's node describes it.
CUDA_MEMCPY3D describe(const CheckedCopy& copy) {
  const Rectangle& r = copy.rectangle;
  CUDA_MEMCPY3D described = {};
  described.srcMemoryType = copy.source.device != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  described.srcDevice = copy.source.device != nullptr ? r.source : 0;
  described.srcHost = copy.source.device != nullptr ? nullptr : pointer(r.source);
  described.dstMemoryType = copy.target.device != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  described.dstDevice = copy.target.device != nullptr ? r.target : 0;
  described.dstHost = copy.target.device != nullptr ? nullptr : pointer(r.target);
  described.srcPitch = r.source_pitch;
  described.dstPitch = r.target_pitch;
  described.srcHeight = r.source_pitch != 0 ? r.source_slice / r.source_pitch : 0;
  described.dstHeight = r.target_pitch != 0 ? r.target_slice / r.target_pitch : 0;
  described.WidthInBytes = r.width;
  described.Height = r.height;
  described.Depth = r.depth;
  return described;
}

bool empty(const Rectangle& r) {
  return r.width == 0 || r.height == 0 || r.depth == 0;
}

// Fills one row; memset when all bytes of the pattern are equal, which is the usual case.
void fill_row(void* row, const Fill& fill) {
  const std::uint32_t byte = fill.pattern & 0xFF;
  if (fill.pattern_bytes == 1 || (fill.pattern_bytes == 2 && fill.pattern == byte * 0x0101) ||
      (fill.pattern_bytes == 4 && fill.pattern == byte * 0x01010101)) {
    std::memset(row, static_cast<int>(byte), fill.width * fill.pattern_bytes);
  } else if (fill.pattern_bytes == 2) {
    std::fill_n(static_cast<std::uint16_t*>(row), fill.width, static_cast<std::uint16_t>(fill.pattern));
  } else {
    std::fill_n(static_cast<std::uint32_t*>(row), fill.width, fill.pattern);
  }
}

CUresult check_fill(const Fill& fill) {
  const std::uint64_t width = span_of(fill.pattern_bytes, fill.pattern_bytes, fill.width);
  if (fill.target % fill.pattern_bytes != 0 || (fill.height > 1 && fill.pitch < width)) return CUDA_ERROR_INVALID_VALUE;
  Place place;
  SOFTGPU_TRY(locate(fill.target, span_of(fill.pitch, width, fill.height), place));
  return place.pageable() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void run_fill(CUcontext context, const Fill& fill) {
  if (context->fault() != CUDA_SUCCESS) return;
  const std::uint64_t begin = monotonic_ns();
  {
    const MemoryUse use;
    if (check_fill(fill) != CUDA_SUCCESS) {
      context->set_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "a fill's memory was freed or unmapped before the fill ran");
      return;
    }
    for (std::uint64_t row = 0; row < fill.height; ++row) fill_row(pointer(fill.target + row * fill.pitch), fill);
  }
  const std::uint64_t bytes = fill.width * fill.pattern_bytes * fill.height;
  Device& device = context->device();
  device.pace(begin, device_copy_ns(device.profile(), bytes / 2), context->cancel());
  device.meter().moved(bytes, monotonic_ns());
}

}  // namespace

CUresult copy_now(const Rectangle& rectangle, Sides sides) {
  StreamUse use;
  CheckedCopy copy;
  SOFTGPU_TRY(healthy_stream(nullptr, use));
  SOFTGPU_TRY(refuse_unsafe_call());
  if (empty(rectangle)) return CUDA_SUCCESS;
  SOFTGPU_TRY(check(rectangle, sides, copy));
  use.context->run_now(*use.stream, [&] { run_copy(use.context, copy); });
  return use.context->fault();
}

CUresult copy_async(const Rectangle& rectangle, Sides sides, CUstream stream) {
  StreamUse use;
  CheckedCopy copy;
  SOFTGPU_TRY(capturable_stream(stream, use));
  if (empty(rectangle)) return CUDA_SUCCESS;
  SOFTGPU_TRY(check(rectangle, sides, copy));
  if (use.capturing) return recorder_of(use).copy(use, describe(copy));
  CUcontext context = use.context;
  const bool small = rectangle.height == 1 && rectangle.depth == 1 && rectangle.width <= kStagedBytes;
  if (copy.source.pageable() && !copy.target.pageable() && small) {
    auto staged = std::make_shared<std::vector<std::byte>>(rectangle.width);
    std::memcpy(staged->data(), pointer(rectangle.source), rectangle.width);
    copy.rectangle.source = reinterpret_cast<std::uint64_t>(staged->data());
    context->streams().submit(*use.stream, [context, copy, staged] { run_copy(context, copy); });
    return CUDA_SUCCESS;
  }
  const Point point = context->streams().submit(*use.stream, [context, copy] { run_copy(context, copy); });
  if (!copy.source.pageable() && !copy.target.pageable()) return CUDA_SUCCESS;
  point.stream->wait_helping(point.sequence);
  return context->fault();
}

CUresult fill_now(const Fill& fill) {
  StreamUse use;
  SOFTGPU_TRY(healthy_stream(nullptr, use));
  SOFTGPU_TRY(refuse_unsafe_call());
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  SOFTGPU_TRY(check_fill(fill));
  use.context->run_now(*use.stream, [&] { run_fill(use.context, fill); });
  return use.context->fault();
}

CUresult fill_async(const Fill& fill, CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(capturable_stream(stream, use));
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  SOFTGPU_TRY(check_fill(fill));
  CUcontext context = use.context;
  if (use.capturing) {
    return recorder_of(use).fill(
        use, {fill.target, fill.pitch, fill.pattern, fill.pattern_bytes, fill.width, fill.height, context});
  }
  context->streams().submit(*use.stream, [context, fill] { run_fill(context, fill); });
  return CUDA_SUCCESS;
}

CUresult prepare_copy(const CUDA_MEMCPY3D& copy, CUcontext context, std::function<void()>& run) {
  Rectangle box;
  Sides sides = Sides::kAny;
  CheckedCopy checked;
  SOFTGPU_TRY(box_of(copy, box, sides));
  if (empty(box)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check(box, sides, checked));
  run = [context, checked] { run_copy(context, checked); };
  return CUDA_SUCCESS;
}

CUresult prepare_fill(const Fill& fill, CUcontext context, std::function<void()>& run) {
  const bool pattern_known = fill.pattern_bytes == 1 || fill.pattern_bytes == 2 || fill.pattern_bytes == 4;
  if (!pattern_known || fill.width == 0 || fill.height == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_fill(fill));
  run = [context, fill] { run_fill(context, fill); };
  return CUDA_SUCCESS;
}

}  // namespace softgpu
