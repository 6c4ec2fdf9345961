#include "softgpu/driver/memory/copy_box.h"

#include "softgpu/driver/memory/array.h"

namespace softgpu {
namespace {

struct Rows {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};

CUresult rows_of_array(const BoxSide& side, std::uint64_t width, std::uint64_t height, std::uint64_t depth,
                       Rows& rows) {
  SOFTGPU_TRY(check_array(side.array));
  const CUarray_st& array = *side.array;
  const auto within = [](std::uint64_t begin, std::uint64_t count, std::uint64_t end) {
    return begin <= end && count <= end - begin;
  };
  if (!within(side.x_bytes, width, array.row_bytes) || !within(side.y, height, array.rows()) ||
      !within(side.z, depth, array.planes())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  rows = {array.address + side.z * array.slice + side.y * array.pitch + side.x_bytes, array.pitch, array.slice};
  return CUDA_SUCCESS;
}

CUresult rows_of(const BoxSide& side, std::uint64_t width, std::uint64_t height, std::uint64_t depth, Rows& rows) {
  switch (side.type) {
    case CU_MEMORYTYPE_ARRAY: return rows_of_array(side, width, height, depth, rows);
    case CU_MEMORYTYPE_HOST: rows.address = reinterpret_cast<std::uint64_t>(side.host); break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: rows.address = side.device; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  const bool flat = height <= 1 && depth <= 1;
  if (side.pitch != 0 && side.pitch < width + side.x_bytes && !flat) return CUDA_ERROR_INVALID_VALUE;
  if (side.height != 0 && side.height < height + side.y && depth > 1) return CUDA_ERROR_INVALID_VALUE;
  rows.pitch = side.pitch != 0 ? side.pitch : width;
  rows.slice = rows.pitch * (side.height != 0 ? side.height : height);
  rows.address += side.z * rows.slice + side.y * rows.pitch + side.x_bytes;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult box_of(const BoxSide& source, const BoxSide& target, std::uint64_t width, std::uint64_t height,
                std::uint64_t depth, Rectangle& box, Sides& sides) {
  Rows from;
  Rows to;
  SOFTGPU_TRY(rows_of(source, width, height, depth, from));
  SOFTGPU_TRY(rows_of(target, width, height, depth, to));
  box = {to.address, to.pitch, from.address, from.pitch, width, height, to.slice, from.slice, depth};
  const auto on_device = [](CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY; };
  const bool source_device = on_device(source.type);
  const bool target_device = on_device(target.type);
  sides = source_device && target_device ? Sides::kBothDevice
          : source_device                ? Sides::kSourceDevice
          : target_device                ? Sides::kTargetDevice
                                         : Sides::kAny;
  return CUDA_SUCCESS;
}

CUresult box_of(const CUDA_MEMCPY3D& c, Rectangle& box, Sides& sides) {
  if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const BoxSide source = {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes,
                          c.srcY,          c.srcZ,    c.srcPitch,  c.srcHeight};
  const BoxSide target = {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes,
                          c.dstY,          c.dstZ,    c.dstPitch,  c.dstHeight};
  return box_of(source, target, c.WidthInBytes, c.Height, c.Depth, box, sides);
}

CUresult box_of(const CUDA_MEMCPY2D& c, Rectangle& box, Sides& sides) {
  const BoxSide source = {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY, 0, c.srcPitch, 0};
  const BoxSide target = {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY, 0, c.dstPitch, 0};
  return box_of(source, target, c.WidthInBytes, c.Height, 1, box, sides);
}

}  // namespace softgpu
