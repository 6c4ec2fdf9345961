// The functions that exist on every device without being in the module: vprintf, the assertion handler, malloc, free.
#pragma once

#include <optional>
#include <string_view>

#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

enum class Builtin : std::uint16_t { kVprintf, kAssertFail, kMalloc, kFree };

std::optional<Builtin> builtin_from_name(std::string_view name);

// Executes the call for the current lanes. False after raising a fault.
bool run_builtin(Builtin builtin, Warp& warp, const Instruction* at, const CallSite& site);

}  // namespace softgpu::ptx
