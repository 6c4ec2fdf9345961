// Layers of neural networks.
#include <algorithm>
#include <numeric>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

// Results of approximate functions: a few units in the last place, times the operations.
constexpr double kApproximate = 2e-5;

std::vector<double> softmax_of(const float* values, int count) {
  const double greatest = *std::max_element(values, values + count);
  std::vector<double> out(count);
  for (int i = 0; i < count; ++i) out[i] = std::exp(values[i] - greatest);
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& value : out) value /= sum;
  return out;
}

std::vector<float> to_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

void softmax(Test& test) {
  const int rows = 10, width = 333;
  const auto in = uniform(rows * width, 1, -10, 10);
  const auto out = test.zeros<float>(in.size());
  test.launch("softmax", {3, 128}, rows, width, test.upload(in), out);
  std::vector<float> want;
  for (int row = 0; row < rows; ++row) {
    const auto line = softmax_of(&in[row * width], width);
    want.insert(want.end(), line.begin(), line.end());
  }
  test.near("probabilities", test.download(out), want, kApproximate);
}

void layernorm(Test& test) {
  const int rows = 6, width = 500;
  const float epsilon = 1e-5f;
  const auto in = uniform(rows * width, 2, 3, 9), gain = uniform(width, 3), bias = uniform(width, 4);
  const auto out = test.zeros<float>(in.size());
  test.launch("layernorm", {rows, 128}, width, epsilon, test.upload(gain), test.upload(bias), test.upload(in), out);
  std::vector<float> want(in.size());
  for (int row = 0; row < rows; ++row) {
    double mean = 0, square = 0;
    for (int i = 0; i < width; ++i) mean += in[row * width + i] / static_cast<double>(width);
    for (int i = 0; i < width; ++i) square += std::pow(in[row * width + i] - mean, 2) / width;
    for (int i = 0; i < width; ++i) {
      const double normal = (in[row * width + i] - mean) / std::sqrt(square + epsilon);
      want[row * width + i] = static_cast<float>(normal * gain[i] + bias[i]);
    }
  }
  test.near("normalised", test.download(out), want, kApproximate);
}

void flash_attention(Test& test) {
  const int heads = 2, length = 45, size = 32;
  const float scale = 0.176776695f;
  const auto q = uniform(heads * length * size, 5), k = uniform(q.size(), 6, -2, 2), v = uniform(q.size(), 7);
  const auto out = test.zeros<float>(q.size());
  test.launch("flash_attention", {{3, heads}, {32, 16}}, length, scale, test.upload(q), test.upload(k), test.upload(v),
              out);
  std::vector<double> want(q.size());
  for (int head = 0; head < heads; ++head) {
    for (int query = 0; query < length; ++query) {
      const std::size_t base = static_cast<std::size_t>(head) * length * size;
      std::vector<float> scores(query + 1);
      for (int key = 0; key <= query; ++key) {
        double sum = 0;
        for (int d = 0; d < size; ++d)
          sum += static_cast<double>(q[base + query * size + d]) * k[base + key * size + d];
        scores[key] = static_cast<float>(sum * scale);
      }
      const auto weights = softmax_of(scores.data(), query + 1);
      for (int key = 0; key <= query; ++key) {
        for (int d = 0; d < size; ++d) want[base + query * size + d] += weights[key] * v[base + key * size + d];
      }
    }
  }
  test.near("attention", test.download(out), to_floats(want), kApproximate);
}

void gelu(Test& test) {
  const int n = 3000;
  const auto in = uniform(n, 8, -6, 6);
  const auto out = test.zeros<float>(n);
  test.launch("gelu", {12, 256}, n, test.upload(in), out);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) {
    const double x = in[i];
    want[i] = static_cast<float>(0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))));
  }
  test.near("gelu", test.download(out), want, kApproximate);
}

void rope(Test& test) {
  const int positions = 20, half = 32, heads = 3;
  auto values = uniform(positions * 2 * half * heads, 9);
  std::vector<float> frequencies(half);
  for (int i = 0; i < half; ++i) frequencies[i] = static_cast<float>(std::pow(10000.0, -i / static_cast<double>(half)));
  const auto device = test.upload(values);
  test.launch("rope", {{positions, heads}, half}, positions, half, test.upload(frequencies), device);
  for (int row = 0; row < heads * positions; ++row) {
    for (int i = 0; i < half; ++i) {
      float &a = values[row * 2 * half + i], &b = values[row * 2 * half + i + half];
      const double angle = static_cast<double>(static_cast<float>(row % positions) * frequencies[i]);
      const double x = a, y = b;
      a = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
      b = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
    }
  }
  test.near("heads", test.download(device), values, kApproximate);
}

void embedding(Test& test) {
  const int tokens = 24, width = 70, vocabulary = 50;
  const auto ids = integers(tokens, 10, -1, vocabulary - 1);
  const auto table = uniform(vocabulary * width, 11), positions = uniform(tokens * width, 12);
  const auto out = test.zeros<float>(tokens * width);
  test.launch("embedding", {6, {32, 4}}, width, test.upload(ids), test.upload(table), test.upload(positions), out);
  std::vector<float> want(tokens * width);
  for (int i = 0; i < tokens * width; ++i) {
    if (ids[i / width] >= 0) want[i] = table[ids[i / width] * width + i % width] + positions[i];
  }
  test.equal("embedded", test.download(out), want);
}

