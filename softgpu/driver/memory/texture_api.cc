// Texture and surface objects.
#include <algorithm>
#include <map>

#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/memory/texture.h"
#include "softgpu/mutex.h"

using softgpu::channel_bytes;
using softgpu::healthy_context;
using softgpu::ptx::TextureDescription;

namespace {

constexpr std::uint64_t kLinearAlignment = 512;  // CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
constexpr std::uint64_t kPitchAlignment = 32;    // CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT

struct Object {
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  CUDA_RESOURCE_VIEW_DESC view = {};
  bool has_view = false;
  TextureDescription description;
};

class Table final : public softgpu::ptx::TextureTable {
 public:
  std::uint64_t add(bool is_surface, const Object& object) {
    const softgpu::LockGuard guard(mutex_);
    const std::uint64_t handle = next_++;
    (is_surface ? surfaces_ : textures_)[handle] = object;
    return handle;
  }
  bool remove(bool is_surface, std::uint64_t handle) {
    const softgpu::LockGuard guard(mutex_);
    return (is_surface ? surfaces_ : textures_).erase(handle) != 0;
  }
  bool find(bool is_surface, std::uint64_t handle, Object& object) const {
    const softgpu::ReadGuard guard(mutex_);
    const auto& objects = is_surface ? surfaces_ : textures_;
    const auto found = objects.find(handle);
    if (found == objects.end()) return false;
    object = found->second;
    return true;
  }
  bool find_texture(std::uint64_t handle, TextureDescription& out) const override {
    const softgpu::ReadGuard guard(mutex_);
    return find_description(textures_, handle, out);
  }
  bool find_surface(std::uint64_t handle, TextureDescription& out) const override {
    const softgpu::ReadGuard guard(mutex_);
    return find_description(surfaces_, handle, out);
  }

 private:
  using Objects = std::map<std::uint64_t, Object>;
  static bool find_description(const Objects& objects, std::uint64_t handle, TextureDescription& out) {
    const auto found = objects.find(handle);
    if (found == objects.end()) return false;
    out = found->second.description;
    return true;
  }

  mutable softgpu::SharedMutex mutex_;
  Objects textures_ SOFTGPU_GUARDED_BY(mutex_);
  Objects surfaces_ SOFTGPU_GUARDED_BY(mutex_);
  std::uint64_t next_ SOFTGPU_GUARDED_BY(mutex_) = 1;
};

Table& table() {
  static auto* instance = new Table;  // outlives the threads of streams
  return *instance;
}

TextureDescription::Channel channel_of(CUarray_format format) {
  using Channel = TextureDescription::Channel;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return Channel::kU8;
    case CU_AD_FORMAT_UNSIGNED_INT16: return Channel::kU16;
    case CU_AD_FORMAT_UNSIGNED_INT32: return Channel::kU32;
    case CU_AD_FORMAT_SIGNED_INT8: return Channel::kS8;
    case CU_AD_FORMAT_SIGNED_INT16: return Channel::kS16;
    case CU_AD_FORMAT_SIGNED_INT32: return Channel::kS32;
    case CU_AD_FORMAT_HALF: return Channel::kF16;
    case CU_AD_FORMAT_FLOAT: return Channel::kF32;
  }
  return Channel::kF32;
}

bool known_element(CUarray_format format, unsigned channels) {
  return channel_bytes(format) != 0 && (channels == 1 || channels == 2 || channels == 4);
}

CUresult describe_array(CUarray array, TextureDescription& out) {
  SOFTGPU_TRY(softgpu::check_array(array));
  const CUDA_ARRAY3D_DESCRIPTOR& d = array->descriptor;
  out.base = array->address;
  out.width = d.Width;
  out.height = d.Height;
  out.depth = d.Depth;
  out.pitch_bytes = array->pitch;
  out.slice_bytes = array->slice;
  out.channel = channel_of(d.Format);
  out.channels = d.NumChannels;
  return CUDA_SUCCESS;
}

