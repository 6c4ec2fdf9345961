#include "isoneural/reference.h"

#include <algorithm>
#include <cmath>

namespace fairlead::sample::isoneural {
namespace {

using Field = std::vector<double>;

double at(const Field& field, int cell) {
  return field[static_cast<std::size_t>(cell)];
}

struct Fluxes {
  Field x, y, z;
};

Fluxes fluxes(const Ocean& ocean, const Field& rho, const Field& tracer) {
  Fluxes out{Field(rho.size()), Field(rho.size()), Field(rho.size())};
  for (int cell = 0; cell < static_cast<int>(rho.size()); ++cell) {
    const auto difference = [&](const Field& field, int dx, int dy, int dz) {
      return at(field, neighbour(ocean, cell, dx, dy, dz)) - at(field, cell);
    };
    const double vertical = std::max(difference(rho, 0, 0, 1), static_cast<double>(kStratification));
    const double sx = -difference(rho, 1, 0, 0) / vertical;
    const double sy = -difference(rho, 0, 1, 0) / vertical;
    const double tapering = 0.5 * (1 + std::tanh((kMaxSlope - std::hypot(sx, sy)) / kTaperWidth));
    const double mixing = kMixing * tapering;
    const double dx = difference(tracer, 1, 0, 0);
    const double dy = difference(tracer, 0, 1, 0);
    const double dz = difference(tracer, 0, 0, 1);
    const auto i = static_cast<std::size_t>(cell);
    out.x[i] = mixing * (dx + sx * dz);
    out.y[i] = mixing * (dy + sy * dz);
    out.z[i] = mixing * (sx * dx + sy * dy + (sx * sx + sy * sy) * dz);
  }
  return out;
}

void mix(const Ocean& ocean, const Fluxes& flux, Field& tracer) {
  for (int cell = 0; cell < static_cast<int>(tracer.size()); ++cell) {
    const int west = neighbour(ocean, cell, -1, 0, 0);
    const int south = neighbour(ocean, cell, 0, -1, 0);
    const int above = neighbour(ocean, cell, 0, 0, -1);
    double& value = tracer[static_cast<std::size_t>(cell)];
    value += at(flux.x, cell) - (west != cell ? at(flux.x, west) : 0);
    value += at(flux.y, cell) - (south != cell ? at(flux.y, south) : 0);
    value += at(flux.z, cell) - (above != cell ? at(flux.z, above) : 0);
  }
}

}  // namespace

Tracers initial_tracers(const Ocean& ocean, unsigned seed) {
  Tracers tracers;
  for (int cell = 0; cell < ocean.nx * ocean.ny * ocean.nz; ++cell) {
    const int z = cell / (ocean.nx * ocean.ny);
    tracers.temperature.push_back(initial_temperature(seed, cell, z));
    tracers.salinity.push_back(initial_salinity(seed, cell, z));
  }
  return tracers;
}

void step(const Ocean& ocean, Tracers& tracers) {
  Field rho(tracers.temperature.size());
  for (std::size_t i = 0; i < rho.size(); ++i) {
    rho[i] = kContraction * (tracers.salinity[i] - 35) - kExpansion * (tracers.temperature[i] - 10);
  }
  const Fluxes heat = fluxes(ocean, rho, tracers.temperature);
  const Fluxes salt = fluxes(ocean, rho, tracers.salinity);
  mix(ocean, heat, tracers.temperature);
  mix(ocean, salt, tracers.salinity);
}

}  // namespace fairlead::sample::isoneural
