// libFuzzer: any bytes are an image's index, manifest or configuration, a passwd or group file, or a kept image, or refused with
// an error that has words; what is taken keeps the bounds.
#include <cstdint>
#include <cstdlib>

#include "store/image_json.h"
#include "store/oci_image.h"

namespace fairlead::store {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename T>
bool taken(const Result<T>& result) {
  require(result.has_value() || !result.error().message.empty());
  return result.has_value();
}

void read(std::string_view bytes) {
  if (const auto digest = manifest_digest(bytes); taken(digest)) require(is_sha256_digest(*digest));
  if (const auto manifest = parse_manifest(bytes); taken(manifest)) {
    require(is_sha256_digest(manifest->config_digest) && manifest->layer_bytes >= 0);
  }
  if (const auto config = parse_configuration(bytes, "amd64"); taken(config)) {
    const auto user = resolve_user(config->user, bytes, bytes);
    if (taken(user)) require(user->uid <= kMaxImageId && user->gid <= kMaxImageId);
    FunctionImage image{.uri = "a", .resolved_uri = "b", .digest = "c", .bytes = 1, .defaults = config->defaults};
    const auto text = encode_image(image);
    if (taken(text)) require(decode_image(*text).value() == image);
  }
  const std::size_t line = bytes.find('\n');
  const std::string_view rest = line == std::string_view::npos ? std::string_view() : bytes.substr(line + 1);
  const auto user = resolve_user(std::string(bytes.substr(0, line)), rest, rest);
  if (taken(user)) require(user->uid <= kMaxImageId && user->gid <= kMaxImageId);
  taken(decode_image(std::string(bytes)));
  taken(decode_overrides(std::string(bytes)));
}

}  // namespace
}  // namespace fairlead::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::store::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
