// How a function's idle instances are held where they are, and for how long: what its author said (model/warmth_tags.h), and what a
// node lets such instances take.
//
//   pin device   nobody evicts the instance, and its device memory stays on the device
//   pin host     nobody evicts the instance; its device memory may go to host memory while others need the device
//   keep 10 min  so long after its last call an instance ends by itself; until then it is held, as pinned or as by `pin host`
//
// Example: a device of 16 GiB, pins may take 50 %: 8 GiB. A is pinned on it with 5 GiB and held. B is pinned with 4 GiB: 9 would be too
// much, so B's instance is as any other, and B's status says why. A is deleted: B's is held from then on.
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

enum class PinKind : std::uint8_t { kNone, kHost, kDevice };
constexpr std::string_view pin_name(PinKind kind) {
  return kind == PinKind::kDevice ? "device" : kind == PinKind::kHost ? "host" : "none";
}

struct WarmHold {
  PinKind pin = PinKind::kNone;
  std::optional<Duration> keep = std::nullopt;  // since an instance's last call; empty: without end

  bool operator==(const WarmHold&) const = default;
};

// Of one instance.
struct HoldView {
  InstanceId instance;
  PinKind held = PinKind::kNone;
  bool over_bound = false;                           // it would be, but all that is held would take too much
  std::optional<Instant> kept_until = std::nullopt;  // it ends then unless it is called; empty: it runs, or nobody said
};

// What held instances may take. Of device memory: percent of each device. Of staging memory, where device memory goes that leaves:
// percent of all of it, by what `pin host` would put there.
struct PinBounds {
  int percent = 50;
  int tenant_percent = 50;  // of that, for one tenant where there are several
  Bytes staging{0};         // 0: none, or not known; then it bounds nothing here

  Bytes of(Bytes whole) const { return Bytes(whole.count() * percent / 100); }
  Bytes of_tenant(Bytes whole, bool has_several_tenants) const {
    return has_several_tenants ? Bytes(of(whole).count() * tenant_percent / 100) : of(whole);
  }
};

}  // namespace fairlead
