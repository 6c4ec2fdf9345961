#include "softgpu/device/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "softgpu/device/mapping_guard.h"

namespace softgpu {
namespace {

constexpr mode_t kGroupWrites = 0660;
constexpr mode_t kGroupReads = 0640;
constexpr std::chrono::milliseconds kLockPause(5);

std::string last_error(const std::string& what, const std::string& path) {
  return "cannot " + what + " " + path + ": " + std::strerror(errno);
}

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// What is known of the folder that a file lies in.
struct stat folder_of(const std::string& path) {
  struct stat info = {};
  const auto slash = path.rfind('/');
  ::stat(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), &info);
  return info;
}

// Gives a file of the caller's the group and the mode that its folder's members need.
void share_with_group(int file, const struct stat& info, const struct stat& folder, Writers writers) {
  if ((folder.st_mode & S_ISGID) == 0 || info.st_uid != ::geteuid()) return;
  const mode_t mode = writers == Writers::kGroup ? kGroupWrites : kGroupReads;
  const bool moved = info.st_gid != folder.st_gid && ::fchown(file, static_cast<uid_t>(-1), folder.st_gid) == 0;
  if (moved || (info.st_mode & 07777) != mode) ::fchmod(file, mode);
}

// Why an open file is not used, empty when it is.
std::string objection(const struct stat& info, const struct stat& folder) {
  if (!S_ISREG(info.st_mode)) return " is no regular file";
  if (::geteuid() == 0 && info.st_uid != 0 && info.st_uid != folder.st_uid) {
    return " belongs to user " + std::to_string(info.st_uid) + ", neither to root nor to the folder's owner, user " +
           std::to_string(folder.st_uid);
  }
  return "";
}

// Opens a file of the folder as the head of files.h says.
Result<int> open_checked(const std::string& path, int flags, Writers writers) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
  if (file < 0 && errno == ELOOP) return failure(path + " is a link; run `softgpu reset`");
  if (file < 0 && (errno == EISDIR || errno == ENXIO)) {
    return failure(path + " is no regular file; run `softgpu reset`");
  }
  if (file < 0) return failure(last_error("open", path));
  struct stat info = {};
  const struct stat folder = folder_of(path);
  std::string wrong = ::fstat(file, &info) == 0 ? objection(info, folder) : " cannot be examined";
  if (!wrong.empty()) {
    ::close(file);
    return failure(path + wrong + "; run `softgpu reset`");
  }
  share_with_group(file, info, folder, writers);
  return file;
}

// A new file beside `path`.
Result<std::string> write_temporary(const std::string& path, std::string_view content, Writers writers) {
  std::string temporary = path + "." + std::to_string(random_number());
  const auto opened = open_checked(temporary, O_RDWR | O_CREAT | O_EXCL, writers);
  if (!opened) return failure(opened.error());
  const int file = *opened;
  const bool written = write_all(file, content);
  const std::string error = written ? "" : last_error("write", temporary);
  ::close(file);
  if (written) return temporary;
  ::unlink(temporary.c_str());
  return failure(error);
}

// Maps `bytes` of `path`; an error when the file has fewer. What somebody added behind them is nobody's.
Result<void*> map_file(const std::string& path, std::size_t bytes) {
  const auto opened = open_checked(path, O_RDWR, Writers::kGroup);
  if (!opened) return failure(opened.error());
  const int file = *opened;
  struct stat info = {};
  if (::fstat(file, &info) != 0 || static_cast<std::size_t>(info.st_size) < bytes) {
    ::close(file);
    return failure(path + " has " + std::to_string(info.st_size) + " bytes: expected " + std::to_string(bytes) +
                   "; run `softgpu reset`");
  }
  void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapping == MAP_FAILED) return failure(last_error("map", path));
  guard_mapping(mapping, bytes);
  return mapping;
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

