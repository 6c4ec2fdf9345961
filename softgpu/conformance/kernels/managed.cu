// A word in each of n pages, `step` words apart.
#include "softgpu/conformance/kernels/common.h"

KERNEL touch_pages(int n, int step, unsigned* words, unsigned round) {
  const int i = global_index();
  if (i >= n) return;
  unsigned* word = words + (unsigned long long)i * (unsigned)step;
  *word = round == 1 ? (unsigned)i : *word * 3 + 3;
}

KERNEL sum_pages(int n, int step, const unsigned* words, unsigned long long* sum) {
  const int i = global_index();
  if (i < n) atomicAdd(sum, (unsigned long long)words[(unsigned long long)i * (unsigned)step]);
}
