#include "fft/reference.h"

#include <numbers>

#include "fairlead/random.h"

namespace fairlead::sample::fft {

std::vector<std::complex<double>> signal(unsigned seed, int n, int index) {
  std::vector<std::complex<double>> values(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    const unsigned at = 2 * static_cast<unsigned>(index * n + i);
    values[static_cast<std::size_t>(i)] = {random_uniform(seed, at), random_uniform(seed, at + 1)};
  }
  return values;
}

std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& input) {
  const std::size_t n = input.size();
  if (n == 1) return input;
  std::vector<std::complex<double>> even(n / 2), odd(n / 2), output(n);
  for (std::size_t i = 0; i < n / 2; ++i) {
    even[i] = input[2 * i];
    odd[i] = input[2 * i + 1];
  }
  even = transform(even);
  odd = transform(odd);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    const std::complex<double> turned = std::polar(1.0, angle) * odd[k];
    output[k] = even[k] + turned;
    output[k + n / 2] = even[k] - turned;
  }
  return output;
}

}  // namespace fairlead::sample::fft
