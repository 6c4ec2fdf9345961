// What is known of an instance's device memory, and how it moves. Plain values.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace fairlead {

// As the instance's own shim counts it, over all its processes.
struct MemoryUse {
  Bytes held{0};      // allocated and not freed, wherever it is
  Bytes resident{0};  // device memory behind it
  Bytes away{0};      // contents in host memory
  Bytes fixed{0};     // part of `resident` that cannot move: contexts, exported or registered memory, arrays

  // On the device once everything is back.
  Bytes needed() const { return std::max(held, resident + away); }
  // The same with `asked` more. Memory that is away and must return is part of the need already; so is an allocation that a
  // report has seen under way, because the shim counts it as held before it asks the device.
  Bytes needed_with(Bytes asked) const { return std::max(held, resident + std::max(away, asked)); }
  // Of `resident`, what could leave.
  Bytes movable() const { return std::max(Bytes(0), resident - fixed); }
  MemoryUse& operator+=(const MemoryUse& other) {
    held += other.held;
    resident += other.resident;
    away += other.away;
    fixed += other.fixed;
    return *this;
  }
  bool operator==(const MemoryUse&) const = default;
};

enum class MoveDirection { kIn, kOut };  // to the device, to the host

// How a move ended. kPartly: out, less than asked for; in, the device is full and some is back. kBusy: work did not end in
// time, nothing moved. kNoRoom: in, the device is full; out, the host is. kNothing: there was nothing to move.
enum class MoveOutcome { kDone, kPartly, kBusy, kNoRoom, kNothing, kFailed };

// What happens to the memory of instances that do not run. The policies of the paper's figure 4 that concern the node.
enum class MemoryPolicy {
  kNone,      // it stays; when memory is short, instances are stopped
  kPrefetch,  // it leaves when an invocation that was chosen needs the room, and returns ahead of use into free room
  kPrefetchSwap,  // and what belongs to throttled and inactive flows also leaves for what is about to run
};

// "none", "prefetch", "prefetch-swap"; empty for any other name.
std::string_view memory_policy_name(MemoryPolicy policy);
std::optional<MemoryPolicy> memory_policy_named(std::string_view name);

}  // namespace fairlead
