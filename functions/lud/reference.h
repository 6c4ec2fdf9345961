// Host reference: the textbook's three loops, in double precision.
#pragma once

#include <vector>

namespace fairlead::sample::lud {

// The matrix the kernel generates, row by row.
std::vector<double> matrix(unsigned seed, int n);

// L and U in place of the matrix, as the kernels leave them.
void decompose(std::vector<double>& matrix, int n);

}  // namespace fairlead::sample::lud
