// Blocked LU decomposition without pivoting, in place: L below the diagonal (its own diagonal is 1), U on and above it.
//
// For each diagonal tile: factor it (one block), solve the tiles of its row and column against it, then subtract their
// products from all tiles to the lower right. n = 512 has 32 x 32 tiles of 16 x 16, so 32 rounds; nearly all work is in
// the products.
#include "fairlead/device.h"
#include "fairlead/random.h"

constexpr int kTile = 16;

// Diagonally dominant, so that no pivoting is needed.
extern "C" __global__ void generate_matrix(float* matrix, int n, unsigned seed) {
  const int i = global_thread();
  if (i >= n * n) return;
  const bool diagonal = i / n == i % n;
  matrix[i] = random_uniform(seed, i) + (diagonal ? (float)n : 0.0f);
}

// Factors the tile at (offset, offset). One block of kTile threads.
extern "C" __global__ void factor_diagonal(float* matrix, int n, int offset) {
  __shared__ float tile[kTile][kTile];
  const int t = threadIdx.x;
  float* origin = matrix + offset * n + offset;
  for (int row = 0; row < kTile; ++row) tile[row][t] = origin[row * n + t];
  __syncthreads();
  for (int k = 0; k < kTile - 1; ++k) {
    if (t > k) {
      tile[t][k] /= tile[k][k];
      for (int column = k + 1; column < kTile; ++column) tile[t][column] -= tile[t][k] * tile[k][column];
    }
    __syncthreads();
  }
  for (int row = 0; row < kTile; ++row) origin[row * n + t] = tile[row][t];
}

// Solves tile blockIdx.x + 1 right of the diagonal tile (blockIdx.y = 0: L U' = A) or below it (1: L' U = A). Thread t
// owns a column of the first, a row of the second.
extern "C" __global__ void solve_perimeter(float* matrix, int n, int offset) {
  __shared__ float diagonal[kTile][kTile];
  __shared__ float tile[kTile][kTile];
  const int t = threadIdx.x;
  const bool below = blockIdx.y == 1;
  const int shift = (blockIdx.x + 1) * kTile;
  const float* origin = matrix + offset * n + offset;
  float* target = matrix + (below ? (offset + shift) * n + offset : offset * n + offset + shift);
  for (int row = 0; row < kTile; ++row) {
    diagonal[row][t] = origin[row * n + t];
    tile[row][t] = target[row * n + t];
  }
  __syncthreads();
  if (below) {
    for (int k = 0; k < kTile; ++k) {
      float sum = tile[t][k];
      for (int j = 0; j < k; ++j) sum -= tile[t][j] * diagonal[j][k];
      tile[t][k] = sum / diagonal[k][k];
    }
  } else {
    for (int k = 1; k < kTile; ++k) {
      float sum = tile[k][t];
      for (int j = 0; j < k; ++j) sum -= diagonal[k][j] * tile[j][t];
      tile[k][t] = sum;
    }
  }
  __syncthreads();
  for (int row = 0; row < kTile; ++row) target[row * n + t] = tile[row][t];
}

// Subtracts (column tile) x (row tile) from the tile at (blockIdx + 1) behind the diagonal tile.
extern "C" __global__ void update_interior(float* matrix, int n, int offset) {
  __shared__ float left[kTile][kTile];
  __shared__ float top[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = offset + (blockIdx.y + 1) * kTile + y;
  const int column = offset + (blockIdx.x + 1) * kTile + x;
  left[y][x] = matrix[row * n + offset + x];
  top[y][x] = matrix[(offset + y) * n + column];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < kTile; ++k) sum += left[y][k] * top[k][x];
  matrix[row * n + column] -= sum;
}
