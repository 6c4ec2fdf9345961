#include "runtime/device_server/fenced_modules.h"

#include "base/check.h"
#include "cuda/kernel_image.h"
#include "fence/fence.h"

namespace fairlead {

Result<std::string> FencedModules::fence(Instant now, DeviceObjects::RangeIndex index, const std::string& sha256,
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
  Module& module = modules_[{index, sha256}];
  if (fenced->variables.empty()) return take_kernels(module, std::move(fenced->ptx));

  if (module.variables == 0) {
    const auto reserved = objects_.reserve_variables(now, index, fenced->variables.size());
    if (!reserved) return refuse(reserved.error());
    module.variables = *reserved;
  }
  options.variables_address = module.variables;
  const std::size_t size = fenced->variables.size();
  fenced = fence::fence_ptx(*ptx, options);
  if (!fenced) return refuse(fenced.error());
  FL_CHECK(fenced->variables.size() == size, "{} bytes of variables, {} before", fenced->variables.size(), size);
  if (Status filled = objects_.fill_variables(module.variables, fenced->variables); !filled)
    return fail(filled.error());
  return take_kernels(module, std::move(fenced->ptx));
}

Result<std::string> FencedModules::take_kernels(Module& module, std::string ptx) {
  auto image = read_kernel_image(ptx);
  if (!image) return fail(image.error());
  module.kernels = std::move(image->kernels);
  return ptx;
}

}  // namespace fairlead
