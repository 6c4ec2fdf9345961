// Texture and surface objects. The rules are those of the CUDA programming guide ("Texture Fetching"): a point fetch reads
// T[floor(x)], a linear one weighs T[floor(x - 0.5)] and its successor with a fraction kept in 8 bits.
#include <algorithm>
#include <array>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

struct Texel {
  float x, y, z, w;
};
struct Words {
  int x, y, z, w;
};

CUDA_RESOURCE_DESC resource_of(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_RESOURCE_DESC linear_memory(CUdeviceptr address, CUarray_format format, unsigned channels, std::size_t bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {address, format, channels, bytes};
  return resource;
}

CUDA_TEXTURE_DESC sampling(CUaddress_mode mode, CUfilter_mode filter, unsigned flags = 0) {
  CUDA_TEXTURE_DESC texture{};
  for (CUaddress_mode& each : texture.addressMode) each = mode;
  texture.filterMode = filter;
  texture.flags = flags;
  return texture;
}

// Device memory with these values, for a texture: allocations are aligned to 256 bytes only, textures may need more.
template <class T>
Buffer<T> upload_for_texture(Test& test, const std::vector<T>& values) {
  const auto alignment = static_cast<CUdeviceptr>(test.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
  const std::size_t bytes = values.size() * sizeof(T);
  const auto space = test.zeros<char>(bytes + alignment);
  const Buffer<T> buffer{(space.address + alignment - 1) / alignment * alignment, values.size()};
  if (test.ok()) test.check(driver().cuMemcpyHtoD(buffer.address, values.data(), bytes), "cuMemcpyHtoD");
  return buffer;
}

// Arrays, textures and surfaces of a case.
class Images {
 public:
  explicit Images(Test& test) : test_(test) {}
  ~Images() {
    for (const CUtexObject texture : textures_) driver().cuTexObjectDestroy(texture);
    for (const CUsurfObject surface : surfaces_) driver().cuSurfObjectDestroy(surface);
    for (const CUarray array : arrays_) driver().cuArrayDestroy(array);
  }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  // Filled with `data`, whose rows are packed.
  template <class T>
  CUarray array(CUDA_ARRAY3D_DESCRIPTOR shape, const std::vector<T>& data) {
    CUarray array = nullptr;
    if (!test_.check(driver().cuArray3DCreate(&array, &shape), "cuArray3DCreate")) return nullptr;
    arrays_.push_back(array);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = data.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
    copy.Height = std::max<std::size_t>(shape.Height, 1), copy.Depth = std::max<std::size_t>(shape.Depth, 1);
    copy.WidthInBytes = data.size() * sizeof(T) / copy.Height / copy.Depth;
    copy.srcPitch = copy.WidthInBytes, copy.srcHeight = copy.Height;
    test_.check(driver().cuMemcpy3D(&copy), "cuMemcpy3D");
    return array;
  }
  CUtexObject texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling) {
    CUtexObject texture = 0;
    if (test_.check(driver().cuTexObjectCreate(&texture, &resource, &sampling, nullptr), "cuTexObjectCreate")) {
      textures_.push_back(texture);
    }
    return texture;
  }
  CUsurfObject surface(CUarray array) {
    const CUDA_RESOURCE_DESC resource = resource_of(array);
    CUsurfObject surface = 0;
    if (test_.check(driver().cuSurfObjectCreate(&surface, &resource), "cuSurfObjectCreate")) {
      surfaces_.push_back(surface);
    }
    return surface;
  }

 private:
  Test& test_;
  std::vector<CUarray> arrays_;
  std::vector<CUtexObject> textures_;
  std::vector<CUsurfObject> surfaces_;
};

std::vector<float> first_channel(const std::vector<Texel>& texels) {
  std::vector<float> values;
  for (const Texel& texel : texels) values.push_back(texel.x);
  return values;
}

// The index that an addressing mode makes of `i`, or -1 for the border.
int addressed(int i, int n, CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return ((i % n) + n) % n;
    case CU_TR_ADDRESS_MODE_CLAMP: return std::clamp(i, 0, n - 1);
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const int at = ((i % (2 * n)) + 2 * n) % (2 * n);
      return at < n ? at : 2 * n - 1 - at;
    }
    default: return i < 0 || i >= n ? -1 : i;
  }
}

constexpr int kWidth = 16, kHeight = 8;
constexpr float kBorder = -7;

float element(const std::vector<float>& data, int x, int y, CUaddress_mode mode) {
  const int column = addressed(x, kWidth, mode), row = addressed(y, kHeight, mode);
  return column < 0 || row < 0 ? kBorder : data[row * kWidth + column];
}

