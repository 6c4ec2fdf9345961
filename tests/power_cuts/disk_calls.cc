#include "power_cuts/disk_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "power_cuts/lossy_disk.h"

namespace fairlead::power_cuts {
namespace {

std::atomic<LossyDisk*> told{nullptr};
thread_local bool is_inside = false;  // what the disk does itself is nobody's

template <typename Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
}

struct Inside {
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
};

enum class Does { kChange, kSync, kSyncAll };

// `fd` or `path` says what is changed; the other is -1 or null.
template <typename Make>
auto tell(int fd, const char* path, Does does, Make make) -> decltype(make()) {
  LossyDisk* const disk = told.load();
  if (disk == nullptr || is_inside) return make();
  const Inside inside;
  if (disk->before(fd, path, does != Does::kChange)) return -1;
  const auto result = make();
  if (result >= 0 && does == Does::kSync) disk->synced(fd);
  if (result >= 0 && does == Does::kSyncAll) disk->synced_all();
  disk->after(fd, path);
  return result;
}

}  // namespace

void DiskCalls::lead_to(LossyDisk* disk) {
  told = disk;
}

int DiskCalls::real_open(const char* path, int flags, mode_t mode) {
  return ::open(path, flags, mode);
}

bool DiskCalls::real_write(int fd, std::string_view bytes) {
  static const auto kReal = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  while (!bytes.empty()) {
    const ssize_t count = kReal(fd, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace fairlead::power_cuts

using fairlead::power_cuts::Does;
using fairlead::power_cuts::next;
using fairlead::power_cuts::tell;

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's own names
#pragma GCC visibility push(default)  // for the libraries
extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto kReal = next<ssize_t (*)(int, const void*, size_t)>("write");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, bytes, size); });
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static const auto kReal = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, bytes, size, offset); });
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  static const auto kReal = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, bytes, size, offset); });
}
ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto kReal = next<ssize_t (*)(int, const iovec*, int)>("writev");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, parts, count); });
}
int ftruncate(int fd, off_t size) noexcept {
  static const auto kReal = next<int (*)(int, off_t)>("ftruncate");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, size); });
}
int ftruncate64(int fd, off64_t size) noexcept {
  static const auto kReal = next<int (*)(int, off64_t)>("ftruncate64");
  return tell(fd, nullptr, Does::kChange, [&] { return kReal(fd, size); });
}
int rename(const char* from, const char* to) noexcept {
  static const auto kReal = next<int (*)(const char*, const char*)>("rename");
  return tell(-1, to, Does::kChange, [&] { return kReal(from, to); });
}
int unlink(const char* path) noexcept {
  static const auto kReal = next<int (*)(const char*)>("unlink");
  return tell(-1, path, Does::kChange, [&] { return kReal(path); });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto kReal = next<int (*)(int, const char*, int)>("unlinkat");
  return tell(folder, *path == '/' ? path : nullptr, Does::kChange, [&] { return kReal(folder, path, flags); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto kReal = next<int (*)(const char*, mode_t)>("mkdir");
  return tell(-1, path, Does::kChange, [&] { return kReal(path, mode); });
}
int fsync(int fd) {
  static const auto kReal = next<int (*)(int)>("fsync");
  return tell(fd, nullptr, Does::kSync, [&] { return kReal(fd); });
}
int fdatasync(int fd) {
  static const auto kReal = next<int (*)(int)>("fdatasync");
  return tell(fd, nullptr, Does::kSync, [&] { return kReal(fd); });
}
int syncfs(int fd) noexcept {
  return tell(fd, nullptr, Does::kSyncAll, [&] { return 0; });  // the machine's own files are not to be waited for
}
}
#pragma GCC visibility pop
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
