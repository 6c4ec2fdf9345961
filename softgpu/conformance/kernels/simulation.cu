// Physics, finance, random numbers, fractals.
#include "softgpu/conformance/kernels/common.h"
#include "softgpu/conformance/kernels/philox.h"

// All pairs, in tiles of one block through shared memory; softened gravity.
struct __attribute__((aligned(16))) Body {
  float x, y, z, mass;
};
KERNEL nbody(int n, const Body* bodies, Body* accelerations) {
  __shared__ Body tile[64];
  const int i = global_index();
  const Body own = i < n ? bodies[i] : Body{0, 0, 0, 0};
  float ax = 0, ay = 0, az = 0;
  for (int first = 0; first < n; first += 64) {
    const int j = first + (int)threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : Body{0, 0, 0, 0};
    __syncthreads();
    for (int k = 0; k < 64; ++k) {
      const float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
      const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)));
      const float inverse = 1.0f / sqrtf(square);
      const float pull = tile[k].mass * (inverse * inverse * inverse);
      ax = fmaf(pull, dx, ax);
      ay = fmaf(pull, dy, ay);
      az = fmaf(pull, dz, az);
    }
    __syncthreads();
  }
  if (i < n) accelerations[i] = {ax, ay, az, 0};
}

// Molecular dynamics with cells: Lennard-Jones forces from the 27 cells around (Rodinia's lavaMD has the same access).
KERNEL cell_forces(int side, int per_cell, const float* positions, float* energies) {
  const int cell = blockIdx.x, x = cell % side, y = cell / side % side, z = cell / (side * side);
  const float* own = positions + (cell * per_cell + (int)threadIdx.x) * 3;
  float energy = 0;
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    const int nx = x + neighbour % 3 - 1, ny = y + neighbour / 3 % 3 - 1, nz = z + neighbour / 9 - 1;
    if (nx < 0 || ny < 0 || nz < 0 || nx >= side || ny >= side || nz >= side) continue;
    const int other = (nz * side + ny) * side + nx;
    for (int i = 0; i < per_cell; ++i) {
      if (other == cell && i == (int)threadIdx.x) continue;
      const float* at = positions + (other * per_cell + i) * 3;
      const float dx = own[0] - at[0], dy = own[1] - at[1], dz = own[2] - at[2];
      const float square = dx * dx + dy * dy + dz * dz;
      if (square > 1.0f) continue;
      const float inverse = 0.04f / fmaxf(square, 0.01f), sixth = inverse * inverse * inverse;
      energy += 4.0f * sixth * (sixth - 1.0f);
    }
  }
  energies[cell * per_cell + (int)threadIdx.x] = energy;
}

KERNEL monte_carlo_pi(int samples, unsigned long long seed, unsigned long long* inside) {
  unsigned long long hits = 0;
  for (int i = 0; i < samples; i += 2) {
    const Philox random = philox((unsigned long long)global_index() * (unsigned)samples + (unsigned)i, seed);
    for (int pair = 0; pair < 2; ++pair) {
      const float x = unit_float(random.word[2 * pair]), y = unit_float(random.word[2 * pair + 1]);
      hits += fmaf(x, x, y * y) < 1.0f;
    }
  }
  hits = warp_sum(hits);
  if (threadIdx.x % warpSize == 0) atomicAdd(inside, hits);
}

// Many streams of one linear congruential generator, each jumped ahead to its place.
KERNEL congruential(int draws, unsigned long long seed, unsigned* out) {
  unsigned long long multiplier = 6364136223846793005ull, increment = 1442695040888963407ull;
  unsigned long long jump_multiplier = 1, jump_increment = 0;
  for (unsigned long long jump = (unsigned)(global_index() * draws); jump != 0; jump >>= 1) {
    if ((jump & 1) != 0) {
      jump_multiplier *= multiplier;
      jump_increment = jump_increment * multiplier + increment;
    }
    increment *= multiplier + 1;
    multiplier *= multiplier;
  }
  unsigned long long state = seed * jump_multiplier + jump_increment;
  for (int i = 0; i < draws; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    out[global_index() * draws + i] = (unsigned)(state >> 32);
  }
}

// European options; the normal distribution by Abramowitz and Stegun's polynomial.
CUDA_DEVICE_INLINE float normal_distribution(float d) {
  const float k = 1.0f / fmaf(0.2316419f, fabsf(d), 1.0f);
  float poly = fmaf(k, 1.330274429f, -1.821255978f);
  poly = fmaf(k, poly, 1.781477937f);
  poly = fmaf(k, poly, -0.356563782f);
  poly = fmaf(k, poly, 0.31938153f) * k;
  const float tail = 0.39894228f * fast_exp(-0.5f * d * d) * poly;
  return d > 0 ? 1.0f - tail : tail;
}
KERNEL black_scholes(int n, float rate, float volatility, const float* prices, const float* strikes, const float* years,
                     float* calls, float* puts) {
  const int i = global_index();
  if (i >= n) return;
  const float root = sqrtf(years[i]);
  const float logarithm = __nvvm_lg2_approx_f(prices[i] / strikes[i]) * 0.693147181f;
  const float d1 = (logarithm + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
  const float d2 = d1 - volatility * root;
  const float discounted = strikes[i] * fast_exp(-rate * years[i]);
  calls[i] = prices[i] * normal_distribution(d1) - discounted * normal_distribution(d2);
  puts[i] = discounted * normal_distribution(-d2) - prices[i] * normal_distribution(-d1);
}

KERNEL mandelbrot(int width, int height, int limit, double x0, double y0, double step, int* rounds) {
  const int px = global_index(), py = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (px >= width || py >= height) return;
  const double cx = fma((double)px, step, x0), cy = fma((double)py, step, y0);
  double x = 0, y = 0;
  int i = 0;
  for (; i < limit && fma(x, x, y * y) <= 4; ++i) {
    const double next = fma(x, x, -(y * y)) + cx;
    y = fma(2 * x, y, cy);
    x = next;
  }
  rounds[py * width + px] = i;
}

// Particle filter: weights from a measurement, their prefix sums, systematic resampling. One block.
KERNEL particle_filter(float measured, float offset, const float* particles, float* weights, float* resampled) {
  __shared__ float sums[256];
  const int i = threadIdx.x, n = (int)blockDim.x;
  const float error = particles[i] - measured;
  sums[i] = fast_exp(-8.0f * error * error);
  for (int distance = 1; distance < n; distance *= 2) {
    __syncthreads();
    const float left = i >= distance ? sums[i - distance] : 0.0f;
    __syncthreads();
    sums[i] += left;
  }
  __syncthreads();
  weights[i] = (sums[i] - (i > 0 ? sums[i - 1] : 0.0f)) / sums[n - 1];
  const float target = ((float)i + offset) / (float)n * sums[n - 1];
  int low = 0, high = n - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sums[middle] < target)
      low = middle + 1;
    else
      high = middle;
  }
  resampled[i] = particles[low];
}

