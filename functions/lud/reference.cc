#include "lud/reference.h"

#include "fairlead/random.h"

namespace fairlead::sample::lud {

std::vector<double> matrix(unsigned seed, int n) {
  std::vector<double> values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random_uniform(seed, static_cast<unsigned>(i));
  // As the kernel does, the dominant diagonal is added in single precision.
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    double& diagonal = values[i * static_cast<std::size_t>(n) + i];
    diagonal = static_cast<float>(diagonal) + static_cast<float>(n);
  }
  return values;
}

void decompose(std::vector<double>& values, int n) {
  const auto at = [&](int row, int column) -> double& { return values[static_cast<std::size_t>(row * n + column)]; };
  for (int k = 0; k < n; ++k) {
    for (int row = k + 1; row < n; ++row) {
      at(row, k) /= at(k, k);
      for (int column = k + 1; column < n; ++column) at(row, column) -= at(row, k) * at(k, column);
    }
  }
}

}  // namespace fairlead::sample::lud
