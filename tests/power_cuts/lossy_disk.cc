#include "power_cuts/lossy_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "power_cuts/disk_calls.h"

namespace fairlead::power_cuts {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kSector = 512;

std::string bytes_of(int fd) {
  std::string bytes;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return bytes;
  bytes.resize(static_cast<std::size_t>(info.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t count = ::pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (count <= 0) break;
    at += static_cast<std::size_t>(count);
  }
  bytes.resize(at);
  return bytes;
}

bool is_kept(const fs::directory_entry& entry) {
  std::error_code ignored;
  return !entry.is_symlink(ignored) && (entry.is_regular_file(ignored) || entry.is_directory(ignored));
}

std::map<std::string, std::string> names_in(const std::string& path) {
  std::map<std::string, std::string> paths;  // by name
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (is_kept(entry)) paths.emplace(entry.path().filename().string(), entry.path().string());
  }
  return paths;
}

}  // namespace

LossyDisk::LossyDisk(std::string folder) : folder_(std::move(folder)), image_(folder_ + ".after") {
  sync_tree(folder_);
  DiskCalls::lead_to(this);
}

LossyDisk::~LossyDisk() {
  DiskCalls::lead_to(nullptr);
  std::error_code ignored;
  fs::remove_all(image_, ignored);
}

void LossyDisk::cut_after(int calls, std::uint64_t seed, std::function<void()> at_cut) {
  const std::lock_guard lock(mutex_);
  random_.seed(seed);
  calls_ = 0;
  cut_at_ = calls;
  at_cut_ = std::move(at_cut);
}

void LossyDisk::cut_now() {
  const std::lock_guard lock(mutex_);
  if (!is_cut_) cut();
}

void LossyDisk::fail_at(int call) {
  const std::lock_guard lock(mutex_);
  fail_at_ = call;
}

int LossyDisk::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void LossyDisk::restore() {
  DiskCalls::lead_to(nullptr);
  const std::lock_guard lock(mutex_);
  FL_CHECK(is_cut_, "the power is still there");
  known_.clear();
  for (const auto& [name, path] : names_in(folder_)) fs::remove_all(path);
  for (const auto& [name, path] : names_in(image_)) fs::rename(path, folder_ + "/" + name);
  fs::remove_all(image_);
}

// ---- what the calls say

bool LossyDisk::is_ours(const std::string& path) const {
  return path == folder_ || (path.starts_with(folder_) && path[folder_.size()] == '/');
}

std::string LossyDisk::path_of(int fd, const char* path) const {
  if (path != nullptr) return path;
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  return size <= 0 ? std::string() : std::string(target, static_cast<std::size_t>(size));
}

bool LossyDisk::before(int fd, const char* path, bool is_sync) {
  if (!is_ours(path_of(fd, path))) return false;
  mutex_.lock();  // until after(): a call and what is noted of it are one
  if (++calls_ != fail_at_ || is_cut_) return false;
  mutex_.unlock();
  errno = is_sync ? EIO : ENOSPC;
  return true;
}

void LossyDisk::after(int fd, const char* path) {
  const int error = errno;
  if (is_ours(path_of(fd, path))) {
    if (!is_cut_ && cut_at_ > 0 && calls_ >= cut_at_) cut();
    mutex_.unlock();
  }
  errno = error;
}

// REQUIRES: between before() and after().
void LossyDisk::synced(int fd) {
  const std::string path = path_of(fd, nullptr);
  if (is_cut_ || !is_ours(path)) return;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISDIR(info.st_mode)) return sync_folder(know(path), path);
  if (!known_.contains(info.st_ino)) {
    // By its descriptor, since it may have no name any more; for reading, since `fd` may be for writing alone.
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    UniqueFd handle(DiskCalls::real_open(link.c_str(), O_RDONLY | O_CLOEXEC));
    FL_CHECK(handle.get() >= 0, "a file that cannot be read");
    known_[info.st_ino] = {.handle = std::move(handle), .is_folder = false, .bytes = {}, .names = {}};
  }
  sync_file(info.st_ino);
}

void LossyDisk::synced_all() {
  if (!is_cut_) sync_tree(folder_);
}

// ---- what is durable