float point(const std::vector<float>& data, float x, float y, CUaddress_mode mode) {
  return element(data, static_cast<int>(std::floor(x)), static_cast<int>(std::floor(y)), mode);
}

// Coordinates whose fractions need no more than 8 bits, so that the weights are exact.
float linear(const std::vector<float>& data, float x, float y, CUaddress_mode mode) {
  const float left = std::floor(x - 0.5f), top = std::floor(y - 0.5f), a = x - 0.5f - left, b = y - 0.5f - top;
  const int i = static_cast<int>(left), j = static_cast<int>(top);
  return (1 - a) * (1 - b) * element(data, i, j, mode) + a * (1 - b) * element(data, i + 1, j, mode) +
         (1 - a) * b * element(data, i, j + 1, mode) + a * b * element(data, i + 1, j + 1, mode);
}

// From about half the image before its start to half behind its end, in steps of 1/16.
std::vector<float> coordinates(std::size_t count, unsigned seed, int size) {
  std::vector<float> values;
  for (const unsigned word : words(count, seed, static_cast<unsigned>(32 * size))) {
    values.push_back(static_cast<float>(static_cast<int>(word) - 8 * size) / 16);
  }
  return values;
}

using Reference = float (*)(const std::vector<float>&, float, float, CUaddress_mode);

// The guide: wrap and mirror are for normalised coordinates only.
void sample_2d(Test& test, CUfilter_mode filter, Reference reference) {
  Images images(test);
  const int n = 512;
  std::vector<float> data;
  for (const unsigned word : words(kWidth * kHeight, 1, 64)) data.push_back(static_cast<float>(word));
  const CUarray array = images.array({kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, 0}, data);
  const auto x = coordinates(n, 2, kWidth), y = coordinates(n, 3, kHeight);
  for (const CUaddress_mode mode :
       {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_BORDER, CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_MIRROR}) {
    for (const unsigned flags : {0u, unsigned{CU_TRSF_NORMALIZED_COORDINATES}}) {
      const bool needs_normalised = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
      if (!test.ok() || (needs_normalised && flags == 0)) continue;
      CUDA_TEXTURE_DESC description = sampling(mode, filter, flags);
      description.borderColor[0] = kBorder;
      const CUtexObject texture = images.texture(resource_of(array), description);
      auto u = x, v = y;
      std::vector<float> want;
      for (int i = 0; i < n; ++i) {
        want.push_back(reference(data, x[i], y[i], mode));
        if (flags != 0) u[i] /= kWidth, v[i] /= kHeight;
      }
      const auto out = test.zeros<Texel>(n);
      test.launch("fetch_2d", {4, 128}, texture, n, test.upload(u), test.upload(v), out);
      const std::string what = "mode " + std::to_string(mode) + (flags != 0 ? ", normalised" : "");
      test.near(what.c_str(), first_channel(test.download(out)), want, 1e-6);
    }
  }
}

void point_filter(Test& test) {
  sample_2d(test, CU_TR_FILTER_MODE_POINT, point);
}

void linear_filter(Test& test) {
  sample_2d(test, CU_TR_FILTER_MODE_LINEAR, linear);
}

// tex1Dfetch: integer coordinates into linear memory, no filtering.
void linear_memory_fetch(Test& test) {
  Images images(test);
  const int n = 300;
  std::vector<int> at, data = integers(4 * 256, 4, -1000, 1000);
  for (const unsigned word : words(n, 5, 256)) at.push_back(static_cast<int>(word));
  const auto memory = upload_for_texture(test, data);
  const auto plain = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
  const auto texture = images.texture(linear_memory(memory.address, CU_AD_FORMAT_SIGNED_INT32, 4, 4096), plain);
  const auto out = test.zeros<Words>(n);
  test.launch("fetch_words", {3, 128}, texture, n, test.upload(at), out);
  std::vector<Words> want;
  for (const int i : at) want.push_back({data[4 * i], data[4 * i + 1], data[4 * i + 2], data[4 * i + 3]});
  std::vector<std::array<int, 4>> got_words(n), want_words(n);
  const auto got = test.download(out);
  for (int i = 0; i < n; ++i) {
    got_words[i] = {got[i].x, got[i].y, got[i].z, got[i].w};
    want_words[i] = {want[i].x, want[i].y, want[i].z, want[i].w};
  }
  for (int channel = 0; channel < 4; ++channel) {
    std::vector<int> left, right;
    for (int i = 0; i < n; ++i) left.push_back(got_words[i][channel]), right.push_back(want_words[i][channel]);
    test.equal("channel", left, right);
  }
}

