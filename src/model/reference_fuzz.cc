// libFuzzer: any text is a name, a reference to a secret, an image or a registry, or refused with an error; what is taken keeps
// what its type promises. The names of tenants and secrets are names of files too.
#include <netinet/in.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "model/function.h"
#include "model/image.h"
#include "model/registry_rules.h"
#include "model/secret_reference.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() < 256 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

void read_names(std::string_view text) {
  if (validate_tenant(text)) require(is_file_name(text));
  if (validate_secret_name(text)) require(is_file_name(text));
  if (validate_reference("V", text)) {
    const auto reference = referred_secret(text);
    if (reference) require(validate_secret_name(reference->name).has_value());
  }
  const auto bare = function_name_from(std::string(text));
  if (bare) require(validate_function_name(*bare).has_value() && is_file_name(*bare));
}

void read_image(std::string_view text) {
  const auto image = parse_image_reference("Code.ImageUri", text);
  if (!image) return require(!image.error().message.empty());
  require(!image->source.empty() && image->source.find('\0') == std::string::npos && !image->source.starts_with('-'));
  if (!image->layout_dir.empty()) return require(image->layout_dir.starts_with('/'));
  require(!registry_of(image->repository).empty());
}

void read_registry(std::string_view text) {
  const HostPort target = split_host_port(text);
  if (const auto rules = RegistryRules::parse({std::string(text)})) (void)rules->allows(target);
  require(!RegistryRules::everything_public().allows(target) || target.port == kHttpsPort);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, text.data(), std::min(text.size(), sizeof v6.sin6_addr));
  const bool is_public = is_global(reinterpret_cast<const sockaddr&>(v6));
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) require(!is_public);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, reinterpret_cast<const char*>(&v6.sin6_addr) + 12, 4);
  require(!is_public || is_global(reinterpret_cast<const sockaddr&>(v4)));
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fairlead::read_names(text);
  fairlead::read_image(text);
  fairlead::read_registry(text);
  return 0;
}
