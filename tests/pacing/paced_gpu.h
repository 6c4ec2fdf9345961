// A software GPU in charge mode, its pacer, and programs under it: what the live tests and the bench of places share.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/pacing/pace_driver.h"
#include "shim/testing/node.h"
#include "tests/pacing/progress.h"

namespace fairlead::pacing_tests {

struct Paths {
  std::string program, shim;
  std::string softgpu_libraries;  // empty: this computer's own driver
};

// One paced-program, and the process that it forked, if it did.
class Client {
 public:
  Client(pid_t pid, int input, Progress* progress) : pid_(pid), input_(input), progress_(progress) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void kill();
  bool lives() const;
  std::uint64_t kernels() const { return progress_->kernels.load(); }
  std::uint64_t answered() const { return progress_->answered.load(); }
  std::uint64_t missed() const { return progress_->missed.load(); }
  Duration queued() const { return Duration(static_cast<Duration::rep>(progress_->queued_ns.load())); }
  Duration served() const { return Duration(static_cast<Duration::rep>(progress_->served_ns.load())); }
  // Of all of its processes, as their shims tell.
  Duration gpu_time() const;
  const wire::ShimPage& page(std::size_t process = 0) const { return connections.at(process)->page(); }

  std::vector<std::shared_ptr<shim::testing::Connection>> connections;

 private:
  pid_t pid_;
  int input_;
  Progress* progress_;
};

// Aborts where the system refuses what every test needs.
class PacedGpu {
 public:
  explicit PacedGpu(const Paths& paths, std::map<std::string, std::string> environment = {});
  ~PacedGpu();
  PacedGpu(const PacedGpu&) = delete;
  PacedGpu& operator=(const PacedGpu&) = delete;

  // Starts a program and waits until it has registered; null: it has not. Not paced yet.
  std::unique_ptr<Client> start(const std::vector<std::string>& words, std::size_t processes = 1,
                                const std::map<std::string, std::string>& environment = {});
  // From now on it needs places.
  static Status pace(PaceDriver& driver, InstanceId id, const PacedShare& share, Client& client);
  std::string machine() const { return folder_ + "/machine"; }  // the software GPU's folder
  void close_node() { node_.reset(); }

 private:
  Paths paths_;
  std::map<std::string, std::string> environment_;
  std::string folder_, socket_;
  std::unique_ptr<shim::testing::Node> node_;
};

}  // namespace fairlead::pacing_tests
