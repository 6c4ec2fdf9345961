#include "ffmpeg/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ffmpeg/codec.h"

namespace fairlead::sample::ffmpeg {
namespace {

constexpr int kBlock = 8;
using Block = std::array<std::array<int, kBlock>, kBlock>;

std::vector<int> scaled_picture(const Video& video, int frame) {
  const auto source = [&](int x, int y) {
    return generated_pixel(std::min(x, video.source_width - 1), std::min(y, video.source_height - 1), frame,
                           video.seed);
  };
  std::vector<int> picture;
  for (int row = 0; row < video.height; ++row) {
    for (int column = 0; column < video.width; ++column) {
      const int px = source_position(column, video.source_width, video.width);
      const int py = source_position(row, video.source_height, video.height);
      const int x = px >> 8;
      const int y = py >> 8;
      picture.push_back(
          bilinear(source(x, y), source(x + 1, y), source(x, y + 1), source(x + 1, y + 1), px & 0xff, py & 0xff));
    }
  }
  return picture;
}

Block multiply(const Block& a, const Block& b) {
  Block product{};
  for (std::size_t i = 0; i < kBlock; ++i) {
    for (std::size_t j = 0; j < kBlock; ++j) {
      for (std::size_t k = 0; k < kBlock; ++k) product[i][j] += a[i][k] * b[k][j];
    }
  }
  return product;
}

Block transposed(const Block& a) {
  Block result{};
  for (std::size_t i = 0; i < kBlock; ++i) {
    for (std::size_t j = 0; j < kBlock; ++j) result[j][i] = a[i][j];
  }
  return result;
}

Block matrix_block() {
  const std::vector<int> values = cosine_matrix();
  Block block{};
  for (std::size_t i = 0; i < values.size(); ++i) block[i / kBlock][i % kBlock] = values[i];
  return block;
}

}  // namespace

std::vector<int> cosine_matrix() {
  std::vector<int> matrix;
  for (int k = 0; k < kBlock; ++k) {
    for (int x = 0; x < kBlock; ++x) {
      const double norm = k == 0 ? std::sqrt(1.0 / kBlock) : std::sqrt(2.0 / kBlock);
      matrix.push_back(
          static_cast<int>(std::lround(128 * norm * std::cos((2 * x + 1) * k * std::numbers::pi / (2 * kBlock)))));
    }
  }
  return matrix;
}

EncodedFrame encode_frame(const Video& video, int frame) {
  const std::vector<int> picture = scaled_picture(video, frame);
  const Block matrix = matrix_block();
  EncodedFrame encoded;
  encoded.levels.resize(picture.size());
  for (int top = 0; top < video.height; top += kBlock) {
    for (int left = 0; left < video.width; left += kBlock) {
      const auto at = [&](int v, int u) { return static_cast<std::size_t>((top + v) * video.width + left + u); };
      Block pixels{};
      for (int v = 0; v < kBlock; ++v) {
        for (int u = 0; u < kBlock; ++u) {
          pixels[static_cast<std::size_t>(v)][static_cast<std::size_t>(u)] = picture[at(v, u)] - 128;
        }
      }
      Block block = multiply(multiply(matrix, pixels), transposed(matrix));
      for (int v = 0; v < kBlock; ++v) {
        for (int u = 0; u < kBlock; ++u) {
          int& value = block[static_cast<std::size_t>(v)][static_cast<std::size_t>(u)];
          const int step = quantiser_step(u, v, video.quality);
          const int level = quantise(value, step);
          encoded.levels[at(v, u)] = level;
          encoded.bits += level_bits(level);
          value = level * step;
        }
      }
      block = multiply(multiply(transposed(matrix), block), matrix);
      for (std::size_t i = 0; i < kBlock * kBlock; ++i) {
        const int decoded = (block[i / kBlock][i % kBlock] + (1 << (kCoefficientShift - 1))) >> kCoefficientShift;
        const int error = decoded - pixels[i / kBlock][i % kBlock];
        encoded.squared_error += error * error;
      }
    }
  }
  return encoded;
}

}  // namespace fairlead::sample::ffmpeg
