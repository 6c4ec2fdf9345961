// One step of Jacobi's method for A x = b: next[i] = (b[i] - sum of A[i][j] * x[j] over j other than i) / A[i][i]. One
// warp per row; A in single precision, the rest in double, as in the KaaS paper's workload.
#include "element.h"

extern "C" __global__ void jacobi_step_f64(double* next, const float* a, const double* b, const double* x, int n) {
  const int row = global_thread() / warpSize;
  if (row >= n) return;
  const float* line = a + (long long)row * n;
  double total = 0;
  for (int j = (int)threadIdx.x % warpSize; j < n; j += warpSize) {
    if (j != row) total = fma((double)line[j], x[j], total);
  }
  for (int mask = warpSize / 2; mask > 0; mask /= 2) total += exchange(total, mask);
  if (threadIdx.x % warpSize == 0) next[row] = (b[row] - total) / (double)line[row];
}
