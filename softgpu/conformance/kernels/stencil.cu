// Stencils and images.
#include "softgpu/conformance/kernels/common.h"

CUDA_DEVICE_INLINE int clamp(int value, int low, int high) {
  return min(max(value, low), high);
}

KERNEL jacobi(int n, const float* from, float* to) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  const float* at = from + y * n + x;
  to[y * n + x] = 0.25f * ((at[-1] + at[1]) + (at[-n] + at[n]));
}

// Heat in three dimensions, six neighbours, explicit Euler; grid and block have three dimensions, too.
KERNEL heat3d(int n, float rate, const float* from, float* to) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  const int z = (int)(blockIdx.z * blockDim.z + threadIdx.z);
  if (x >= n || y >= n || z >= n) return;
  const int i = (z * n + y) * n + x;
  float result = from[i];
  if (x > 0 && y > 0 && z > 0 && x < n - 1 && y < n - 1 && z < n - 1) {
    const float around =
        (from[i - 1] + from[i + 1]) + (from[i - n] + from[i + n]) + (from[i - n * n] + from[i + n * n]);
    result = fmaf(rate, fmaf(-6.0f, from[i], around), from[i]);
  }
  to[i] = result;
}

// Hotspot: temperature of a chip from its power, two steps per launch in a tile with a halo of two.
KERNEL hotspot(int n, const float* power, const float* from, float* to) {
  __shared__ float tile[2][20][20];
  const int x = (int)(blockIdx.x * 16 + threadIdx.x) - 2, y = (int)(blockIdx.y * 16 + threadIdx.y) - 2;
  const int cx = clamp(x, 0, n - 1), cy = clamp(y, 0, n - 1);
  const int tx = threadIdx.x, ty = threadIdx.y;
  tile[0][ty][tx] = from[cy * n + cx];
  const float heat = power[cy * n + cx];
  for (int step = 0; step < 2; ++step) {
    __syncthreads();
    const float(*now)[20] = tile[step];
    if (tx > step && ty > step && tx < 19 - step && ty < 19 - step) {
      // At the border the neighbour outside is the point itself.
      const float here = now[ty][tx];
      const float west = x <= 0 ? here : now[ty][tx - 1], east = x >= n - 1 ? here : now[ty][tx + 1];
      const float north = y <= 0 ? here : now[ty - 1][tx], south = y >= n - 1 ? here : now[ty + 1][tx];
      const float next =
          here + 0.1f * (heat + (north + south - 2.0f * here) + (east + west - 2.0f * here) + (80.0f - here) * 0.05f);
      if (step == 0)
        tile[1][ty][tx] = next;
      else if (x >= 0 && y >= 0 && x < n && y < n && tx >= 2 && ty >= 2 && tx < 18 && ty < 18)
        to[y * n + x] = next;
    }
  }
}

// Convolution with a 5 x 5 filter in constant memory; the image's border is repeated.
__constant__ float filter[25];
KERNEL convolution(int width, int height, const float* in, float* out) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      const float pixel = in[clamp(y + dy, 0, height - 1) * width + clamp(x + dx, 0, width - 1)];
      sum = fmaf(filter[(dy + 2) * 5 + dx + 2], pixel, sum);
    }
  }
  out[y * width + x] = sum;
}

// Separable blur of a row through shared memory with a halo of eight.
KERNEL blur_rows(int width, const float* weights, const float* in, float* out) {
  __shared__ float line[128 + 16];
  const int first = (int)(blockIdx.x * 128), y = (int)blockIdx.y;
  for (int i = threadIdx.x; i < 144; i += 128) line[i] = in[y * width + clamp(first + i - 8, 0, width - 1)];
  __syncthreads();
  const int x = first + (int)threadIdx.x;
  if (x >= width) return;
  float sum = 0;
  for (int i = 0; i < 17; ++i) sum = fmaf(weights[i], line[threadIdx.x + i], sum);
  out[y * width + x] = sum;
}

