// One time step of isoneutral mixing as a framework would run it: one small kernel for each array operation, eleven a
// step. z grows downwards. See ocean.h for the physics.
#include "fairlead/device.h"
#include "isoneural/ocean.h"

extern "C" __global__ void initialise(Ocean ocean, unsigned seed, float* temperature, float* salinity) {
  const int cell = global_thread();
  if (cell >= ocean.nx * ocean.ny * ocean.nz) return;
  const int z = cell / (ocean.nx * ocean.ny);
  temperature[cell] = initial_temperature(seed, cell, z);
  salinity[cell] = initial_salinity(seed, cell, z);
}

extern "C" __global__ void density(Ocean ocean, const float* temperature, const float* salinity, float* rho) {
  const int cell = global_thread();
  if (cell < ocean.nx * ocean.ny * ocean.nz) rho[cell] = cell_density(temperature[cell], salinity[cell]);
}

// Difference to the next cell along one axis: (dx, dy, dz) is a unit vector.
extern "C" __global__ void gradient(Ocean ocean, const float* field, float* out, int dx, int dy, int dz) {
  const int cell = global_thread();
  if (cell < ocean.nx * ocean.ny * ocean.nz) out[cell] = field[neighbour(ocean, cell, dx, dy, dz)] - field[cell];
}

extern "C" __global__ void slope(Ocean ocean, const float* horizontal, const float* vertical, float* out) {
  const int cell = global_thread();
  if (cell >= ocean.nx * ocean.ny * ocean.nz) return;
  out[cell] = -horizontal[cell] / fmaxf(vertical[cell], kStratification);
}

extern "C" __global__ void taper(Ocean ocean, const float* slope_x, const float* slope_y, float* out) {
  const int cell = global_thread();
  if (cell >= ocean.nx * ocean.ny * ocean.nz) return;
  const float steepness = sqrtf(slope_x[cell] * slope_x[cell] + slope_y[cell] * slope_y[cell]);
  out[cell] = 0.5f * (1.0f + tanhf((kMaxSlope - steepness) / kTaperWidth));
}

// Fluxes of one tracer out of each cell along the three axes.
extern "C" __global__ void fluxes(Ocean ocean, const float* tracer, const float* slope_x, const float* slope_y,
                                  const float* tapering, float* flux_x, float* flux_y, float* flux_z) {
  const int cell = global_thread();
  if (cell >= ocean.nx * ocean.ny * ocean.nz) return;
  const float here = tracer[cell];
  const float dx = tracer[neighbour(ocean, cell, 1, 0, 0)] - here;
  const float dy = tracer[neighbour(ocean, cell, 0, 1, 0)] - here;
  const float dz = tracer[neighbour(ocean, cell, 0, 0, 1)] - here;
  const float sx = slope_x[cell];
  const float sy = slope_y[cell];
  const float mixing = kMixing * tapering[cell];
  flux_x[cell] = mixing * (dx + sx * dz);
  flux_y[cell] = mixing * (dy + sy * dz);
  flux_z[cell] = mixing * (sx * dx + sy * dy + (sx * sx + sy * sy) * dz);
}

// Adds what flows in from one side of each axis and takes what flows out of the other.
extern "C" __global__ void mix(Ocean ocean, const float* flux_x, const float* flux_y, const float* flux_z,
                               float* tracer) {
  const int cell = global_thread();
  if (cell >= ocean.nx * ocean.ny * ocean.nz) return;
  const int west = neighbour(ocean, cell, -1, 0, 0);
  const int south = neighbour(ocean, cell, 0, -1, 0);
  const int above = neighbour(ocean, cell, 0, 0, -1);
  float change = flux_x[cell] + flux_y[cell] + flux_z[cell];
  if (west != cell) change -= flux_x[west];
  if (south != cell) change -= flux_y[south];
  if (above != cell) change -= flux_z[above];
  tracer[cell] += change;
}
