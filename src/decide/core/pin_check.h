// May a function be pinned at all? Asked when its author says so, before anything changes. What is held later, of what was asked for,
// is decided as instances come and go (core/holds.cc): then it counts what they really hold.
//
// Example: GPUs of 16 GiB, pins may take 50 %. A asks for 5 GiB on the device, and has them. B asks for 9: more than any GPU has for pins.
// C asks for 5, where there is one GPU: 10 of 8.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/warm_hold.h"

namespace fairlead {

struct PinAsked {
  TenantId tenant;
  PinKind pin = PinKind::kNone;
  Bytes memory{0};  // of one instance; 0: nobody said, and then only what it holds counts

  bool operator==(const PinAsked&) const = default;
};

// kInvalidArgument names the tag, its value, the bound, and what to do. `others`: of all other functions; `devices`: the memory of each;
// those of which it is not known, or none, bound nothing.
Status check_pin(const PinAsked& asked, const std::vector<PinAsked>& others, const std::vector<Bytes>& devices,
                 const PinBounds& bounds, bool has_several_tenants);

}  // namespace fairlead
