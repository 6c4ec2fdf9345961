// The ocean's constants and cell formulas, shared by the kernels and the host reference.
//
// Isoneutral mixing: eddies mix temperature and salinity along surfaces of equal density, not along the horizontal. With
// the slopes s = -(d rho / dx) / (d rho / dz), the flux of a tracer C along x is K f (dC/dx + s_x dC/dz) and along z
// K f (s_x dC/dx + s_y dC/dy + (s_x^2 + s_y^2) dC/dz); f tapers the mixing off where surfaces are too steep.
#pragma once

#include "fairlead/random.h"

struct Ocean {
  int nx, ny, nz;
};

constexpr float kExpansion = 0.2f;        // density lost per degree
constexpr float kContraction = 0.77f;     // density gained per unit of salinity
constexpr float kStratification = 0.05f;  // weakest density gradient, so that slopes stay finite
constexpr float kMaxSlope = 1.5f;
constexpr float kTaperWidth = 0.25f;
constexpr float kMixing = 0.05f;  // diffusivity x time step / cell size squared

FAIRLEAD_HOST_DEVICE float initial_temperature(unsigned seed, int cell, int z) {
  return 20.0f - 1.2f * (float)z + random_uniform(seed, (unsigned)cell);
}

FAIRLEAD_HOST_DEVICE float initial_salinity(unsigned seed, int cell, int z) {
  return 35.0f + 0.05f * (float)z + 0.2f * random_uniform(seed ^ 0xa511e9b3u, (unsigned)cell);
}

FAIRLEAD_HOST_DEVICE float cell_density(float temperature, float salinity) {
  return kContraction * (salinity - 35.0f) - kExpansion * (temperature - 10.0f);
}

// The neighbour's index, or the cell's own at the wall: no gradient, so no flux through it.
FAIRLEAD_HOST_DEVICE int neighbour(const Ocean& ocean, int cell, int dx, int dy, int dz) {
  const int x = cell % ocean.nx + dx;
  const int y = cell / ocean.nx % ocean.ny + dy;
  const int z = cell / (ocean.nx * ocean.ny) + dz;
  const bool inside = x >= 0 && x < ocean.nx && y >= 0 && y < ocean.ny && z >= 0 && z < ocean.nz;
  return inside ? cell + dx + ocean.nx * (dy + ocean.ny * dz) : cell;
}
