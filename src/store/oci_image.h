// What an OCI image's documents say (image-spec 1.0): index.json of a layout, the manifest, the configuration. They come
// from outside: every field is checked for its type and its bound.
//
// Errors are kInvalidArgument and name the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/image.h"

namespace fairlead::store {

inline constexpr std::size_t kMaxImageDocumentBytes = 4 << 20;

// The manifest of a layout that holds one image: "sha256:...".
Result<std::string> manifest_digest(std::string_view index_json);

struct ImageManifest {
  std::string config_digest;
  std::int64_t layer_bytes = 0;  // compressed, all layers
};
Result<ImageManifest> parse_manifest(std::string_view manifest_json);

struct ImageConfiguration {
  ImageDefaults defaults;  // without uid and gid
  std::string user;        // "", "name", "1000", "name:group", "1000:1000"
};
// `architecture` is OCI's name of this machine's: an image for another is refused.
Result<ImageConfiguration> parse_configuration(std::string_view config_json, std::string_view architecture);

// The ids that `user` means, names looked up in the image's own passwd and group texts. Ids above kMaxImageId and names
// that are not there are refused.
struct ImageUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
Result<ImageUser> resolve_user(const std::string& user, std::string_view passwd, std::string_view group);

}  // namespace fairlead::store
