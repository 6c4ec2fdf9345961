// Input data of cases: pure functions of a seed.
#pragma once

#include <vector>

#include "softgpu/conformance/kernels/philox.h"

namespace softgpu::conformance {

inline unsigned random_word(unsigned seed, std::size_t index) {
  return philox(index, seed).word[0];
}

inline std::vector<float> uniform(std::size_t count, unsigned seed, float low = -1, float high = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = low + (high - low) * unit_float(random_word(seed, i));
  return values;
}

inline std::vector<double> uniform_double(std::size_t count, unsigned seed, double low = -1, double high = 1) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = low + (high - low) * (random_word(seed, i) / 4294967296.0);
  return values;
}

// In 0 .. bound - 1; all 32-bit words for bound 0.
inline std::vector<unsigned> words(std::size_t count, unsigned seed, unsigned bound = 0) {
  std::vector<unsigned> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = random_word(seed, i);
    if (bound != 0) values[i] %= bound;
  }
  return values;
}

inline std::vector<int> integers(std::size_t count, unsigned seed, int low, int high) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = low + static_cast<int>(random_word(seed, i) % static_cast<unsigned>(high - low + 1));
  }
  return values;
}

}  // namespace softgpu::conformance