// Integers are read as floats in [0, 1] or [-1, 1] unless READ_AS_INTEGER is set; channels that a format lacks are 0,
// the fourth is 1.
void formats(Test& test) {
  Images images(test);
  const int n = 256;
  std::vector<int> at;
  std::vector<unsigned char> bytes;
  std::vector<short> shorts;
  for (int i = 0; i < n; ++i) {
    at.push_back(i);
    bytes.push_back(static_cast<unsigned char>(i));
    shorts.push_back(static_cast<short>(i * 256 - 32768));
  }
  const auto fetch = [&](const char* what, CUdeviceptr address, CUarray_format format, std::size_t size,
                         auto expected) {
    const auto description = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
    const auto texture = images.texture(linear_memory(address, format, 1, size), description);
    const auto out = test.zeros<Texel>(n);
    test.launch("fetch_index", {2, 128}, texture, n, test.upload(at), out);
    std::vector<float> want;
    for (int i = 0; i < n; ++i) want.push_back(expected(i));
    test.near(what, first_channel(test.download(out)), want, 1e-6);
  };
  const auto device_bytes = upload_for_texture(test, bytes);
  const auto device_shorts = upload_for_texture(test, shorts);
  fetch("u8", device_bytes.address, CU_AD_FORMAT_UNSIGNED_INT8, 256, [](int i) { return i / 255.0f; });
  fetch("s8", device_bytes.address, CU_AD_FORMAT_SIGNED_INT8, 256,
        [](int i) { return std::max(static_cast<signed char>(i) / 127.0f, -1.0f); });
  fetch("s16", device_shorts.address, CU_AD_FORMAT_SIGNED_INT16, 512,
        [](int i) { return std::max((i * 256 - 32768) / 32767.0f, -1.0f); });
  const auto integer = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
  const auto texture = images.texture(linear_memory(device_shorts.address, CU_AD_FORMAT_SIGNED_INT16, 1, 512), integer);
  const auto out = test.zeros<Words>(n);
  test.launch("fetch_words", {2, 128}, texture, n, test.upload(at), out);
  std::vector<int> got, want;
  for (const Words& each : test.download(out)) got.push_back(each.x);
  for (int i = 0; i < n; ++i) want.push_back(i * 256 - 32768);
  test.equal("s16 as integers", got, want);
}

void one_and_three_dimensions(Test& test) {
  Images images(test);
  const int n = 64;
  std::vector<float> line, box, x, y, z, want_line, want_box;
  for (int i = 0; i < 16; ++i) line.push_back(static_cast<float>(i * i));
  for (int i = 0; i < 4 * 4 * 4; ++i) box.push_back(static_cast<float>(i));
  for (int i = 0; i < n; ++i) {
    x.push_back(0.5f + static_cast<float>(i % 13) / 4);
    y.push_back(0.5f + static_cast<float>(i % 7) / 2);
    z.push_back(0.5f + static_cast<float>(i % 4));
    const float at = x[i] - 0.5f, left = std::floor(at);
    const int index = static_cast<int>(left);
    want_line.push_back((1 - (at - left)) * line[index] + (at - left) * line[index + 1]);
    want_box.push_back(16 * (z[i] - 0.5f) + 4 * (y[i] - 0.5f) + at);  // a linear function is interpolated exactly
  }
  const auto description = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR);
  const CUarray row = images.array({16, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, line);
  const CUarray cube = images.array({4, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0}, box);
  if (!test.ok()) return;
  const auto out = test.zeros<Texel>(n);
  test.launch("fetch_1d", {1, 64}, images.texture(resource_of(row), description), n, test.upload(x), out);
  test.near("a line", first_channel(test.download(out)), want_line, 1e-6);
  test.launch("fetch_3d", {1, 64}, images.texture(resource_of(cube), description), n, test.upload(x), test.upload(y),
              test.upload(z), out);
  test.near("a box", first_channel(test.download(out)), want_box, 1e-6);
}

