// What a texture or surface object is to the machine. The driver makes the objects (cuTexObjectCreate,
// cuSurfObjectCreate) and hands the machine their table with each launch (Launch::textures).
//
// Elements are plain rows in device memory: element (x, y, z) begins at base + z * slice_bytes + y * pitch_bytes +
// x * channels * size of a channel. For an array of 64 x 32 float4: width 64, height 32, depth 0, pitch_bytes 1024.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace softgpu::ptx {

struct TextureDescription {
  enum class Channel : std::uint8_t { kU8, kU16, kU32, kS8, kS16, kS32, kF16, kF32 };
  enum class Addressing : std::uint8_t { kWrap, kClamp, kMirror, kBorder };

  std::uint64_t base = 0;  // device address of the first element; every fetch is checked against live memory
  std::size_t width = 0;   // elements
  std::size_t height = 0;  // 0: one dimension
  std::size_t depth = 0;   // 0: at most two dimensions; the layers of a layered texture
  std::size_t pitch_bytes = 0;
  std::size_t slice_bytes = 0;
  Channel channel = Channel::kF32;
  unsigned channels = 1;          // 1, 2 or 4
  bool is_linear = false;         // linear filtering, else the nearest element
  bool is_normalised = false;     // coordinates in [0, 1) instead of elements
  bool reads_normalised = false;  // 8 and 16-bit integers are read as f32 in [0, 1] or [-1, 1]
  bool is_srgb = false;           // 8-bit channels but the fourth are converted to linear light
  std::array<Addressing, 3> addressing{Addressing::kClamp, Addressing::kClamp, Addressing::kClamp};
  std::array<float, 4> border{};  // what kBorder reads outside
};

// The live texture and surface objects of a context. Implemented by the driver.
class TextureTable {
 public:
  virtual ~TextureTable() = default;

  // False when no such object lives; the kernel then faults with kIllegalInstruction. Thread-safe.
  virtual bool find_texture(std::uint64_t handle, TextureDescription& out) const = 0;
  virtual bool find_surface(std::uint64_t handle, TextureDescription& out) const = 0;
};

}  // namespace softgpu::ptx
