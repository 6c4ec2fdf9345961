// Host reference: the same time step, one cell at a time, in double precision.
#pragma once

#include <vector>

#include "isoneural/ocean.h"

namespace fairlead::sample::isoneural {

struct Tracers {
  std::vector<double> temperature;
  std::vector<double> salinity;
};

Tracers initial_tracers(const Ocean& ocean, unsigned seed);

void step(const Ocean& ocean, Tracers& tracers);

}  // namespace fairlead::sample::isoneural
