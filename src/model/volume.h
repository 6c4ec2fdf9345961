// Volumes: folders of the host that the operator offers to functions, and that a function asks for with a tag. The function sees
// a volume at the path that it has on the host: read only, unless it is offered for writing and the function asks for that.
//
// Example: serve --volume torch=/opt/torch --volume weights=/srv/weights:vision
//   of tenant vision    gpu:volumes = "torch weights"    /opt/torch and /srv/weights
//   of tenant shop      gpu:volumes = "torch weights"    refused: weights is not offered to it
// serve --volume out=/srv/private/out:vision:rw
//   of tenant vision    gpu:volumes = "out:rw"           writes to it; "out" reads
//
// Pure; thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr const char* kVolumesTag = "gpu:volumes";   // names, spaces between
inline constexpr std::size_t kMaxVolumes = 16;              // of a function
inline constexpr std::size_t kMaxVolumeFolderBytes = 1024;  // sixteen of them, twice, fit the 64 KiB of a start order

struct Volume {
  std::string name;
  std::string folder;     // absolute, without '.', '..' and ':'
  std::string tenant;     // ""; every tenant's
  bool writable = false;  // offered for writing, and then a tenant's; as a function has it: asked for, too
  bool operator==(const Volume&) const = default;
};

// Whether a folder of the host may be shown to a function. `what` is what it is for, as errors say it: "a volume". kInvalidArgument: it is no
// plain absolute path, or lies in or above what every sandbox has of its own.
Status check_host_folder(const std::string& folder, std::string_view what);

// Whether a path is a folder's or of something in it. Both are absolute, without '.' and '..'.
bool lies_in(std::string_view path, std::string_view folder);

// NAME=FOLDER, NAME=FOLDER:TENANT or NAME=FOLDER:TENANT:rw. kInvalidArgument: what is wrong; also a folder that would hide what a sandbox has of its own.
Result<Volume> parse_volume(const std::string& text);

// Whether all of them can be offered together. kInvalidArgument names two that cannot: one would be seen, or written to, through the other.
Status check_apart(const std::vector<Volume>& volumes);

// What a function with these tags gets. kInvalidArgument names the tag, the volume, and those that its tenant may have.
Result<std::vector<Volume>> volumes_of(const std::vector<Volume>& offered,
                                       const std::map<std::string, std::string>& tags);

}  // namespace fairlead
