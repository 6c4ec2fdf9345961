// Stencils and images.
#include <algorithm>
#include <array>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

Dim blocks_of(int width, int height, int block_width, int block_height) {
  return {static_cast<unsigned>((width + block_width - 1) / block_width),
          static_cast<unsigned>((height + block_height - 1) / block_height)};
}

void jacobi(Test& test) {
  const int n = 60;
  auto from = uniform(n * n, 1), to = from;
  auto a = test.upload(from), b = test.upload(to);
  for (int step = 0; step < 10; ++step) {
    test.launch("jacobi", {blocks_of(n, n, 32, 8), {32, 8}}, n, a, b);
    std::swap(a, b);
    for (int y = 1; y < n - 1; ++y) {
      for (int x = 1; x < n - 1; ++x) {
        const float* at = &from[y * n + x];
        to[y * n + x] = 0.25f * ((at[-1] + at[1]) + (at[-n] + at[n]));
      }
    }
    std::swap(from, to);
  }
  test.equal("grid", test.download(a), from);
}

void heat3d(Test& test) {
  const int n = 20;
  const float rate = 0.1f;
  auto from = uniform(n * n * n, 2), to = from;
  auto a = test.upload(from), b = test.upload(to);
  for (int step = 0; step < 3; ++step) {
    test.launch("heat3d", {{3, 5, 10}, {8, 4, 2}}, n, rate, a, b);
    std::swap(a, b);
    for (int z = 1; z < n - 1; ++z) {
      for (int y = 1; y < n - 1; ++y) {
        for (int x = 1; x < n - 1; ++x) {
          const float* at = &from[(z * n + y) * n + x];
          const float around = (at[-1] + at[1]) + (at[-n] + at[n]) + (at[-n * n] + at[n * n]);
          to[(z * n + y) * n + x] = std::fma(rate, std::fma(-6.0f, *at, around), *at);
        }
      }
    }
    std::swap(from, to);
  }
  test.equal("grid", test.download(a), from);
}

std::vector<float> hotspot_step(int n, const std::vector<float>& power, const std::vector<float>& from) {
  std::vector<float> to(from.size());
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      const float here = from[y * n + x];
      const float west = x == 0 ? here : from[y * n + x - 1], east = x == n - 1 ? here : from[y * n + x + 1];
      const float north = y == 0 ? here : from[(y - 1) * n + x], south = y == n - 1 ? here : from[(y + 1) * n + x];
      to[y * n + x] = here + 0.1f * (power[y * n + x] + (north + south - 2.0f * here) + (east + west - 2.0f * here) +
                                     (80.0f - here) * 0.05f);
    }
  }
  return to;
}

void hotspot(Test& test) {
  const int n = 50;
  const auto power = uniform(n * n, 3, 0, 5), start = uniform(n * n, 4, 60, 90);
  const auto out = test.zeros<float>(n * n);
  test.launch("hotspot", {blocks_of(n, n, 16, 16), {20, 20}}, n, test.upload(power), test.upload(start), out);
  test.equal("temperature", test.download(out), hotspot_step(n, power, hotspot_step(n, power, start)));
}

void convolution(Test& test) {
  const int width = 75, height = 33;
  const auto in = uniform(width * height, 5), filter = uniform(25, 6);
  const auto constant = test.global<float>("filter");
  test.expect_value("elements of the filter", static_cast<long long>(constant.count), 25);
  if (!test.ok()) return;
  test.check(driver().cuMemcpyHtoD(constant.address, filter.data(), 100), "cuMemcpyHtoD");
  const auto out = test.zeros<float>(in.size());
  test.launch("convolution", {blocks_of(width, height, 32, 4), {32, 4}}, width, height, test.upload(in), out);
  std::vector<float> want(in.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float& sum = want[y * width + x];
      for (int i = 0; i < 25; ++i) {
        const int row = std::clamp(y + i / 5 - 2, 0, height - 1), column = std::clamp(x + i % 5 - 2, 0, width - 1);
        sum = std::fma(filter[i], in[row * width + column], sum);
      }
    }
  }
  test.equal("image", test.download(out), want);
}

void blur_rows(Test& test) {
  const int width = 300, height = 9;
  const auto in = uniform(width * height, 7), weights = uniform(17, 8, 0, 0.1f);
  const auto out = test.zeros<float>(in.size());
  test.launch("blur_rows", {{3, height}, 128}, width, test.upload(weights), test.upload(in), out);
  std::vector<float> want(in.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float& sum = want[y * width + x];
      for (int i = 0; i < 17; ++i) {
        sum = std::fma(weights[i], in[y * width + std::clamp(x + i - 8, 0, width - 1)], sum);
      }
    }
  }
  test.equal("image", test.download(out), want);
}

unsigned bilinear(int in_width, int in_height, const std::vector<unsigned>& in, float u, float v) {
  const float sx = std::max(u, 0.0f), sy = std::max(v, 0.0f);
  const int x0 = static_cast<int>(sx), y0 = static_cast<int>(sy);
  const int x1 = std::min(x0 + 1, in_width - 1), y1 = std::min(y0 + 1, in_height - 1);
  unsigned pixel = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const auto channel = [&](int x, int y) { return static_cast<float>(in[y * in_width + x] >> shift & 255); };
    const float fx = sx - static_cast<float>(x0), fy = sy - static_cast<float>(y0);
    const float top = std::fma(fx, channel(x1, y0) - channel(x0, y0), channel(x0, y0));
    const float bottom = std::fma(fx, channel(x1, y1) - channel(x0, y1), channel(x0, y1));
    pixel |= static_cast<unsigned>(std::fma(fy, bottom - top, top) + 0.5f) << shift;
  }
  return pixel;
}

