// The pipe directory of an MPS control daemon and the socket in it: what the daemon listens at and the front end sends to.
//
// One connection is one command: a line, answered by text until the daemon closes. Addresses of sockets are short (108
// bytes) and pipe directories are not, so the directory is opened and the socket named below /proc/self/fd.
#pragma once

#include <string>

#include "softgpu/device/result.h"

namespace softgpu::mps {

class PipeDirectory {
 public:
  // $CUDA_MPS_PIPE_DIRECTORY, or NVIDIA's default. Error: it cannot be made or opened.
  static Result<PipeDirectory> open(bool create);
  PipeDirectory(PipeDirectory&& other) noexcept : path_(std::move(other.path_)), fd_(other.fd_) { other.fd_ = -1; }
  PipeDirectory& operator=(PipeDirectory&&) = delete;
  ~PipeDirectory();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // The daemon's claim to the directory: a descriptor that holds the lock. Error: another daemon has it.
  Result<int> lock() const;
  // A listening socket, in place of one that a killed daemon left.
  Result<int> listen() const;
  // Sends one command. Error: no daemon answers.
  Result<std::string> send(const std::string& command) const;

 private:
  PipeDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string socket_name() const;

  std::string path_;
  int fd_;
};

}  // namespace softgpu::mps
