// What one invocation does to its memory: a check that touches every page, and the passes of a batch of Fourier
// transforms of 4,096 points (functions/fft): 12 that read and write everything.
#include "fairlead/device.h"

namespace {

__device__ unsigned mark(unsigned generation, unsigned long long i) {
  return generation * 2654435761u + static_cast<unsigned>(i) * 40503u;
}

}  // namespace

// One word of every 4 KiB: counts those that are not the last generation's, and leaves the next one's.
extern "C" __global__ void check(unsigned* memory, unsigned long long pages, unsigned last, unsigned next,
                                 unsigned* wrong) {
  const unsigned long long i = global_thread();
  if (i >= pages) return;
  unsigned* word = memory + i * 1024;
  if (last != 0 && *word != mark(last, i)) atomicAdd(wrong, 1u);
  *word = mark(next, i);
}

// The software GPU's charge mode takes the first two parameters for what it does and does not execute it. An even number
// of passes leaves the memory as it was.
extern "C" __global__ void softgpu_charge_fft([[maybe_unused]] unsigned long long lane_instructions,
                                              [[maybe_unused]] unsigned long long bytes, unsigned* memory,
                                              unsigned long long words, int passes) {
  const unsigned long long stride = 1ull * gridDim.x * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    const unsigned change = pass % 2 == 0 ? 1u : ~0u;
    for (unsigned long long i = global_thread(); i < words; i += stride) memory[i] += change;
  }
}
