#include "runtime/device_server/task_modules.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace fairlead {

template <typename Attempt>
auto TaskModules::with_room(Attempt attempt) {
  auto made = attempt();
  const bool lacks_room =
      !made && (made.error().code == Errc::kTooLarge || made.error().code == Errc::kResourceExhausted);
  if (!lacks_room) return made;
  forget(loaded_.unload_unused());
  return attempt();
}

std::string TaskModules::key(RangeIndex range, const std::string& sha256) const {
  return are_fenced() ? fmt::format("{}:{}", range, sha256) : sha256;
}

Result<KernelCache::Lease> TaskModules::load_image(RangeIndex range, const std::string& key, std::string image) {
  if (!are_fenced()) return load(key, image);
  const auto code = with_room([&] {
    auto fenced = fenced_.fence(monotonic_now(), range, key, image);
    if (!fenced) fenced_.forget(key);
    return fenced;
  });
  if (!code) return fail(code.error());
  auto loaded = load(key, *code);
  if (!loaded) fenced_.forget(key);
  return loaded;
}

Result<KernelCache::Lease> TaskModules::load(const std::string& key, const std::string& code) {
  return with_room([&] { return loaded_.load(key, code); });
}

Result<CUdeviceptr> TaskModules::place(RangeIndex range, const std::string& key, std::uint64_t variable_bytes) {
  return with_room([&] { return fenced_.place(monotonic_now(), range, key, variable_bytes); });
}

void TaskModules::forget_unless_loaded(const std::string& key) {
  if (!loaded_.find(key)) fenced_.forget(key);
}

void TaskModules::forget(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) fenced_.forget(key);
}

}  // namespace fairlead
