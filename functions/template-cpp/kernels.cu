#include "fairlead/device.h"

extern "C" __global__ void vector_add(float* a, const float* b, int count) {
  const int i = global_thread();
  if (i < count) a[i] += b[i];
}
