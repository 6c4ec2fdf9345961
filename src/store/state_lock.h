// One node per state folder: an advisory lock on <state>/lock, held while this object lives and released by the kernel
// when the process dies. The file holds the pid of the last holder, for people.
//
// A child forked while the lock is held shares it until it closes the descriptor or calls exec.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead::store {

class StateLock {
 public:
  // kConflict names the process that holds the lock.
  static Result<StateLock> acquire(const std::string& state_dir);

  StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StateLock& operator=(StateLock&&) = delete;
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace fairlead::store
