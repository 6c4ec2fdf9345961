// Arrays.
#include "softgpu/driver/memory/array.h"

#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/stream/capture.h"

using softgpu::Arrays;

namespace softgpu {

unsigned channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
  }
  return 0;
}

CUresult check_array(CUarray array) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Arrays::valid(array)) return CUDA_ERROR_INVALID_HANDLE;
  const bool same_activation = array->context->active() && array->context->id() == array->context_id;
  return same_activation ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace softgpu

namespace {

constexpr std::uint64_t kPitchAlignment = 64;
constexpr std::uint64_t kMaxExtent1d = 131072;
constexpr std::uint64_t kMaxExtent2d = 131072;
constexpr std::uint64_t kMaxRows2d = 65536;
constexpr std::uint64_t kMaxExtent3d = 16384;
constexpr std::uint64_t kMaxLayers = 2048;
constexpr unsigned kFlags =
    CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;

CUresult check_extents(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (d.Width == 0) return CUDA_ERROR_INVALID_VALUE;
  if (layered) {
    const bool fits = d.Width <= kMaxExtent2d && d.Height <= kMaxRows2d && d.Depth != 0 && d.Depth <= kMaxLayers;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (d.Depth != 0) {
    const bool fits = d.Height != 0 && d.Width <= kMaxExtent3d && d.Height <= kMaxExtent3d && d.Depth <= kMaxExtent3d;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const bool fits = d.Width <= (d.Height == 0 ? kMaxExtent1d : kMaxExtent2d) && d.Height <= kMaxRows2d;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_descriptor(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  const bool channels_known = d.NumChannels == 1 || d.NumChannels == 2 || d.NumChannels == 4;
  if (softgpu::channel_bytes(d.Format) == 0 || !channels_known) return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return check_extents(d);
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  CUcontext context = nullptr;
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  SOFTGPU_TRY(check_descriptor(*descriptor));
  const std::uint64_t row = descriptor->Width * descriptor->NumChannels * softgpu::channel_bytes(descriptor->Format);
  const std::uint64_t pitch = (row + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  const std::uint64_t slice = pitch * (descriptor->Height != 0 ? descriptor->Height : 1);
  const std::uint64_t bytes = slice * (descriptor->Depth != 0 ? descriptor->Depth : 1);
  if (bytes > context->device().total_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t address = context->heap().allocate(bytes);
  if (address == 0) return context->active() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CUarray made = Arrays::take();
  made->descriptor = *descriptor;
  made->context = context;
  made->context_id = context->id();
  made->address = address;
  made->row_bytes = row;
  made->pitch = pitch;
  made->slice = slice;
  *array = made;
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR flat = {descriptor->Width,  descriptor->Height,      0,
                                        descriptor->Format, descriptor->NumChannels, 0};
  return cuArray3DCreate_v2(array, &flat);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::check_array(array));
  *descriptor = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::check_array(array));
  const CUDA_ARRAY3D_DESCRIPTOR& own = array->descriptor;
  *descriptor = {own.Width, own.Height, own.Format, own.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array) {
  SOFTGPU_TRY(softgpu::check_array(array));
  CUcontext context = array->context;
  const std::uint64_t address = array->address;
  SOFTGPU_TRY(softgpu::refuse_unsafe_call());
  SOFTGPU_TRY(context->synchronise());
  if (!Arrays::give_back(array)) return CUDA_ERROR_INVALID_HANDLE;
  return softgpu::release_memory(context, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
