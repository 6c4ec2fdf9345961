// Host reference: the recurrence, cell by cell.
#pragma once

#include <vector>

namespace fairlead::sample::needle {

constexpr int kResidues = 24;  // as in kernels.cu

struct Sequences {
  std::vector<int> a;
  std::vector<int> b;
};

// The sequences the kernel generates.
Sequences sequences(unsigned seed, int n);

// A symmetric table, kResidues x kResidues: 4 to 9 on the diagonal, -4 to 3 elsewhere.
std::vector<int> similarity_table();

// All (n + 1) x (n + 1) scores, row by row.
std::vector<int> scores(const Sequences& sequences, const std::vector<int>& similarity, int gap);

}  // namespace fairlead::sample::needle