CUresult describe_memory(const CUDA_RESOURCE_DESC& resource, TextureDescription& out) {
  const bool linear = resource.resType == CU_RESOURCE_TYPE_LINEAR;
  const CUdeviceptr address = linear ? resource.res.linear.devPtr : resource.res.pitch2D.devPtr;
  const CUarray_format format = linear ? resource.res.linear.format : resource.res.pitch2D.format;
  const unsigned channels = linear ? resource.res.linear.numChannels : resource.res.pitch2D.numChannels;
  if (address % kLinearAlignment != 0 || !known_element(format, channels)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t element = std::uint64_t{channels} * channel_bytes(format);
  const auto& flat = resource.res.pitch2D;
  std::uint64_t bytes = resource.res.linear.sizeInBytes;
  if (!linear) {
    const bool pitch_fits = flat.pitchInBytes % kPitchAlignment == 0 && flat.pitchInBytes >= flat.width * element;
    if (!pitch_fits || flat.width == 0 || flat.height == 0) return CUDA_ERROR_INVALID_VALUE;
    bytes = (flat.height - 1) * flat.pitchInBytes + flat.width * element;
  }
  softgpu::Place place;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::locate(address, bytes, place));
  if (place.pageable()) return CUDA_ERROR_INVALID_VALUE;
  out.base = address;
  out.width = linear ? bytes / element : flat.width;
  out.height = linear ? 0 : flat.height;
  out.pitch_bytes = linear ? bytes : flat.pitchInBytes;
  out.channel = channel_of(format);
  out.channels = channels;
  return CUDA_SUCCESS;
}

CUresult describe_resource(const CUDA_RESOURCE_DESC& resource, TextureDescription& out) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: return describe_array(resource.res.array.hArray, out);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D: return describe_memory(resource, out);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult describe_sampling(const CUDA_TEXTURE_DESC& texture, TextureDescription& out) {
  using Channel = TextureDescription::Channel;
  constexpr unsigned kFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB;
  if ((texture.flags & ~kFlags) != 0 || texture.filterMode < CU_TR_FILTER_MODE_POINT ||
      texture.filterMode > CU_TR_FILTER_MODE_LINEAR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t i = 0; i < out.addressing.size(); ++i) {
    const CUaddress_mode mode = texture.addressMode[i];
    if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    out.addressing[i] = static_cast<TextureDescription::Addressing>(mode);
  }
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), out.border.begin());
  const bool narrow = out.channel == Channel::kU8 || out.channel == Channel::kS8 || out.channel == Channel::kU16 ||
                      out.channel == Channel::kS16;
  out.is_linear = texture.filterMode == CU_TR_FILTER_MODE_LINEAR;
  out.is_normalised = (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  out.is_srgb = (texture.flags & CU_TRSF_SRGB) != 0;
  out.reads_normalised = narrow && (texture.flags & CU_TRSF_READ_AS_INTEGER) == 0;
  // Integers that are read as such have nothing between them.
  const bool integer = out.channel != Channel::kF16 && out.channel != Channel::kF32 && !out.reads_normalised;
  return out.is_linear && integer ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult get(bool is_surface, std::uint64_t handle, Object& object) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  return table().find(is_surface, handle, object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult destroy(bool is_surface, std::uint64_t handle) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  return table().remove(is_surface, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult resource_of(bool is_surface, std::uint64_t handle, CUDA_RESOURCE_DESC* resource) {
  Object found;
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get(is_surface, handle, found));
  *resource = found.resource;
  return CUDA_SUCCESS;
}

}  // namespace

namespace softgpu {

const ptx::TextureTable& texture_table() {
  return table();
}

}  // namespace softgpu

CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  CUcontext context = nullptr;
  Object made;
  if (object == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  if (view != nullptr && resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(describe_resource(*resource, made.description));
  SOFTGPU_TRY(describe_sampling(*texture, made.description));
  made.resource = *resource;
  made.texture = *texture;
  if (view != nullptr) {
    // A view may say what the array says; reading it as another format is not done.
    if (view->format != 0) return CUDA_ERROR_NOT_SUPPORTED;
    made.view = *view;
    made.has_view = true;
  }
  *object = table().add(false, made);
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject object) {
  return destroy(false, object);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return resource_of(false, object, resource);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  Object found;
  if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get(false, object, found));
  *texture = found.texture;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  Object found;
  if (view == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get(false, object, found));
  if (!found.has_view) return CUDA_ERROR_INVALID_VALUE;
  *view = found.view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  CUcontext context = nullptr;
  Object made;
  if (object == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(describe_resource(*resource, made.description));
  if ((resource->res.array.hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
  made.resource = *resource;
  *object = table().add(true, made);
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject object) {
  return destroy(true, object);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return resource_of(true, object, resource);
}
