// The MPS control daemon of the software GPU: a process for each pipe directory. Clients need nothing of it but its
// settings (device/time/mps.h), so it is its own server and only answers commands.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/device/device.h"
#include "softgpu/device/time/mps.h"
#include "softgpu/mps/pipe.h"

namespace softgpu::mps {

class Daemon {
 public:
  // Claims the directory and serves the devices that CUDA_VISIBLE_DEVICES names. Error: another daemon has the directory,
  // no device is visible, the machine's state is damaged.
  static Result<std::unique_ptr<Daemon>> start(PipeDirectory pipe);
  ~Daemon();

  // Answers commands until `quit`, SIGTERM or SIGINT.
  void run();

  // The answer to one command, as NVIDIA's daemon words it where it has one. Sets `quit`.
  std::string answer(const std::string& line, bool& quit);

 private:
  struct Watched {
    std::unique_ptr<DeviceView> view;
    std::uint32_t faults = 0;  // of MPS clients, that all clients of then have paid for
  };

  Daemon(PipeDirectory pipe, Machine machine, Clients clients)
      : pipe_(std::move(pipe)), machine_(std::move(machine)), clients_(clients) {}

  Status write_settings() const;
  void log(const std::string& line) const;
  std::vector<int> client_pids() const;
  bool has_clients(const DeviceView& view) const;
  std::string status();
  std::string set_percentage(const std::vector<std::string>& words);
  std::string memory_limit(const std::vector<std::string>& words);

  PipeDirectory pipe_;
  Machine machine_;
  Clients clients_;
  Mps settings_;
  std::vector<Watched> devices_;
  int lock_ = -1;
  int socket_ = -1;
};

}  // namespace softgpu::mps
