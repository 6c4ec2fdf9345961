// For tests of the device model: a process of a test is one client, so clients run in child processes.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "softgpu/device/device.h"
#include "softgpu/device/testing.h"

namespace softgpu::testing {

// 16 GiB / 64: 128 pages.
inline const Environment kSmall = {{"SOFTGPU_MEMORY_SCALE", "64"}};

// Everything one client process has. Never destroyed: like the driver's, it lives as long as the process.
struct Client {
  Machine machine;
  std::optional<Clients> clients;
  Owner self;
  std::unique_ptr<Device> device;
};

inline Client& open_client() {
  auto& client = *new Client;
  client.machine = open_machine().value();
  client.clients = Clients::open(client.machine).value();
  client.self = client.clients->join().value();
  client.device = Device::open(client.machine, *client.clients, client.self, 0).value();
  return client;
}

// Tests run as clients in child processes; this reads the shared state as NVML does.
struct Observer {
  Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  std::unique_ptr<DeviceView> view = DeviceView::open(machine, clients, 0).value();
  std::uint64_t used() const { return view->use().total; }
};

// Runs `body` in a process of its own, because a process is one client; its expectations decide the exit status.
inline void as_client(const std::function<void(Client&)>& body) {
  const int pid = ::fork();
  if (pid == 0) {
    body(open_client());
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace softgpu::testing
