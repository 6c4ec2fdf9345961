#include "runtime/device_server/fenced_modules.h"

#include <limits>

#include "base/log.h"
#include "gpu/fence/verifier.h"
#include "gpu/kernel_image.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kCopiedAtOnce = 1 << 20;

tl::unexpected<Error> cannot_be_fenced(const Error& why) {
  return fail(why.code, "it cannot be fenced, which a device server for several tenants requires: {}", why.message);
}

// Logged as well: whoever runs the node has to know, and the tenant may not say.
tl::unexpected<Error> not_proved(const Error& why) {
  spdlog::error("device server: {}", why.message);
  return fail(why);
}

}  // namespace

Result<FencedCode> fence_image(const std::string& image, std::uint32_t architecture,
                               const fence::FenceOptions& options) {
  const auto ptx = ptx_of_image(image, architecture);
  if (!ptx) return cannot_be_fenced(ptx.error());
  auto fenced = fence::fence_ptx(*ptx, options);
  if (!fenced) return cannot_be_fenced(fenced.error());
  return FencedCode{std::move(fenced->ptx), pieces_of(fenced->variables)};
}

Result<std::uint64_t> measure_image(const std::string& image, std::uint32_t architecture,
                                    const fence::FenceOptions& options) {
  const auto ptx = ptx_of_image(image, architecture);
  if (!ptx) return cannot_be_fenced(ptx.error());
  const auto bytes = fence::measure_variables(*ptx, options);
  if (!bytes) return cannot_be_fenced(bytes.error());
  return *bytes;
}

fence::FenceOptions FencedModules::options_of(DeviceObjects::RangeIndex index) const {
  const AddressRange& range = objects_.range(index);
  return {.base = range.base(), .bytes = range.span(), .guard_bytes = AddressRange::kGuardBytes};
}

Result<CUdeviceptr> FencedModules::place(Instant now, DeviceObjects::RangeIndex index, const std::string& key,
                                         std::uint64_t variable_bytes) {
  Module& module = modules_[key];
  module.range = index;
  module.variable_bytes = variable_bytes;
  if (variable_bytes == 0) return 0;
  const auto room = take_room(now, index, variable_bytes);
  if (!room) return cannot_be_fenced(room.error());
  module.variables = *room;
  return room->address;
}

Result<std::string> FencedModules::accept(const std::string& key, FencedCode code) {
  Module& module = modules_.at(key);
  const Status verified = fence::verify_fenced(code.ptx, options_of(module.range));
  if (!verified) return not_proved(verified.error());
  if (module.variable_bytes > 0) {
    const auto pieces = joined(code.variables, module.variable_bytes, kCopiedAtOnce);
    if (!pieces) return fail(pieces.error());
    Status filled = objects_.fill_variables(module.variables.address, module.variable_bytes, *pieces);
    if (!filled) return fail(filled.error());
  }
  auto image = read_kernel_image(code.ptx);
  if (!image) return fail(image.error());
  module.kernels = std::move(image->kernels);
  return std::move(code.ptx);
}

Result<std::string> FencedModules::fence(Instant now, DeviceObjects::RangeIndex index, const std::string& key,
                                         const std::string& image) {
  fence::FenceOptions options = options_of(index);
  const auto bytes = measure_image(image, cuda_.device().architecture, options);
  if (!bytes) return fail(bytes.error());
  const auto address = place(now, index, key, *bytes);
  if (!address) return fail(address.error());
  options.variables_address = *address;
  auto code = fence_image(image, cuda_.device().architecture, options);
  if (!code) return fail(code.error());
  return accept(key, *std::move(code));
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

}  // namespace fairlead
