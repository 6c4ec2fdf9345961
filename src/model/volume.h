// Volumes: folders of the host that the operator offers to functions, and that a function asks for with a tag. The function sees
// a volume read only, at the path that it has on the host.
//
// Example: serve --volume torch=/opt/torch --volume weights=/srv/weights:vision
//   of tenant vision    gpu:volumes = "torch weights"    /opt/torch and /srv/weights
//   of tenant shop      gpu:volumes = "torch weights"    refused: weights is not offered to it
//
// Pure; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr const char* kVolumesTag = "gpu:volumes";   // names, spaces between
inline constexpr std::size_t kMaxVolumes = 16;              // of a function
inline constexpr std::size_t kMaxVolumeFolderBytes = 1024;  // sixteen of them, twice, fit the 64 KiB of a start order

struct Volume {
  std::string name;
  std::string folder;  // absolute, without '.', '..' and ':'
  std::string tenant;  // ""; every tenant's
  bool operator==(const Volume&) const = default;
};

// NAME=FOLDER, or NAME=FOLDER:TENANT. kInvalidArgument: what is wrong; also a folder that would hide what a sandbox has of its own.
Result<Volume> parse_volume(const std::string& text);

// What a function with these tags gets. kInvalidArgument names the tag, the volume, and those that its tenant may have.
Result<std::vector<Volume>> volumes_of(const std::vector<Volume>& offered,
                                       const std::map<std::string, std::string>& tags);

}  // namespace fairlead
