#include "runtime/device_server/fenced_modules.h"

#include <limits>

#include "base/check.h"
#include "cuda/kernel_image.h"
#include "fence/fence.h"

namespace fairlead {

Result<std::string> FencedModules::fence(Instant now, DeviceObjects::RangeIndex index, const std::string& key,
                                         const std::string& image) {
  const auto refuse = [](const Error& why) {
    return fail(why.code, "it cannot be fenced, which a device server for several tenants requires: {}", why.message);
  };
  const auto ptx = ptx_of_image(image, cuda_.architecture());
  if (!ptx) return refuse(ptx.error());
  const AddressRange& range = objects_.range(index);
  fence::FenceOptions options{
      .base = range.base(), .bytes = range.span(), .guard_bytes = AddressRange::kGuardBytes, .variables_address = 0};
  auto fenced = fence::fence_ptx(*ptx, options);
  if (!fenced) return refuse(fenced.error());
  Module& module = modules_[key];
  module.range = index;
  if (fenced->variables.empty()) return take_kernels(module, std::move(fenced->ptx));

  const auto room = take_room(now, index, fenced->variables.size());
  if (!room) return refuse(room.error());
  module.variables = *room;
  options.variables_address = room->address;
  const std::size_t size = fenced->variables.size();
  fenced = fence::fence_ptx(*ptx, options);
  if (!fenced) return refuse(fenced.error());
  FL_CHECK(fenced->variables.size() == size, "{} bytes of variables, {} before", fenced->variables.size(), size);
  if (Status filled = objects_.fill_variables(room->address, fenced->variables); !filled) return fail(filled.error());
  return take_kernels(module, std::move(fenced->ptx));
}

void FencedModules::forget(const std::string& key) {
  const auto module = modules_.extract(key);
  if (module.empty() || module.mapped().variables.bytes == 0) return;
  left_[module.mapped().range].emplace(module.mapped().variables.bytes, module.mapped().variables.address);
}

// Room that another module left, if not much of it would lie idle, else new room, else whatever is large enough.
Result<FencedModules::Variables> FencedModules::take_room(Instant now, DeviceObjects::RangeIndex range,
                                                          std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = AddressRange::kVariablesAlignment;
  const std::uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (const auto left = take_left_room(range, whole, 2 * whole)) return *left;
  const auto reserved = objects_.reserve_variables(now, range, whole);
  if (reserved) return Variables{*reserved, whole};
  if (const auto left = take_left_room(range, whole, std::numeric_limits<std::uint64_t>::max())) return *left;
  return fail(reserved.error());
}

std::optional<FencedModules::Variables> FencedModules::take_left_room(DeviceObjects::RangeIndex range,
                                                                      std::uint64_t bytes, std::uint64_t most) {
  auto& left = left_[range];
  const auto smallest = left.lower_bound(bytes);
  if (smallest == left.end() || smallest->first > most) return std::nullopt;
  const Variables taken{smallest->second, smallest->first};
  left.erase(smallest);
  return taken;
}

Result<std::string> FencedModules::take_kernels(Module& module, std::string ptx) {
  auto image = read_kernel_image(ptx);
  if (!image) return fail(image.error());
  module.kernels = std::move(image->kernels);
  return ptx;
}

}  // namespace fairlead