// Two-dimensional compressible flow, finite volumes, Rusanov's flux; periodic.
struct Flow {
  float density, x_momentum, y_momentum, energy;
};
CUDA_DEVICE_INLINE float pressure(Flow u) {
  return 0.4f * (u.energy - 0.5f * (u.x_momentum * u.x_momentum + u.y_momentum * u.y_momentum) / u.density);
}
CUDA_DEVICE_INLINE Flow flux(Flow a, Flow b) {  // in x
  const float pa = pressure(a), pb = pressure(b), va = a.x_momentum / a.density, vb = b.x_momentum / b.density;
  const float fastest = fmaxf(fabsf(va) + sqrtf(1.4f * pa / a.density), fabsf(vb) + sqrtf(1.4f * pb / b.density));
  return {0.5f * (a.x_momentum + b.x_momentum - fastest * (b.density - a.density)),
          0.5f * (a.x_momentum * va + pa + b.x_momentum * vb + pb - fastest * (b.x_momentum - a.x_momentum)),
          0.5f * (a.y_momentum * va + b.y_momentum * vb - fastest * (b.y_momentum - a.y_momentum)),
          0.5f * ((a.energy + pa) * va + (b.energy + pb) * vb - fastest * (b.energy - a.energy))};
}
CUDA_DEVICE_INLINE Flow turned(Flow u) {
  return {u.density, u.y_momentum, u.x_momentum, u.energy};
}
KERNEL euler_step(int n, float ratio, const Flow* from, Flow* to) {
  const int x = global_index(), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  const Flow here = from[y * n + x];
  const Flow west = flux(from[y * n + (x + n - 1) % n], here), east = flux(here, from[y * n + (x + 1) % n]);
  const Flow south = turned(flux(turned(from[(y + n - 1) % n * n + x]), turned(here)));
  const Flow north = turned(flux(turned(here), turned(from[(y + 1) % n * n + x])));
  to[y * n + x] = {
      here.density - ratio * (east.density - west.density + (north.density - south.density)),
      here.x_momentum - ratio * (east.x_momentum - west.x_momentum + (north.x_momentum - south.x_momentum)),
      here.y_momentum - ratio * (east.y_momentum - west.y_momentum + (north.y_momentum - south.y_momentum)),
      here.energy - ratio * (east.energy - west.energy + (north.energy - south.energy))};
}

// The Ising model, one colour of the checkerboard at a time; thresholds are integers, so every machine flips the same.
KERNEL ising(int n, int colour, int sweep, const unsigned* thresholds, signed char* spins) {
  const int y = (int)blockIdx.y, x = 2 * global_index() + ((y + colour) & 1);
  if (x >= n) return;
  const int around = spins[y * n + (x + 1) % n] + spins[y * n + (x + n - 1) % n] + spins[(y + 1) % n * n + x] +
                     spins[(y + n - 1) % n * n + x];
  const int gain = around * spins[y * n + x];  // -4, -2, .. 4
  const unsigned draw = philox((unsigned)(y * n + x), (unsigned)sweep).word[0];
  if (draw <= thresholds[gain / 2 + 2]) spins[y * n + x] = (signed char)-spins[y * n + x];
}

// Lattice-Boltzmann flow, nine velocities, periodic: collide and stream in one pass.
__constant__ int velocity_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int velocity_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float weight[9] = {4.0f / 9,  1.0f / 9,  1.0f / 9,  1.0f / 9, 1.0f / 9,
                                1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};
KERNEL lattice_boltzmann(int n, float relaxation, const float* from, float* to) {
  const int x = global_index(), y = (int)blockIdx.y;
  if (x >= n) return;
  float f[9], density = 0, ux = 0, uy = 0;
  for (int i = 0; i < 9; ++i) {
    f[i] = from[i * n * n + (y - velocity_y[i] + n) % n * n + (x - velocity_x[i] + n) % n];
    density += f[i];
    ux = fmaf((float)velocity_x[i], f[i], ux);
    uy = fmaf((float)velocity_y[i], f[i], uy);
  }
  ux /= density;
  uy /= density;
  const float still = 1.0f - 1.5f * (ux * ux + uy * uy);
  for (int i = 0; i < 9; ++i) {
    const float along = (float)velocity_x[i] * ux + (float)velocity_y[i] * uy;
    const float equilibrium = weight[i] * density * (still + 3.0f * along + 4.5f * along * along);
    to[i * n * n + y * n + x] = f[i] + relaxation * (equilibrium - f[i]);
  }
}
