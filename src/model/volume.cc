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

constexpr std::string_view kForWriting = ":rw";

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

bool lies_in(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

Status check_host_folder(const std::string& folder, std::string_view what) {
  if (folder.size() > kMaxVolumeFolderBytes) {
    return fail(Errc::kInvalidArgument, "the folder of {} has a path of {} bytes; it must be at most {}: {:.60}...",
                what, folder.size(), kMaxVolumeFolderBytes, folder);
  }
  if (!is_plain_path(folder)) {
    return fail(Errc::kInvalidArgument,
                "the folder '{}' of {} must be an absolute path other than '/', without '.', '..', '//' and a last '/'",
                folder, what);
  }
  for (const std::string_view own : kSandboxOwn) {
    if (!lies_in(folder, own) && !lies_in(own, folder)) continue;
    return fail(Errc::kInvalidArgument, "the folder '{}' of {} would hide {}, which a function has of its own", folder,
                what, own);
  }
  return {};
}

Result<Volume> parse_volume(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return fail(Errc::kInvalidArgument,
                "'{}' is no volume; it must be NAME=FOLDER, NAME=FOLDER:TENANT or NAME=FOLDER:TENANT:rw", text);
  }
  Volume volume{.name = text.substr(0, equals), .folder = text.substr(equals + 1), .tenant = ""};
  if (!validate_secret_name(volume.name)) {
    return fail(Errc::kInvalidArgument, "'{}' is no name of a volume: 1 to {} letters, digits, '.', '_' or '-'",
                volume.name, kMaxSecretNameLength);
  }
  if (const std::size_t colon = volume.folder.find(':'); colon != std::string::npos) {
    volume.tenant = volume.folder.substr(colon + 1);
    volume.folder.resize(colon);
    if (volume.tenant.ends_with(kForWriting)) {
      volume.tenant.resize(volume.tenant.size() - kForWriting.size());
      volume.writable = true;
    }
    if (volume.tenant == kForWriting.substr(1)) {
      return fail(Errc::kInvalidArgument,
                  "volume {}: '{}' names no tenant; what functions may write to is one tenant's: {}={}:TENANT:rw",
                  volume.name, text, volume.name, volume.folder);
    }
    if (Status valid = validate_tenant(volume.tenant); !valid) return fail(valid.error());
  }
  if (Status valid = check_host_folder(volume.folder, "a volume"); !valid) return fail(valid.error());
  return volume;
}

Status check_apart(const std::vector<Volume>& volumes) {
  for (const Volume& volume : volumes) {
    for (const Volume& outer : volumes) {
      if (&volume == &outer || !lies_in(volume.folder, outer.folder)) continue;
      if (volume.writable || outer.writable) {
        return fail(Errc::kInvalidArgument, "functions may write to one of the volumes {} and {}, and {} lies in {}",
                    volume.name, outer.name, volume.folder, outer.folder);
      }
      if (volume.tenant.empty() || volume.tenant == outer.tenant) continue;
      return fail(Errc::kInvalidArgument, "volume {} is for {} alone, and {} has it too: its folder {} lies in {}",
                  volume.name, volume.tenant, outer.name, volume.folder, outer.folder);
    }
  }
  return {};
}

Result<std::vector<Volume>> volumes_of(const std::vector<Volume>& offered,
                                       const std::map<std::string, std::string>& tags) {
  std::vector<Volume> volumes;
  const auto tag = tags.find(kVolumesTag);
  if (tag == tags.end()) return volumes;
  const std::string tenant = tenant_of(tags);
  std::istringstream words(tag->second);
  for (std::string name; words >> name;) {
    const bool for_writing = name.ends_with(kForWriting);
    if (for_writing) name.resize(name.size() - kForWriting.size());
    const auto found = std::find_if(offered.begin(), offered.end(), [&](const Volume& volume) {
      return volume.name == name && may_have(volume, tenant);
    });
    if (found == offered.end()) {
      return fail(Errc::kInvalidArgument,
                  "tag {}: this node offers tenant {} no volume '{}', but: {}; the operator adds one with "
                  "serve --volume NAME=FOLDER",
                  kVolumesTag, tenant, name, names_for(offered, tenant));
    }
    if (for_writing && !found->writable) {
      return fail(Errc::kInvalidArgument,
                  "tag {}: volume '{}' is for reading only; the operator offers one for writing with serve --volume "
                  "NAME=FOLDER:TENANT:rw",
                  kVolumesTag, name);
    }
    const auto known =
        std::find_if(volumes.begin(), volumes.end(), [&](const Volume& one) { return one.name == name; });
    if (known == volumes.end()) {
      volumes.push_back(*found);
      volumes.back().writable = for_writing;
    } else {
      known->writable |= for_writing;
    }
  }
  if (volumes.empty() || volumes.size() > kMaxVolumes) {
    return fail(Errc::kInvalidArgument, "tag {} names {} volumes; it must be 1 to {}, with spaces between", kVolumesTag,
                volumes.size(), kMaxVolumes);
  }
  return volumes;
}

}  // namespace fairlead
