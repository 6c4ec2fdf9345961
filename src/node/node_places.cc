#include "node/node_places.h"

#include "base/clock.h"

namespace fairlead {
namespace {

PacedInstance told(const DeliveredService& of, Functions& functions) {
  const RegisteredFunction* const function = functions.find(of.share.flow);
  return {.instance = of.instance,
          .function = function == nullptr ? "" : flow_name(function->record),
          .width_percent = of.share.width_percent,
          .request_percent = of.share.request_percent,
          .limit_percent = of.share.limit_percent,
          .state = std::string(place_state_name(of.state))};
}

HeldPlace told(const PlaceSpan& span, Instant now) {
  return {.instance = span.instance,
          .width_percent = span.width_percent,
          .begin = now - span.begin,
          .until = now - span.until,
          .end = now - span.end,
          .is_revoked = span.is_revoked};
}

}  // namespace

std::vector<PacedDevice> paced_devices(const PaceSnapshots& snapshots, Functions& functions, Instant now) {
  std::vector<PacedDevice> devices;
  for (const auto& [gpu, snapshot] : snapshots) {
    PacedDevice device{.gpu = gpu,
                       .frame = snapshot.frame,
                       .is_realtime = snapshot.is_realtime,
                       .late = snapshot.late,
                       .instances = {},
                       .places = {}};
    for (const DeliveredService& one : snapshot.instances) device.instances.push_back(told(one, functions));
    for (const PlaceSpan& span : snapshot.spans) device.places.push_back(told(span, now));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<PacedDevice> NodePlaces::devices() const {
  return paced_devices(node_.programs_->places(), node_.functions_, monotonic_now());
}

}  // namespace fairlead
