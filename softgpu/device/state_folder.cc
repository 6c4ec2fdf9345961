#include "softgpu/device/state_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "softgpu/device/files.h"
#include "softgpu/device/key_value.h"

namespace softgpu {
namespace {

bool is_state_file(const std::string& name) {
  for (const char* prefix : {"machine", "clients", "slots", "shares", "events", "mps."}) {
    if (name.starts_with(prefix)) return true;
  }
  return name == "share_locks" || name == "mps" || (name.starts_with("device") && name.find('.') != std::string::npos);
}

}  // namespace

// The first lines, up to the profiles. All versions have had these keys.
std::optional<std::string> state_version(const std::string& home) {
  const auto text = read_file(home + "/machine");
  if (!text) return std::nullopt;
  const auto values = parse_key_values(text->substr(0, text->find("\n---")));
  if (!values) return std::nullopt;
  for (const char* key : {"version", "id", "devices"}) {
    if (!values->contains(key)) return std::nullopt;
  }
  return values->find("version")->second;
}

bool state_in_use(const std::string& home) {
  const int slots = ::open((home + "/slots").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (slots < 0) return false;
  struct flock lock = {};  // of the whole file
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool used = ::fcntl(slots, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  // The lock may be this process's own, and closing would drop it.
  if (!used) ::close(slots);
  return used;
}

bool renews_damaged_state() {
  const char* choice = std::getenv("SOFTGPU_DAMAGED");
  return choice != nullptr && std::string_view(choice) == "renew";
}

void clear_state(const std::string& home) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(home, error)) {
    if (is_state_file(entry.path().filename())) std::filesystem::remove_all(entry.path(), error);
  }
}

Status leave_other_version(const std::string& home) {
  const std::string own = std::to_string(kStateVersion);
  if (state_version(home).value_or(own) == own) return {};
  const FolderLock lock(home);
  const std::string found = state_version(home).value_or(own);  // again: another process may have been first
  if (found == own) return {};
  if (state_in_use(home)) {
    return failure(home + " is of version " + found + " and used by processes of that version; this library's is " +
                   own + ": end them (softgpu reset --force forgets them), or set SOFTGPU_HOME to another folder");
  }
  clear_state(home);
  return {};
}

}  // namespace softgpu
