// A folder on a disk that loses what was not synced, for tests of whole programs: nothing of what they are made of is replaced.
//
// Idea. The files are real and lie in memory (/dev/shm). This program has its own write(), fsync(), rename() and others, which call
// libc's. What a sync has made durable is remembered: a file's bytes, a folder's names. At the cut, what is durable is compared
// with what is there:
//
//   every sector of 512 bytes that differs    the durable one, the new one; where there was none: zeros, or what the disk had there
//   a file's size that differs                the durable one, the new one, or one between
//   every name of a folder that differs       what it durably leads to (or nothing), or what it leads to now
//
// each drawn for itself, so that writes are lost, torn and overtake each other. That is more than most file systems do: a new file's
// name needs a sync of its folder. Whoever runs on after the cut is a ghost: nothing of what it does is on the disk that comes back.
//
// Example: write(a), fsync(a), write(b), rename(b, a), cut. `a` is the old one, or b with any of its sectors.
//
// Not modelled: versions of a sector between its last sync and the cut; sectors torn in themselves.
//
// Threads: any. One disk at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace fairlead::power_cuts {

class LossyDisk {
 public:
  // What is in `folder` now is durable. REQUIRES: it exists, and is an absolute path without links
  explicit LossyDisk(std::string folder);
  ~LossyDisk();
  LossyDisk(const LossyDisk&) = delete;

  // The power goes after the call of that number, counted from now, among those that change or sync something. `at_cut` runs at
  // that moment, on the thread that calls; no other change or sync happens meanwhile.
  void cut_after(int calls, std::uint64_t seed, std::function<void()> at_cut);
  // Now, where it has not gone yet.
  void cut_now();
  // The call of that number fails: no space, where it writes, else an input or output error. 0: none.
  void fail_at(int call);
  int calls() const;

  // The folder becomes what the machine finds afterwards. REQUIRES: the power has gone; nobody has a file of it open
  void restore();

  // ---- of the calls that this program replaces: true where the call is to fail
  bool before(int fd_or_nothing, const char* path, bool is_sync);
  void after(int fd_or_nothing, const char* path);
  void synced(int fd);
  void synced_all();

 private:
  using Inode = ino_t;
  struct Known {      // a file or a folder that was ever there
    UniqueFd handle;  // so that its number is nobody else's
    bool is_folder = false;
    std::string bytes;                   // durable
    std::map<std::string, Inode> names;  // durable
  };

  bool is_ours(const std::string& path) const;
  std::string path_of(int fd, const char* path) const;
  Inode know(const std::string& path);
  void sync_file(Inode inode);
  void sync_folder(Inode inode, const std::string& path);
  void sync_tree(const std::string& path);
  void cut();
  void build(Inode inode, const std::string& now, const std::string& to);
  void build_file(Inode inode, const std::string& to);
  std::string in_part(const std::string& durable, const std::string& now);

  const std::string folder_;
  const std::string image_;
  mutable std::recursive_mutex mutex_;
  std::map<Inode, Known> known_;
  std::mt19937_64 random_;
  bool is_cut_ = false;
  int calls_ = 0, cut_at_ = 0, fail_at_ = 0;
  std::function<void()> at_cut_;
};

}  // namespace fairlead::power_cuts