Status create_file_once(const std::string& path, std::string_view content, Writers writers) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0) return {};  // a link too: what opens the file refuses it
  const auto temporary = write_temporary(path, content, writers);
  if (!temporary) return failure(temporary.error());
  const bool linked = ::link(temporary->c_str(), path.c_str()) == 0 || errno == EEXIST;
  const std::string error = linked ? "" : last_error("write", path);
  ::unlink(temporary->c_str());
  if (!linked) return failure(error);
  return {};
}

Status replace_file(const std::string& path, std::string_view content) {
  const auto temporary = write_temporary(path, content, Writers::kOwner);
  if (!temporary) return failure(temporary.error());
  if (::rename(temporary->c_str(), path.c_str()) == 0) return {};
  const std::string error = last_error("write", path);
  ::unlink(temporary->c_str());
  return failure(error);
}

FolderLock::FolderLock(const std::string& folder, int patience_ms)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (folder_ >= 0 && ::flock(folder_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() >= end) {
      std::fprintf(stderr, "softgpu: %s has been locked for %d ms by another process; going on without the lock\n",
                   folder.c_str(), patience_ms);
      ::close(folder_);
      folder_ = -1;
      return;
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

FolderLock::~FolderLock() {
  if (folder_ < 0) return;
  ::flock(folder_, LOCK_UN);  // by request: a child forked meanwhile has the descriptor too
  ::close(folder_);
}

Result<std::string> read_file(const std::string& path) {
  const auto file = open_checked(path, O_RDONLY, Writers::kOwner);
  if (!file) return failure(file.error());
  std::string content;
  std::vector<char> buffer(16384);
  ssize_t count = 0;
  while (content.size() <= kMostTextBytes && (count = ::read(*file, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(*file);
  if (count < 0) return failure(last_error("read", path));
  if (content.size() > kMostTextBytes) {
    return failure(path + " has more than " + std::to_string(kMostTextBytes) + " bytes; run `softgpu reset`");
  }
  return content;
}

Result<int> open_file(const std::string& path) {
  return open_checked(path, O_RDWR | O_CREAT, Writers::kGroup);
}

Status make_table(const std::string& path, std::uint64_t magic, std::size_t bytes) {
  std::string blank(reinterpret_cast<const char*>(&magic), sizeof magic);
  blank.resize(bytes);
  if (auto created = create_file_once(path, blank, Writers::kGroup); !created) return created;
  const auto file = open_file(path);  // gives it its mode, should it have been there before the folder was shared
  if (!file) return failure(file.error());
  ::close(*file);
  return {};
}

std::string damage_of_table(const std::string& path, std::uint64_t magic, std::size_t bytes) {
  const auto file = open_checked(path, O_RDONLY, Writers::kGroup);
  const int reason = errno;
  if (!file) return reason == EMFILE || reason == ENFILE || reason == ENOMEM ? "" : file.error();
  std::uint64_t head = 0;
  struct stat info = {};
  const bool intact = ::fstat(*file, &info) == 0 && static_cast<std::size_t>(info.st_size) >= bytes &&
                      ::pread(*file, &head, sizeof head, 0) == sizeof head && head == magic;
  ::close(*file);
  return intact ? "" : path + ": its head is damaged, or it was cut short";
}

Result<void*> map_table(const std::string& path, std::string_view header, std::size_t bytes) {
  std::string blank(header);
  blank.resize(bytes);
  if (const auto created = create_file_once(path, blank, Writers::kGroup); !created) return failure(created.error());
  auto mapping = map_file(path, bytes);
  if (!mapping) return failure(mapping.error());
  if (std::memcmp(*mapping, header.data(), header.size()) != 0) {
    return failure(path + " is of another version or damaged; run `softgpu reset`");
  }
  return mapping;
}

Result<void*> map_table(const std::string& path, std::uint64_t magic, std::size_t bytes) {
  return map_table(path, std::string_view(reinterpret_cast<const char*>(&magic), sizeof magic), bytes);
}

}  // namespace softgpu
