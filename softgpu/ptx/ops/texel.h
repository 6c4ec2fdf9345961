// Reading elements of textures: addressing modes, channel formats, filtering.
//
// Linear filtering as the hardware does it: the coordinate less one half names the lower neighbour; the weights of the
// upper ones have 8 bits. In one dimension x = 2.25 lies between elements 1 and 2 with weight 0.75 for element 2.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/texture.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

// Four channels as the registers get them: bits of f32 or of 32-bit integers.
struct Texel {
  std::uint32_t bits[4] = {0, 0, 0, 0};
};

inline std::size_t channel_bytes(TextureDescription::Channel channel) {
  using Channel = TextureDescription::Channel;
  switch (channel) {
    case Channel::kU8:
    case Channel::kS8: return 1;
    case Channel::kU16:
    case Channel::kS16:
    case Channel::kF16: return 2;
    default: return 4;
  }
}

// Whether elements arrive as f32.
inline bool is_float_texture(const TextureDescription& texture) {
  using Channel = TextureDescription::Channel;
  const bool is_float = texture.channel == Channel::kF16 || texture.channel == Channel::kF32;
  return is_float || (texture.reads_normalised && channel_bytes(texture.channel) < 4);
}

inline float linear_light(float value) {
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

inline std::uint32_t channel_value(const TextureDescription& texture, const std::byte* host, unsigned index) {
  using Channel = TextureDescription::Channel;
  const auto raw = [&](auto value) {
    std::memcpy(&value, host + index * sizeof value, sizeof value);
    return value;
  };
  const auto scaled = [&](auto value, float most) -> std::uint32_t {
    if (!texture.reads_normalised) return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    float result = std::max(static_cast<float>(value) / most, -1.0f);
    if (texture.is_srgb && sizeof value == 1 && index < 3) result = linear_light(result);
    return std::bit_cast<std::uint32_t>(result);
  };
  switch (texture.channel) {
    case Channel::kU8: return scaled(raw(std::uint8_t{}), 255.0f);
    case Channel::kS8: return scaled(raw(std::int8_t{}), 127.0f);
    case Channel::kU16: return scaled(raw(std::uint16_t{}), 65535.0f);
    case Channel::kS16: return scaled(raw(std::int16_t{}), 32767.0f);
    case Channel::kF16: return std::bit_cast<std::uint32_t>(static_cast<float>(raw(_Float16{})));
    default: return raw(std::uint32_t{});
  }
}

// Index `i` of an axis of `count` elements brought into the texture; -1: the border is read.
inline std::int64_t addressed(const TextureDescription& texture, int axis, std::int64_t i, std::int64_t count) {
  using Addressing = TextureDescription::Addressing;
  Addressing mode = texture.addressing[static_cast<std::size_t>(axis)];
  if (i >= 0 && i < count) return i;
  // Wrapping and mirroring exist for normalised coordinates only.
  if (!texture.is_normalised && mode != Addressing::kBorder) mode = Addressing::kClamp;
  const auto modulo = [](std::int64_t value, std::int64_t by) { return ((value % by) + by) % by; };
  switch (mode) {
    case Addressing::kBorder: return -1;
    case Addressing::kClamp: return std::clamp<std::int64_t>(i, 0, count - 1);
    case Addressing::kWrap: return modulo(i, count);
    case Addressing::kMirror: break;
  }
  const std::int64_t j = modulo(i, 2 * count);
  return j < count ? j : 2 * count - 1 - j;
}

// One access of one lane. `ok` becomes false after a fault.
class TexelReader {
 public:
  TexelReader(Warp& warp, const Instruction* at, const TextureDescription& texture, int lane)
      : warp_(warp), at_(at), texture_(texture), lane_(lane) {
    counts_[0] = static_cast<std::int64_t>(std::max<std::size_t>(texture.width, 1));
    counts_[1] = static_cast<std::int64_t>(std::max<std::size_t>(texture.height, 1));
    counts_[2] = static_cast<std::int64_t>(std::max<std::size_t>(texture.depth, 1));
  }
  bool ok = true;

  // The element at indices of which the first `axes` are subject to the addressing modes; the others are exact.
  Texel element(const std::int64_t (&index)[3], int axes) {
    std::int64_t inside[3];
    for (int axis = 0; axis < 3; ++axis) {
      inside[axis] = axis < axes ? addressed(texture_, axis, index[axis], counts_[axis]) : index[axis];
      if (inside[axis] < 0 || inside[axis] >= counts_[axis]) return border();
    }
    const std::size_t bytes = texture_.channels * channel_bytes(texture_.channel);
    const std::uint64_t address = texture_.base + static_cast<std::uint64_t>(inside[2]) * texture_.slice_bytes +
                                  static_cast<std::uint64_t>(inside[1]) * texture_.pitch_bytes +
                                  static_cast<std::uint64_t>(inside[0]) * bytes;
    const std::byte* host = locate(warp_, at_, Space::kGlobal, address, bytes, lane_);
    ok = ok && host != nullptr;
    if (host == nullptr) return {};
    Texel out = absent();
    for (unsigned i = 0; i < texture_.channels && i < 4; ++i) out.bits[i] = channel_value(texture_, host, i);
    return out;
  }

  // At f32 coordinates, `axes` of them; index[2] is the layer when axes is less than 3.
  Texel sample(const float (&coordinates)[3], int axes, std::int64_t layer) {
    std::int64_t low[3] = {0, 0, layer};
    float weight[3] = {0, 0, 0};
    const bool filters = texture_.is_linear && is_float_texture(texture_);
    for (int axis = 0; axis < axes; ++axis) {
      double at = coordinates[axis];
      if (texture_.is_normalised) at *= static_cast<double>(counts_[axis]);
      if (filters) at -= 0.5;
      if (!(std::fabs(at) < 0x1p40)) at = at > 0 ? 0x1p40 : at < 0 ? -0x1p40 : 0;
      const double floor = std::floor(at);
      low[axis] = static_cast<std::int64_t>(floor);
      weight[axis] = static_cast<float>(std::floor((at - floor) * 256 + 0.5) / 256);
    }
    return filters ? filtered(low, weight, axes) : element(low, axes);
  }

 private:
  Texel filtered(const std::int64_t (&low)[3], const float (&weight)[3], int axes) {
    float sums[4] = {0, 0, 0, 0};
    for (int corner = 0; corner < 1 << axes; ++corner) {
      std::int64_t index[3] = {low[0], low[1], low[2]};
      float share = 1;
      for (int axis = 0; axis < axes; ++axis) {
        const bool upper = (corner >> axis & 1) != 0;
        index[axis] += upper ? 1 : 0;
        share *= upper ? weight[axis] : 1 - weight[axis];
      }
      if (share == 0) continue;
      const Texel texel = element(index, axes);
      for (int i = 0; i < 4; ++i) sums[i] += share * std::bit_cast<float>(texel.bits[i]);
    }
    Texel out;
    for (int i = 0; i < 4; ++i) out.bits[i] = std::bit_cast<std::uint32_t>(sums[i]);
    return out;
  }

  // Channels the texture does not have.
  Texel absent() const { return {{0, 0, 0, is_float_texture(texture_) ? 0x3f800000u : 1u}}; }
  Texel border() const {
    Texel out;
    for (std::size_t i = 0; i < 4; ++i) out.bits[i] = std::bit_cast<std::uint32_t>(texture_.border[i]);
    return out;
  }

  Warp& warp_;
  const Instruction* at_;
  const TextureDescription& texture_;
  int lane_;
  std::int64_t counts_[3];
};

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
