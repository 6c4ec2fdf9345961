// libFuzzer: any bytes are a CDI specification or refused with an error; what is taken names absolute paths without "..".
#include <cstdint>
#include <cstdlib>

#include "node/cdi.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_clean(const std::string& path) {
  return path.starts_with('/') && ("/" + path + "/").find("/../") == std::string::npos;
}

void check(const CdiEdits& edits) {
  for (const InstanceSpec::Bind& bind : edits.binds) require(is_clean(bind.source) && is_clean(bind.target));
  for (const auto& [name, value] : edits.environment) require(!name.empty() && name.find('=') == std::string::npos);
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  const auto spec = parse_cdi(std::string(reinterpret_cast<const char*>(data), size), "a file");
  if (!spec) {
    require(!spec.error().message.empty());
    return 0;
  }
  require(!spec->kind.empty());
  check(spec->common);
  for (const auto& [name, edits] : spec->devices) {
    require(!name.empty());
    check(edits);
    require(spec->edits_for(name).has_value());
  }
  return 0;
}
