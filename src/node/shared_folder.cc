#include "node/shared_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/sandbox_process.h"

namespace fairlead {
namespace {

constexpr mode_t kMode = 02710;
constexpr const char* kDescription = "machine";  // every software GPU's folder has it
constexpr const char* kAdvice = "name another folder with SOFTGPU_HOME";

Result<UniqueFd> open_folder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder) return folder;
  if (errno == ELOOP || errno == ENOTDIR) {
    return fail(Errc::kInvalidArgument, "the software GPU's folder {} is a link or no folder: {}", path, kAdvice);
  }
  return fail(errno_error(errno, "open the software GPU's folder " + path));
}

std::vector<std::string> names_in(const UniqueFd& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup(folder.get())), &::closedir);
  if (!entries) return names;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Status check_is_software_gpus(const std::string& path, const struct stat& info, const std::vector<std::string>& names) {
  if (info.st_uid != 0 && info.st_uid != kSandboxUid) {
    return fail(Errc::kInvalidArgument, "the software GPU's folder {} belongs to user {}, not to root: {}", path,
                info.st_uid, kAdvice);
  }
  const bool has_description = std::find(names.begin(), names.end(), kDescription) != names.end();
  if ((info.st_mode & S_ISVTX) == 0 && (names.empty() || has_description)) return {};
  return fail(Errc::kInvalidArgument, "the software GPU's folder {} is used for other files: {}", path, kAdvice);
}

}  // namespace

Status share_with_functions(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(errno_error(error.value(), "create the software GPU's folder " + path));
  if (::geteuid() != 0) return {};
  Result<UniqueFd> folder = open_folder(path);
  if (!folder) return fail(folder.error());
  struct stat info {};
  if (::fstat(folder->get(), &info) != 0) return fail(errno_error(errno, "stat " + path));
  if (info.st_uid == 0 && info.st_gid == kSandboxUid && (info.st_mode & 07777) == kMode) return {};
  const std::vector<std::string> names = names_in(*folder);
  if (Status ours = check_is_software_gpus(path, info, names); !ours) return ours;
  if (::fchown(folder->get(), 0, kSandboxUid) != 0 || ::fchmod(folder->get(), kMode) != 0) {
    return fail(errno_error(errno, "share " + path + " with functions"));
  }
  if (info.st_uid != kSandboxUid) return {};
  for (const std::string& name : names) ::unlinkat(folder->get(), name.c_str(), 0);  // now that they mean what they did
  return {};
}

}  // namespace fairlead
