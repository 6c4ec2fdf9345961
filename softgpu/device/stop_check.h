#pragma once

#include <functional>

namespace softgpu {

// Asked now and then by whoever waits: true ends the waiting. Thread-safe.
using StopCheck = std::function<bool()>;

}  // namespace softgpu