// 8-bit RGBA, one word per pixel, half-pixel centres.
KERNEL resize_bilinear(int in_width, int in_height, const unsigned* in, int width, int height, unsigned* out) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  const float sx = fmaxf(((float)x + 0.5f) * (float)in_width / (float)width - 0.5f, 0.0f);
  const float sy = fmaxf(((float)y + 0.5f) * (float)in_height / (float)height - 0.5f, 0.0f);
  const int x0 = (int)sx, y0 = (int)sy;
  const int x1 = min(x0 + 1, in_width - 1), y1 = min(y0 + 1, in_height - 1);
  const float fx = sx - (float)x0, fy = sy - (float)y0;
  const unsigned a = in[y0 * in_width + x0], b = in[y0 * in_width + x1];
  const unsigned c = in[y1 * in_width + x0], d = in[y1 * in_width + x1];
  unsigned pixel = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const float top = fmaf(fx, (float)(b >> shift & 255) - (float)(a >> shift & 255), (float)(a >> shift & 255));
    const float bottom = fmaf(fx, (float)(d >> shift & 255) - (float)(c >> shift & 255), (float)(c >> shift & 255));
    pixel |= (unsigned)(fmaf(fy, bottom - top, top) + 0.5f) << shift;
  }
  out[y * width + x] = pixel;
}

KERNEL median3x3(int width, int height, const unsigned char* in, unsigned char* out) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  unsigned char v[9];
  for (int i = 0; i < 9; ++i) {
    v[i] = in[clamp(y + i / 3 - 1, 0, height - 1) * width + clamp(x + i % 3 - 1, 0, width - 1)];
  }
  for (int i = 0; i <= 4; ++i) {  // selection sort up to the middle
    for (int j = i + 1; j < 9; ++j) {
      const unsigned char low = v[i] < v[j] ? v[i] : v[j], high = v[i] < v[j] ? v[j] : v[i];
      v[i] = low;
      v[j] = high;
    }
  }
  out[y * width + x] = v[4];
}

// Conway's game on a torus, one byte per cell.
KERNEL life(int n, const unsigned char* from, unsigned char* to) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  int neighbours = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (dx != 0 || dy != 0) neighbours += from[(y + dy + n) % n * n + (x + dx + n) % n];
    }
  }
  to[y * n + x] = neighbours == 3 || (neighbours == 2 && from[y * n + x] != 0);
}

// Speckle-reducing anisotropic diffusion: the diffusion coefficient of each point, then the update.
KERNEL srad_coefficients(int n, float q0_squared, const float* image, float* coefficients) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  const float here = image[y * n + x];
  const float north = image[max(y - 1, 0) * n + x] - here, south = image[min(y + 1, n - 1) * n + x] - here;
  const float west = image[y * n + max(x - 1, 0)] - here, east = image[y * n + min(x + 1, n - 1)] - here;
  const float gradient = (north * north + south * south + west * west + east * east) / (here * here);
  const float laplacian = (north + south + west + east) / here;
  const float numerator = 0.5f * gradient - 0.0625f * (laplacian * laplacian);
  const float denominator = 1.0f + 0.25f * laplacian;
  const float q_squared = numerator / (denominator * denominator);
  const float c = 1.0f / (1.0f + (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared)));
  coefficients[y * n + x] = fminf(fmaxf(c, 0.0f), 1.0f);
}
KERNEL srad_update(int n, float step, const float* c, const float* image, float* out) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  const int south = min(y + 1, n - 1) * n + x, east = y * n + min(x + 1, n - 1), i = y * n + x;
  const float here = image[i];
  const float flow = c[i] * (image[max(y - 1, 0) * n + x] - here) + c[south] * (image[south] - here) +
                     c[i] * (image[y * n + max(x - 1, 0)] - here) + c[east] * (image[east] - here);
  out[i] = here + 0.25f * step * flow;
}
