// Arrays: memory without an address, which stays on the device. Counted as their elements, without what the driver pads.
#include <algorithm>

#include "shim/hooks/counted.h"

using namespace fairlead::shim;

namespace {

std::size_t channel_bytes(CUarray_format format) {
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
  return 1;  // block-compressed and video formats: about a byte per element
}

std::size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& a) {
  const std::size_t elements = a.Width * std::max<std::size_t>(a.Height, 1) * std::max<std::size_t>(a.Depth, 1);
  return elements * std::max(a.NumChannels, 1U) * channel_bytes(a.Format);
}

std::size_t mipmapped_bytes(CUDA_ARRAY3D_DESCRIPTOR level, unsigned int levels) {
  std::size_t sum = 0;
  for (unsigned int i = 0; i < levels; ++i) {
    sum += array_bytes(level);
    level.Width = std::max<std::size_t>(level.Width / 2, 1);
    level.Height /= level.Height > 1 ? 2 : 1;
    level.Depth /= level.Depth > 1 ? 2 : 1;
  }
  return sum;
}

std::uint64_t array_key(const void* array) {
  return key_of(KeyKind::kArray, reinterpret_cast<std::uintptr_t>(array));
}

}  // namespace

HOOK cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  const auto create = [&] { return FAIRLEAD_REAL(cuArrayCreate_v2)(array, descriptor); };
  if (array == nullptr || descriptor == nullptr) return create();
  const CUDA_ARRAY3D_DESCRIPTOR whole = {.Width = descriptor->Width,
                                         .Height = descriptor->Height,
                                         .Depth = 0,
                                         .Format = descriptor->Format,
                                         .NumChannels = descriptor->NumChannels,
                                         .Flags = 0};
  return count_new(array_bytes(whole), create, [&] { return array_key(*array); });
}

HOOK cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  const auto create = [&] { return FAIRLEAD_REAL(cuArray3DCreate_v2)(array, descriptor); };
  if (array == nullptr || descriptor == nullptr) return create();
  return count_new(array_bytes(*descriptor), create, [&] { return array_key(*array); });
}

HOOK cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels) {
  const auto create = [&] { return FAIRLEAD_REAL(cuMipmappedArrayCreate)(array, descriptor, levels); };
  if (array == nullptr || descriptor == nullptr) return create();
  return count_new(mipmapped_bytes(*descriptor, std::min(levels, 32U)), create, [&] { return array_key(*array); });
}

HOOK cuArrayDestroy(CUarray array) {
  return count_gone(array_key(array), [&] { return FAIRLEAD_REAL(cuArrayDestroy)(array); });
}
HOOK cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return count_gone(array_key(array), [&] { return FAIRLEAD_REAL(cuMipmappedArrayDestroy)(array); });
}
