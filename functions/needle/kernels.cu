// Needleman and Wunsch's global alignment of two sequences:
//   score[i][j] = max(score[i-1][j-1] + similarity(a[i], b[j]), score[i-1][j] - gap, score[i][j-1] - gap).
//
// Tiles of 32 x 32 on one anti-diagonal do not depend on each other, so there is a launch for each of the 2n/32 - 1
// anti-diagonals, a warp for each tile, and within a tile the same again: 63 steps, in step m lane x computes row m - x.
#include "fairlead/device.h"
#include "fairlead/random.h"

constexpr int kTile = 32;
constexpr int kResidues = 24;

extern "C" __global__ void generate_sequences(int* a, int* b, int n, unsigned seed) {
  const int i = global_thread();
  if (i >= n) return;
  a[i] = random_below(kResidues, seed, i);
  b[i] = random_below(kResidues, seed ^ 0x5bd1e995u, i);
}

// The first row and column of the (n + 1) x (n + 1) scores: gaps only.
extern "C" __global__ void start_scores(int* score, int n, int gap) {
  const int i = global_thread();
  if (i > n) return;
  score[i] = -i * gap;
  score[i * (n + 1)] = -i * gap;
}

// Tiles (first_row + k, first_column - k) for k = blockIdx.x. `similarity` is kResidues x kResidues.
extern "C" __global__ void align_tiles(int* score, const int* a, const int* b, const int* similarity, int n, int gap,
                                       int first_row, int first_column) {
  __shared__ int tile[kTile + 1][kTile + 1];
  const int x = threadIdx.x;
  const int row = (first_row + (int)blockIdx.x) * kTile;
  const int column = (first_column - (int)blockIdx.x) * kTile;
  const int pitch = n + 1;
  int* corner = score + row * pitch + column;
  tile[0][x + 1] = corner[x + 1];
  tile[x + 1][0] = corner[(x + 1) * pitch];
  if (x == 0) tile[0][0] = corner[0];
  const int* row_of_b = similarity + b[column + x];
  __syncthreads();
  for (int step = 0; step < 2 * kTile - 1; ++step) {
    const int y = step - x;
    if (y >= 0 && y < kTile) {
      const int diagonal = tile[y][x] + row_of_b[a[row + y] * kResidues];
      tile[y + 1][x + 1] = max(diagonal, max(tile[y][x + 1], tile[y + 1][x]) - gap);
    }
    __syncthreads();
  }
  for (int y = 0; y < kTile; ++y) corner[(y + 1) * pitch + x + 1] = tile[y + 1][x + 1];
}

extern "C" __global__ void copy_last_row(const int* score, int* row, int n) {
  const int i = global_thread();
  if (i <= n) row[i] = score[n * (n + 1) + i];
}
