#include "needle/reference.h"

#include <algorithm>

#include "fairlead/random.h"

namespace fairlead::sample::needle {

Sequences sequences(unsigned seed, int n) {
  Sequences result;
  for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) {
    result.a.push_back(random_below(kResidues, seed, i));
    result.b.push_back(random_below(kResidues, seed ^ 0x5bd1e995u, i));
  }
  return result;
}

std::vector<int> similarity_table() {
  constexpr unsigned kTableSeed = 62;
  std::vector<int> table(kResidues * kResidues);
  for (unsigned i = 0; i < kResidues; ++i) {
    for (unsigned j = 0; j < kResidues; ++j) {
      const unsigned bits = random_bits(kTableSeed, std::min(i, j) * kResidues + std::max(i, j));
      table[i * kResidues + j] = i == j ? 4 + static_cast<int>(bits % 6) : static_cast<int>(bits % 8) - 4;
    }
  }
  return table;
}

std::vector<int> scores(const Sequences& sequences, const std::vector<int>& similarity, int gap) {
  const std::size_t n = sequences.a.size();
  const std::size_t pitch = n + 1;
  std::vector<int> score(pitch * pitch);
  for (std::size_t i = 0; i <= n; ++i) score[i] = score[i * pitch] = -static_cast<int>(i) * gap;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= n; ++j) {
      const auto pair = static_cast<std::size_t>(sequences.a[i - 1] * kResidues + sequences.b[j - 1]);
      const int matched = score[(i - 1) * pitch + j - 1] + similarity[pair];
      const int gapped = std::max(score[(i - 1) * pitch + j], score[i * pitch + j - 1]) - gap;
      score[i * pitch + j] = std::max(matched, gapped);
    }
  }
  return score;
}

}  // namespace fairlead::sample::needle
