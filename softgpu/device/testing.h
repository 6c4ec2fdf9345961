// For tests: a machine in a temporary folder, and child processes that can be killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace softgpu::testing {

using Environment = std::map<std::string, std::string>;

// Points SOFTGPU_HOME at a folder of its own for as long as it lives.
class TemporaryHome {
 public:
  explicit TemporaryHome(const Environment& environment = {}) {
    char folder[] = "/tmp/softgpu-test-XXXXXX";
    path_ = ::mkdtemp(folder);
    ::setenv("SOFTGPU_HOME", path_.c_str(), 1);
    for (const char* name :
         {"SOFTGPU_PROFILE", "SOFTGPU_DEVICES", "SOFTGPU_MODE", "SOFTGPU_TIME_SCALE", "SOFTGPU_MEMORY_SCALE",
          "SOFTGPU_TIME_SLICE_US", "SOFTGPU_LAUNCH_TIMEOUT_MS", "SOFTGPU_WORKERS", "SOFTGPU_TRACE",
          "SOFTGPU_MIG_ENUMERATION", "CUDA_VISIBLE_DEVICES", "CUDA_MODULE_LOADING", "CUDA_MPS_PIPE_DIRECTORY",
          "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_CLIENT_PRIORITY"}) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~TemporaryHome() { std::filesystem::remove_all(path_); }
  TemporaryHome(const TemporaryHome&) = delete;
  TemporaryHome& operator=(const TemporaryHome&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs `body` in a child process, which then waits to be killed. The constructor returns when the body has run.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int done[2];
    if (::pipe(done) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      body();
      if (::write(done[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(done[1]);
    char byte = 0;
    ran_ = ::read(done[0], &byte, 1) == 1;
    ::close(done[0]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool ran() const { return ran_; }
  int pid() const { return pid_; }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  int pid_ = 0;
  bool ran_ = false;
};

}  // namespace softgpu::testing