void layers(Test& test) {
  Images images(test);
  const int n = 96;
  std::vector<float> data, x, y, want;
  std::vector<int> layer;
  for (int i = 0; i < 3 * 4 * 8; ++i) data.push_back(static_cast<float>(i));
  for (int i = 0; i < n; ++i) {
    layer.push_back(i / 32);
    x.push_back(0.25f + static_cast<float>(i % 8));
    y.push_back(0.75f + static_cast<float>(i / 8 % 4));
    want.push_back(static_cast<float>(i));
  }
  const CUarray array = images.array({8, 4, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, data);
  if (!test.ok()) return;
  const auto description = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
  const auto out = test.zeros<Texel>(n);
  test.launch("fetch_layer", {1, 96}, images.texture(resource_of(array), description), n, test.upload(layer),
              test.upload(x), test.upload(y), out);
  test.equal("layers", first_channel(test.download(out)), want);
}

// The PTX ISA, suld and sust: .trap faults outside, .zero reads 0 and drops writes, .clamp takes the nearest element.
void surfaces(Test& test) {
  Images images(test);
  const int width = 20, height = 6;
  const auto data = integers(width * height, 6, -100, 100);
  const CUDA_ARRAY3D_DESCRIPTOR shape{width, height, 0, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  const CUarray in = images.array(shape, data), out = images.array(shape, std::vector<int>(width * height));
  if (!test.ok()) return;
  const CUsurfObject source = images.surface(in), target = images.surface(out);
  test.launch("surface_map", {{1, height}, 32}, source, target, width, height);
  test.synchronize();
  std::vector<int> got(width * height), want;
  for (const int value : data) want.push_back(3 * value + 1);
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY, back.srcArray = out;
  back.dstMemoryType = CU_MEMORYTYPE_HOST, back.dstHost = got.data(), back.dstPitch = width * 4;
  back.WidthInBytes = width * 4, back.Height = height;
  test.expect_code("cuMemcpy2D", driver().cuMemcpy2D(&back), CUDA_SUCCESS);
  test.equal("mapped", got, want);
  const std::vector<int> x{-1, width, 3, 5, -9, width + 4}, y{0, 2, -1, height, -2, height + 1};
  const auto zero = test.upload(std::vector<int>(6, 9)), clamp = test.upload(std::vector<int>(6, 9));
  test.launch("surface_edges", {1, 6}, target, 6, test.upload(x), test.upload(y), zero, clamp);
  std::vector<int> nearest;
  for (int i = 0; i < 6; ++i)
    nearest.push_back(want[std::clamp(y[i], 0, height - 1) * width + std::clamp(x[i], 0, width - 1)]);
  test.equal(".zero", test.download(zero), std::vector<int>(6));
  test.equal(".clamp", test.download(clamp), nearest);
  test.expect_code("cuMemcpy2D", driver().cuMemcpy2D(&back), CUDA_SUCCESS);
  test.equal("writes outside vanish", got, want);
}

void descriptions(Test& test) {
  Images images(test);
  const auto memory = upload_for_texture(test, std::vector<float>(1024));
  auto resource = linear_memory(memory.address, CU_AD_FORMAT_FLOAT, 1, 4096);
  const auto description = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT);
  const CUtexObject texture = images.texture(resource, description);
  CUDA_RESOURCE_DESC got{};
  CUDA_TEXTURE_DESC got_sampling{};
  test.expect_code("resource", driver().cuTexObjectGetResourceDesc(&got, texture), CUDA_SUCCESS);
  test.expect_value("type", got.resType, CU_RESOURCE_TYPE_LINEAR);
  test.expect_value("bytes", static_cast<long long>(got.res.linear.sizeInBytes), 4096);
  test.expect_code("sampling", driver().cuTexObjectGetTextureDesc(&got_sampling, texture), CUDA_SUCCESS);
  test.expect_value("mode", got_sampling.addressMode[0], CU_TR_ADDRESS_MODE_CLAMP);
  CUtexObject none = 0;
  resource.res.linear.devPtr += 4;
  test.expect_code("a pointer off CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT",
                   driver().cuTexObjectCreate(&none, &resource, &description, nullptr), CUDA_ERROR_INVALID_VALUE);
  resource = linear_memory(memory.address, CU_AD_FORMAT_FLOAT, 3, 4096);
  test.expect_code("three channels", driver().cuTexObjectCreate(&none, &resource, &description, nullptr),
                   CUDA_ERROR_INVALID_VALUE);
  CUsurfObject surface = 0;
  resource = linear_memory(memory.address, CU_AD_FORMAT_FLOAT, 1, 4096);
  test.expect_code("a surface of linear memory", driver().cuSurfObjectCreate(&surface, &resource),
                   CUDA_ERROR_INVALID_VALUE);
}

constexpr Case kCases[] = {
    {"point_filter", "textures", point_filter},
    {"linear_filter", "textures", linear_filter, Bits::kFree},
    {"linear_memory_fetch", "textures", linear_memory_fetch},
    {"formats", "textures", formats, Bits::kFree},
    {"one_and_three_dimensions", "textures", one_and_three_dimensions, Bits::kFree},
    {"layers", "textures", layers},
    {"surfaces", "textures", surfaces},
    {"descriptions", nullptr, descriptions},
};

}  // namespace

const Field kTextures{"textures", kCases};

}  // namespace softgpu::conformance
