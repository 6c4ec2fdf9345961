#include "decide/core/pin_check.h"

#include <algorithm>
#include <string>

namespace fairlead {
namespace {

struct Place {
  std::string name;  // of what the bound is a part of
  Bytes whole{0};
};

Status refuse(const PinAsked& asked, Bytes wanted, Bytes bound, const std::string& whose) {
  return fail(Errc::kInvalidArgument,
              "gpu:pin is {} with gpu:memory-mib {:.0f}; that makes {:.0f} MiB, and {} may take {:.0f} MiB: pin fewer "
              "functions, or start the node "
              "with a larger --pin-memory or --pin-quota",
              pin_name(asked.pin), asked.memory.mib(), wanted.mib(), whose, bound.mib());
}

Status check_sums(const PinAsked& asked, const std::vector<PinAsked>& others, const Place& place,
                  const PinBounds& bounds, bool several) {
  Bytes all = asked.memory, of_tenant = asked.memory;
  for (const PinAsked& other : others) {
    if (other.pin != asked.pin) continue;
    all += other.memory;
    if (other.tenant == asked.tenant) of_tenant += other.memory;
  }
  const Bytes most = bounds.of(place.whole), most_of_tenant = bounds.of_tenant(place.whole, several);
  if (all > most) return refuse(asked, all, most, fmt::format("all that is pinned {}", place.name));
  if (of_tenant <= most_of_tenant) return {};
  return refuse(asked, of_tenant, most_of_tenant, fmt::format("what one tenant pins {}", place.name));
}

}  // namespace

Status check_pin(const PinAsked& asked, const std::vector<PinAsked>& others, const std::vector<Bytes>& devices,
                 const PinBounds& bounds, bool has_several_tenants) {
  if (asked.pin == PinKind::kNone || asked.memory == Bytes(0)) return {};
  if (asked.pin == PinKind::kHost) {
    if (bounds.staging == Bytes(0)) return {};
    return check_sums(asked, others, {"in the node's --host-memory", bounds.staging}, bounds, has_several_tenants);
  }
  Bytes sum{0}, largest{0};
  for (const Bytes memory : devices) {
    sum += memory;
    largest = std::max(largest, memory);
  }
  if (largest == Bytes(0)) return {};
  const Bytes most = bounds.of_tenant(largest, has_several_tenants);
  if (asked.memory > most) {
    return refuse(asked, asked.memory, most,
                  fmt::format("what {} pins on one GPU", has_several_tenants ? "one tenant" : "everybody"));
  }
  return check_sums(asked, others, {"on the GPUs", sum}, bounds, has_several_tenants);
}

}  // namespace fairlead
