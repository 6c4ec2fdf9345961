#include "softgpu/device/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "softgpu/device/mapping_guard.h"

namespace softgpu {
namespace {

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

// A new file beside `path`.
Result<std::string> write_temporary(const std::string& path, std::string_view content) {
  std::string temporary = path + "." + std::to_string(random_number());
  const int file = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return failure(last_error("create", temporary));
  const bool written = write_all(file, content);
  const std::string error = written ? "" : last_error("write", temporary);
  ::close(file);
  if (written) return temporary;
  ::unlink(temporary.c_str());
  return failure(error);
}

// Maps `bytes` of `path`; an error when the file is not exactly that large.
Result<void*> map_file(const std::string& path, std::size_t bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return failure(last_error("open", path));
  struct stat info = {};
  if (::fstat(file, &info) != 0 || static_cast<std::size_t>(info.st_size) != bytes) {
    ::close(file);
    return failure(path + " has " + std::to_string(info.st_size) + " bytes: expected " + std::to_string(bytes));
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

Status create_file_once(const std::string& path, std::string_view content) {
  if (::access(path.c_str(), F_OK) == 0) return {};
  const auto temporary = write_temporary(path, content);
  if (!temporary) return failure(temporary.error());
  const bool linked = ::link(temporary->c_str(), path.c_str()) == 0 || errno == EEXIST;
  const std::string error = linked ? "" : last_error("write", path);
  ::unlink(temporary->c_str());
  if (!linked) return failure(error);
  return {};
}

Status replace_file(const std::string& path, std::string_view content) {
  const auto temporary = write_temporary(path, content);
  if (!temporary) return failure(temporary.error());
  if (::rename(temporary->c_str(), path.c_str()) == 0) return {};
  const std::string error = last_error("write", path);
  ::unlink(temporary->c_str());
  return failure(error);
}

FolderLock::FolderLock(const std::string& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ >= 0) ::flock(folder_, LOCK_EX);
}

FolderLock::~FolderLock() {
  if (folder_ < 0) return;
  ::flock(folder_, LOCK_UN);  // by request: a child forked meanwhile has the descriptor too
  ::close(folder_);
}

Result<std::string> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failure(last_error("read", path));
  std::string content;
  std::vector<char> buffer(16384);
  ssize_t count = 0;
  while ((count = ::read(file, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  if (count < 0) return failure(last_error("read", path));
  return content;
}

Result<int> open_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return failure(last_error("open", path));
  return file;
}

Result<void*> map_table(const std::string& path, std::string_view header, std::size_t bytes) {
  std::string blank(header);
  blank.resize(bytes);
  if (const auto created = create_file_once(path, blank); !created) return failure(created.error());
  auto mapping = map_file(path, bytes);
  if (!mapping) return failure(mapping.error() + "; run `softgpu reset`");
  if (std::memcmp(*mapping, header.data(), header.size()) != 0) {
    return failure(path + " is of another version or damaged; run `softgpu reset`");
  }
  return mapping;
}

Result<void*> map_table(const std::string& path, std::uint64_t magic, std::size_t bytes) {
  return map_table(path, std::string_view(reinterpret_cast<const char*>(&magic), sizeof magic), bytes);
}

}  // namespace softgpu
