// Host reference: one row after another.
#pragma once

#include <vector>

namespace fairlead::sample::pathfinder {

// The costs the kernel generates, row by row.
std::vector<int> wall(unsigned seed, int rows, int columns);

// The cost of the cheapest path to each cell of the last row.
std::vector<int> cheapest_paths(const std::vector<int>& wall, int rows, int columns);

}  // namespace fairlead::sample::pathfinder
