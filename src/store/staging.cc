#include "store/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/log.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStagingPrefix = "staging-";

std::string own_staging_prefix() {
  return fmt::format("{}{}-", kStagingPrefix, getpid());
}

Status sync_path(const std::string& path, int (*sync)(int)) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(errno_error(errno, "open " + path));
  int result = sync(fd);
  int error = errno;
  close(fd);
  if (result != 0) return fail(errno_error(error, "sync " + path));
  return {};
}

}  // namespace

Result<Staging> Staging::create(const std::string& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return fail(errno_error(error.value(), "create folder " + parent));
  std::string path = parent + "/" + own_staging_prefix() + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return fail(errno_error(errno, "create folder " + path));
  Staging staging(path);
  if (chmod(path.c_str(), 0755) != 0) return fail(errno_error(errno, "chmod " + path));
  return staging;
}

Staging::~Staging() {
  std::error_code ignored;  // what stays is removed at the next start
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status install_folder(const std::string& folder, const std::string& final_path) {
  // syncfs: thousands of small files in one call. Content before name: a folder that exists is complete.
  if (Status status = sync_path(folder, syncfs); !status) return status;
  if (rename(folder.c_str(), final_path.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return fail(errno_error(errno, "rename " + folder + " to " + final_path));
  }
  return sync_path(fs::path(final_path).parent_path(), fsync);
}

void remove_unused_folders(const std::string& parent, const std::vector<std::string>& used, std::string_view kind) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    bool staging_of_this_process = entry.path().filename().string().starts_with(own_staging_prefix());
    bool is_used = std::find(used.begin(), used.end(), entry.path().string()) != used.end();
    if (staging_of_this_process || is_used) continue;
    std::error_code remove_error;
    fs::remove_all(entry.path(), remove_error);
    if (remove_error) spdlog::warn("unused {} {}: {}", kind, entry.path().string(), remove_error.message());
  }
}

}  // namespace fairlead::store