void top_k(Test& test) {
  const int rows = 3, width = 700, k = 10;
  auto in = uniform(rows * width, 13);
  for (float& value : in) value = std::round(value * 100) / 100;  // many ties
  const auto places = test.zeros<int>(rows * k);
  test.launch("top_k", {rows, 128}, width, k, test.upload(in), places);
  std::vector<int> want;
  for (int row = 0; row < rows; ++row) {
    std::vector<int> order(width);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return in[row * width + a] > in[row * width + b]; });
    want.insert(want.end(), order.begin(), order.begin() + k);
  }
  // -0.0 and 0.0 have different keys, so compare what is found, not where.
  const auto found = test.download(places);
  std::vector<float> got_values, want_values;
  for (int i = 0; i < rows * k && test.ok(); ++i) {
    got_values.push_back(in[i / k * width + found[i]]);
    want_values.push_back(in[i / k * width + want[i]]);
  }
  test.equal("greatest", got_values, want_values);
  test.equal("places", found, want);
}

void backprop(Test& test) {
  const int inputs = 96, outputs = 32;
  const float rate = 0.3f, momentum = 0.3f;
  const auto weights = uniform(inputs * outputs, 14), in = uniform(inputs, 15), delta = uniform(outputs, 16);
  const auto device_weights = test.upload(weights), device_in = test.upload(in);
  const auto out = test.zeros<float>(outputs), previous = test.zeros<float>(weights.size());
  test.launch("backprop_forward", {outputs / 16, {16, 16}}, inputs, outputs, device_weights, device_in, out);
  test.launch("backprop_update", {{outputs / 16, inputs / 16}, {16, 16}}, outputs, rate, momentum, test.upload(delta),
              device_in, device_weights, previous);
  std::vector<float> activations(outputs), updated(weights.size());
  for (int unit = 0; unit < outputs; ++unit) {
    double sum = 0;
    for (int i = 0; i < inputs; ++i) sum += static_cast<double>(in[i]) * weights[i * outputs + unit];
    activations[unit] = static_cast<float>(1 / (1 + std::exp(-sum)));
    for (int i = 0; i < inputs; ++i) {
      updated[i * outputs + unit] = weights[i * outputs + unit] + std::fma(rate * delta[unit], in[i], momentum * 0.0f);
    }
  }
  test.near("activations", test.download(out), activations, kApproximate);
  test.equal("weights", test.download(device_weights), updated);
}

void convolution_layer(Test& test) {
  const int images = 2, channels = 3, height = 15, width = 16, filters = 5, out_height = 8, out_width = 8;
  const auto in = uniform(images * channels * height * width, 17), weights = uniform(filters * channels * 9, 18);
  const auto bias = uniform(filters, 19);
  const auto out = test.zeros<float>(images * filters * out_height * out_width);
  test.launch("convolution_layer", {{filters, images}, {out_width, out_height}}, channels, height, width,
              test.upload(in), test.upload(weights), test.upload(bias), out);
  std::vector<float> want(out.count);
  for (std::size_t at = 0; at < want.size(); ++at) {
    const int x = at % out_width, y = at / out_width % out_height, filter = at / (out_width * out_height) % filters;
    const int image = at / (out_width * out_height * filters);
    float sum = bias[filter];
    for (int i = 0; i < channels * 9; ++i) {
      const int sy = 2 * y + i % 9 / 3 - 1, sx = 2 * x + i % 3 - 1;
      if (sy < 0 || sx < 0 || sy >= height || sx >= width) continue;
      sum = std::fma(weights[filter * channels * 9 + i], in[((image * channels + i / 9) * height + sy) * width + sx],
                     sum);
    }
    want[at] = std::max(sum, 0.0f);
  }
  test.equal("features", test.download(out), want);
}

void cross_entropy(Test& test) {
  const int samples = 12, classes = 100;
  const auto logits = uniform(samples * classes, 20, -5, 5);
  const auto labels = integers(samples, 21, 0, classes - 1);
  const auto losses = test.zeros<float>(samples), gradient = test.zeros<float>(logits.size());
  test.launch("cross_entropy", {samples, 32}, classes, test.upload(logits), test.upload(labels), losses, gradient);
  std::vector<float> want_losses, want_gradient;
  for (int sample = 0; sample < samples; ++sample) {
    const auto probabilities = softmax_of(&logits[sample * classes], classes);
    want_losses.push_back(static_cast<float>(-std::log(probabilities[labels[sample]])));
    for (int i = 0; i < classes; ++i) {
      want_gradient.push_back(static_cast<float>(probabilities[i] - (i == labels[sample] ? 1 : 0)));
    }
  }
  test.near("losses", test.download(losses), want_losses, kApproximate);
  test.near("gradient", test.download(gradient), want_gradient, kApproximate);
}

constexpr Case kCases[] = {
    {"softmax", "neural", softmax, Bits::kFree},
    {"layernorm", "neural", layernorm},
    {"flash_attention", "neural", flash_attention, Bits::kFree},
    {"gelu", "neural", gelu, Bits::kFree},
    {"rope", "neural", rope, Bits::kFree},
    {"embedding", "neural", embedding},
    {"top_k", "neural", top_k},
    {"backprop", "neural", backprop, Bits::kFree},
    {"convolution_layer", "neural", convolution_layer},
    {"cross_entropy", "neural", cross_entropy, Bits::kFree},
};

}  // namespace

const Field kNeural{"neural", kCases};

}  // namespace softgpu::conformance
