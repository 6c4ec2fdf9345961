#include "decide/queueing/placeable.h"

namespace fairlead {

std::optional<Placeable::Place> Placeable::place(FlowId flow, GpuId gpu) const {
  for (const Place& place : places(flow)) {
    if (place.gpu == gpu) return place;
  }
  return std::nullopt;
}

}  // namespace fairlead
