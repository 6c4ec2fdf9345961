#include "model/volume.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "model/secret_reference.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

// A sandbox's own (runtime/sandbox_root.h): host's programs, what it makes itself, and the code.
constexpr std::string_view kSandboxOwn[] = {
    "/bin",  "/dev", "/etc", "/lib", "/lib32",    "/lib64",    "/libx32",  "/opt/gpu",     "/proc",   "/run",
    "/sbin", "/sys", "/tmp", "/usr", "/var/task", "/var/lock", "/var/run", "/var/runtime", "/var/tmp"};

bool is_in(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// Whether each of its names is one: no '.', no '..', none that is empty.
bool is_plain_path(std::string_view folder) {
  if (folder.empty() || folder.front() != '/') return false;
  while (!folder.empty()) {
    folder.remove_prefix(1);
    const std::string_view name = folder.substr(0, folder.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    folder.remove_prefix(name.size());
  }
  return true;
}

Status validate_folder(const std::string& folder) {
  if (folder.size() > kMaxVolumeFolderBytes) {
    return fail(Errc::kInvalidArgument,
                "the folder of a volume has a path of {} bytes; it must be at most {}: {:.60}...", folder.size(),
                kMaxVolumeFolderBytes, folder);
  }
  if (!is_plain_path(folder)) {
    return fail(
        Errc::kInvalidArgument,
        "the folder '{}' of a volume must be an absolute path other than '/', without '.', '..', '//' and a last '/'",
        folder);
  }
  for (const std::string_view own : kSandboxOwn) {
    if (!is_in(folder, own) && !is_in(own, folder)) continue;
    return fail(Errc::kInvalidArgument, "the folder '{}' of a volume would hide {}, which a function has of its own",
                folder, own);
  }
  return {};
}

bool may_have(const Volume& volume, const std::string& tenant) {
  return volume.tenant.empty() || volume.tenant == tenant;
}

std::string names_for(const std::vector<Volume>& offered, const std::string& tenant) {
  std::string names;
  for (const Volume& volume : offered) {
    if (may_have(volume, tenant)) names += (names.empty() ? "" : ", ") + volume.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Result<Volume> parse_volume(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return fail(Errc::kInvalidArgument, "'{}' is no volume; it must be NAME=FOLDER or NAME=FOLDER:TENANT", text);
  }
  Volume volume{.name = text.substr(0, equals), .folder = text.substr(equals + 1), .tenant = ""};
  if (!validate_secret_name(volume.name)) {
    return fail(Errc::kInvalidArgument, "'{}' is no name of a volume: 1 to {} letters, digits, '.', '_' or '-'",
                volume.name, kMaxSecretNameLength);
  }
  if (const std::size_t colon = volume.folder.find(':'); colon != std::string::npos) {
    volume.tenant = volume.folder.substr(colon + 1);
    volume.folder.resize(colon);
    if (Status valid = validate_tenant(volume.tenant); !valid) return fail(valid.error());
  }
  if (Status valid = validate_folder(volume.folder); !valid) return fail(valid.error());
  return volume;
}

Result<std::vector<Volume>> volumes_of(const std::vector<Volume>& offered,
                                       const std::map<std::string, std::string>& tags) {
  std::vector<Volume> volumes;
  const auto tag = tags.find(kVolumesTag);
  if (tag == tags.end()) return volumes;
  const std::string tenant = tenant_of(tags);
  std::istringstream words(tag->second);
  for (std::string name; words >> name;) {
    const auto found = std::find_if(offered.begin(), offered.end(), [&](const Volume& volume) {
      return volume.name == name && may_have(volume, tenant);
    });
    if (found == offered.end()) {
      return fail(Errc::kInvalidArgument,
                  "tag {}: this node offers tenant {} no volume '{}', but: {}; the operator adds one with "
                  "serve --volume NAME=FOLDER",
                  kVolumesTag, tenant, name, names_for(offered, tenant));
    }
    if (std::find(volumes.begin(), volumes.end(), *found) == volumes.end()) volumes.push_back(*found);
  }
  if (volumes.empty() || volumes.size() > kMaxVolumes) {
    return fail(Errc::kInvalidArgument, "tag {} names {} volumes; it must be 1 to {}, with spaces between", kVolumesTag,
                volumes.size(), kMaxVolumes);
  }
  return volumes;
}

}  // namespace fairlead
