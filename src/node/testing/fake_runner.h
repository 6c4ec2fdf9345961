// A runner without processes: it notes what it is told, and says of every instance what the test set.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/runner.h"

namespace fairlead {

class FakeRunner final : public Runner {
 public:
  struct SwapOut {
    InstanceId instance;
    Bytes bytes{0};
    Duration deadline{0};
    bool operator==(const SwapOut&) const = default;
  };

  void start(const StartOrder& order) override { started.push_back(order.instance); }
  void deliver(InstanceId instance, DeliverRequest request) override {
    delivered.emplace_back(instance, std::move(request));
  }
  void kill(InstanceId instance) override { killed.push_back(instance); }
  std::optional<DeviceUse> use(InstanceId instance) override {
    const auto it = uses.find(instance);
    return it == uses.end() ? std::nullopt : std::optional(it->second);
  }
  UseSource use_source() const override { return source; }
  void swap_out(InstanceId instance, Bytes bytes, Duration deadline) override {
    swapped_out.push_back({instance, bytes, deadline});
  }
  void swap_in(InstanceId instance) override { swapped_in.push_back(instance); }
  void grant_room(InstanceId, std::uint64_t request, bool is_granted) override { granted[request] = is_granted; }
  std::string log_tail(InstanceId) const override { return log; }
  int init_pid(InstanceId) const override { return pid; }

  UseSource source = UseSource::kReported;
  std::map<InstanceId, DeviceUse> uses;
  std::string log;
  int pid = 0;
  std::vector<InstanceId> started, killed, swapped_in;
  std::vector<SwapOut> swapped_out;
  std::vector<std::pair<InstanceId, DeliverRequest>> delivered;
  std::map<std::uint64_t, bool> granted;
};

}  // namespace fairlead
