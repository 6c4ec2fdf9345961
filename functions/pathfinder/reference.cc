#include "pathfinder/reference.h"

#include <algorithm>

#include "fairlead/random.h"

namespace fairlead::sample::pathfinder {

std::vector<int> wall(unsigned seed, int rows, int columns) {
  std::vector<int> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = random_below(10, seed, static_cast<unsigned>(i));
  }
  return values;
}

std::vector<int> cheapest_paths(const std::vector<int>& wall, int rows, int columns) {
  std::vector<int> cost(wall.begin(), wall.begin() + columns);
  for (int row = 1; row < rows; ++row) {
    const std::vector<int> previous = cost;
    for (int column = 0; column < columns; ++column) {
      const auto first = previous.begin() + std::max(column - 1, 0);
      const auto last = previous.begin() + std::min(column + 2, columns);
      cost[static_cast<std::size_t>(column)] =
          wall[static_cast<std::size_t>(row * columns + column)] + *std::min_element(first, last);
    }
  }
  return cost;
}

}  // namespace fairlead::sample::pathfinder