LossyDisk::Inode LossyDisk::know(const std::string& path) {
  UniqueFd handle(DiskCalls::real_open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  FL_CHECK(handle && ::fstat(handle.get(), &info) == 0, "a file that went while it was looked at");
  if (!known_.contains(info.st_ino)) {
    known_[info.st_ino] = {.handle = std::move(handle), .is_folder = S_ISDIR(info.st_mode), .bytes = {}, .names = {}};
  }
  return info.st_ino;
}

void LossyDisk::sync_file(Inode inode) {
  known_.at(inode).bytes = bytes_of(known_.at(inode).handle.get());
}

void LossyDisk::sync_folder(Inode inode, const std::string& path) {
  std::map<std::string, Inode> names;
  for (const auto& [name, at] : names_in(path)) names[name] = know(at);
  known_.at(inode).names = std::move(names);
}

void LossyDisk::sync_tree(const std::string& path) {
  const Inode inode = know(path);
  if (!known_.at(inode).is_folder) return sync_file(inode);
  sync_folder(inode, path);
  for (const auto& [name, at] : names_in(path)) sync_tree(at);
}

// ---- the cut

void LossyDisk::cut() {
  is_cut_ = true;
  if (at_cut_) at_cut_();
  std::error_code ignored;
  fs::remove_all(image_, ignored);
  build(know(folder_), folder_, image_);
}

// `now`: where the folder is now; empty: nowhere any more.
void LossyDisk::build(Inode inode, const std::string& now, const std::string& to) {
  fs::create_directory(to);
  ::chmod(to.c_str(), 0700);
  const std::map<std::string, Inode> durable = known_.at(inode).names;
  const std::map<std::string, std::string> there = now.empty() ? std::map<std::string, std::string>() : names_in(now);
  std::set<std::string> names;
  for (const auto& [name, target] : durable) names.insert(name);
  for (const auto& [name, path] : there) names.insert(name);
  for (const std::string& name : names) {
    const auto found = there.find(name);
    const std::optional<Inode> new_one = found == there.end() ? std::nullopt : std::optional(know(found->second));
    const auto old = durable.find(name);
    const std::optional<Inode> old_one = old == durable.end() ? std::nullopt : std::optional(old->second);
    const std::optional<Inode> target = random_() % 2 == 0 ? new_one : old_one;
    if (!target) continue;
    const std::string path = to + "/" + name;
    if (!known_.at(*target).is_folder) {
      build_file(*target, path);
    } else {
      build(*target, target == new_one ? found->second : std::string(), path);
    }
  }
}

void LossyDisk::build_file(Inode inode, const std::string& to) {
  const Known& file = known_.at(inode);
  const std::string bytes = in_part(file.bytes, bytes_of(file.handle.get()));
  struct stat info {};
  FL_CHECK(::fstat(file.handle.get(), &info) == 0, "fstat");
  const UniqueFd made(DiskCalls::real_open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  FL_CHECK(made.get() >= 0, "make a file of the image");
  FL_CHECK(DiskCalls::real_write(made.get(), bytes) && ::fchmod(made.get(), info.st_mode & 07777) == 0,
           "write the image");
}

// All old and all new are as likely as a mixture: some faults show only there.
std::string LossyDisk::in_part(const std::string& durable, const std::string& now) {
  if (durable == now) return now;
  const auto fate = random_() % 4;
  if (fate == 0) return durable;
  if (fate == 1) return now;
  const std::size_t least = std::min(durable.size(), now.size()), most = std::max(durable.size(), now.size());
  const std::size_t between = least + (most > least ? random_() % (most - least) / kSector * kSector : 0);
  const std::size_t sizes[] = {durable.size(), now.size(), between};
  std::string bytes(sizes[random_() % 3], '\0');
  for (std::size_t at = 0; at < bytes.size(); at += kSector) {
    const std::string& from = random_() % 2 == 0 ? durable : now;
    const std::size_t size = std::min(kSector, bytes.size() - at);
    if (at < from.size()) {
      std::memcpy(bytes.data() + at, from.data() + at, std::min(size, from.size() - at));
    } else if (fate == 3) {
      for (std::size_t i = at; i < at + size; ++i)
        bytes[i] = static_cast<char>(random_());  // what another file left there
    }
  }
  return bytes;
}

}  // namespace fairlead::power_cuts