void resize_bilinear(Test& test) {
  const int in_width = 40, in_height = 31, width = 97, height = 53;
  const auto in = words(in_width * in_height, 9);
  const auto out = test.zeros<unsigned>(width * height);
  test.launch("resize_bilinear", {blocks_of(width, height, 32, 8), {32, 8}}, in_width, in_height, test.upload(in),
              width, height, out);
  std::vector<unsigned> want(width * height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      want[y * width + x] = bilinear(in_width, in_height, in, (x + 0.5f) * in_width / width - 0.5f,
                                     (y + 0.5f) * in_height / height - 0.5f);
    }
  }
  test.equal("image", test.download(out), want);
}

void median3x3(Test& test) {
  const int width = 61, height = 40;
  const auto noise = words(width * height, 10, 256);
  const std::vector<unsigned char> in(noise.begin(), noise.end());
  const auto out = test.zeros<unsigned char>(in.size());
  test.launch("median3x3", {blocks_of(width, height, 16, 8), {16, 8}}, width, height, test.upload(in), out);
  std::vector<unsigned char> want(in.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::array<unsigned char, 9> v{};
      for (int i = 0; i < 9; ++i) {
        v[i] = in[std::clamp(y + i / 3 - 1, 0, height - 1) * width + std::clamp(x + i % 3 - 1, 0, width - 1)];
      }
      std::nth_element(v.begin(), v.begin() + 4, v.end());
      want[y * width + x] = v[4];
    }
  }
  test.equal("image", test.download(out), want);
}

std::vector<unsigned char> next_generation(int n, const std::vector<unsigned char>& from) {
  std::vector<unsigned char> to(from.size());
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) {
      int neighbours = 0;
      for (int i = 0; i < 9; ++i) {
        if (i != 4) neighbours += from[(y + i / 3 - 1 + n) % n * n + (x + i % 3 - 1 + n) % n];
      }
      to[y * n + x] = neighbours == 3 || (neighbours == 2 && from[y * n + x] != 0);
    }
  }
  return to;
}

void life(Test& test) {
  const int n = 50;
  const auto start = words(n * n, 11, 2);
  std::vector<unsigned char> cells(start.begin(), start.end());
  auto a = test.upload(cells), b = test.upload(cells);
  for (int generation = 0; generation < 8; ++generation) {
    test.launch("life", {blocks_of(n, n, 16, 16), {16, 16}}, n, a, b);
    std::swap(a, b);
    cells = next_generation(n, cells);
  }
  test.equal("cells", test.download(a), cells);
}

float srad_coefficient(int n, float q0_squared, const std::vector<float>& image, int x, int y) {
  const float here = image[y * n + x];
  const auto gradient_to = [&](int to_x, int to_y) {
    return image[std::clamp(to_y, 0, n - 1) * n + std::clamp(to_x, 0, n - 1)] - here;
  };
  const float north = gradient_to(x, y - 1), south = gradient_to(x, y + 1);
  const float west = gradient_to(x - 1, y), east = gradient_to(x + 1, y);
  const float gradient = (north * north + south * south + west * west + east * east) / (here * here);
  const float laplacian = (north + south + west + east) / here;
  const float denominator = 1.0f + 0.25f * laplacian;
  const float q_squared = (0.5f * gradient - 0.0625f * (laplacian * laplacian)) / (denominator * denominator);
  return std::clamp(1.0f / (1.0f + (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared))), 0.0f, 1.0f);
}

void srad(Test& test) {
  const int n = 40;
  const float q0_squared = 0.05f, step = 0.5f;
  const auto image = uniform(n * n, 12, 1, 2);
  const auto coefficients = test.zeros<float>(n * n), out = test.zeros<float>(n * n);
  const auto device_image = test.upload(image);
  const Shape shape{blocks_of(n, n, 16, 16), {16, 16}};
  test.launch("srad_coefficients", shape, n, q0_squared, device_image, coefficients);
  test.launch("srad_update", shape, n, step, coefficients, device_image, out);
  std::vector<float> c(n * n), want(n * n);
  for (int i = 0; i < n * n; ++i) c[i] = srad_coefficient(n, q0_squared, image, i % n, i / n);
  for (int i = 0; i < n * n; ++i) {
    const int x = i % n, y = i / n, south = std::min(y + 1, n - 1) * n + x, east = y * n + std::min(x + 1, n - 1);
    const float here = image[i];
    const float flow = c[i] * (image[std::max(y - 1, 0) * n + x] - here) + c[south] * (image[south] - here) +
                       c[i] * (image[y * n + std::max(x - 1, 0)] - here) + c[east] * (image[east] - here);
    want[i] = here + 0.25f * step * flow;
  }
  test.equal("coefficients", test.download(coefficients), c);
  test.equal("image", test.download(out), want);
}

constexpr Case kCases[] = {
    {"jacobi", "stencil", jacobi},       {"heat3d", "stencil", heat3d},
    {"hotspot", "stencil", hotspot},     {"convolution", "stencil", convolution},
    {"blur_rows", "stencil", blur_rows}, {"resize_bilinear", "stencil", resize_bilinear},
    {"median3x3", "stencil", median3x3}, {"life", "stencil", life},
    {"srad", "stencil", srad},
};

}  // namespace

const Field kStencil{"stencil", kCases};

}  // namespace softgpu::conformance
