#include "runtime/device_server/kernel_cache.h"

#include "gpu/kernel_image.h"

namespace fairlead {

KernelCache::Lease KernelCache::find(const std::string& key) {
  const auto found = modules_.find(key);
  if (found == modules_.end()) return {};
  order_.use(key);
  return {*this, key, found->second};
}

Result<KernelCache::Lease> KernelCache::load(const std::string& key, const std::string& image) {
  const auto module = cuda_.load_module(image);
  if (!module) return fail(module.error());
  order_.add(key, Bytes(static_cast<std::int64_t>(image.size())));
  const Module& kept = modules_[key] = {.handle = *module, .is_binary = is_binary(image)};
  return Lease(*this, key, kept);
}

std::vector<std::string> KernelCache::trim(bool device_is_busy) {
  return unload(order_.take_surplus(device_is_busy ? 2 : 1));
}

std::vector<std::string> KernelCache::unload_unused() {
  return unload(order_.take_unused());
}

std::vector<std::string> KernelCache::unload(std::vector<std::string> keys) {
  for (const std::string& key : keys) cuda_.unload_module(modules_.extract(key).mapped().handle);
  return keys;
}

}  // namespace fairlead
