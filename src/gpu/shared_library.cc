#include "gpu/shared_library.h"

#include <link.h>

namespace fairlead {
namespace {

std::string path_of(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return fallback;
  return map->l_name;
}

}  // namespace

Result<SharedLibrary> SharedLibrary::load(const std::string& directory, const std::string& name,
                                          const std::string& advice) {
  const std::string file = directory.empty() ? name : directory + "/" + name;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(Errc::kUnavailable, "{}; {}", dlerror(), advice);
  return SharedLibrary(handle, path_of(handle, file));
}

Error SharedLibrary::missing(const char* symbol) const {
  return Error{Errc::kUnavailable,
               fmt::format("{} has no {}: it is too old, or not the library its name says", path_, symbol)};
}

}  // namespace fairlead
