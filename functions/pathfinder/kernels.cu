// Cheapest path through a grid of costs from the first row to the last, one step down, down-left or down-right at a
// time: cost[r][c] = wall[r][c] + min(cost[r-1][c-1], cost[r-1][c], cost[r-1][c+1]).
//
// A launch advances several rows. A block of 256 threads computes 256 - 2 * rows columns: each row spoils one more column
// at either edge of what the block has loaded, and the neighbours compute those again. 20 rows: 216 columns a block.
#include "fairlead/device.h"
#include "fairlead/random.h"

constexpr int kBlock = 256;

extern "C" __global__ void generate_wall(int* wall, int count, unsigned seed) {
  const int i = global_thread();
  if (i < count) wall[i] = random_below(10, seed, i);
}

// Advances `cost_in`, the result of the row before `first_row`, by `rows` rows into `cost_out`.
extern "C" __global__ void __launch_bounds__(kBlock)
    advance(const int* wall, const int* cost_in, int* cost_out, int columns, int first_row, int rows) {
  __shared__ int previous[kBlock];
  const int t = threadIdx.x;
  const int column = (int)blockIdx.x * (kBlock - 2 * rows) + t - rows;
  const bool inside = column >= 0 && column < columns;
  // Outside the grid the way is barred; halved, so that adding to it does not overflow.
  constexpr int kBarred = 0x3fffffff;
  int cost = inside ? cost_in[column] : kBarred;
  for (int row = 0; row < rows; ++row) {
    previous[t] = cost;
    __syncthreads();
    const bool valid = t > row && t < kBlock - 1 - row;
    if (inside && valid) {
      cost = wall[(first_row + row) * columns + column] + min(previous[t], min(previous[t - 1], previous[t + 1]));
    }
    __syncthreads();
  }
  if (inside && t >= rows && t < kBlock - rows) cost_out[column] = cost;
}
