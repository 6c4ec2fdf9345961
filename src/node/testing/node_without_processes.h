// The node's classes around a core, with a fake runner where processes would be: what Node wires, for tests of the parts.
//
//   add_function("f") ──> invoke ──> ready(instance) ──> runner.delivered ──> answer(...) ──> idle(instance)
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node/charges.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/instances.h"
#include "node/invocation_notes.h"
#include "node/invocations.h"
#include "node/memory_desk.h"
#include "node/request_id.h"
#include "node/tenants.h"
#include "node/testing/fake_runner.h"

namespace fairlead {

class NodeWithoutProcesses : public testing::Test {
 protected:
  explicit NodeWithoutProcesses(const CoreOptions& options = {})
      : driver(io, options, make_policy("fcfs", {}).value()) {
    driver.connect(
        [this](const Action& action) {
          actions.push_back(to_string(action));
          std::visit([this](const auto& a) { act(a); }, action);
        },
        [this] { ++settled; });
    driver.core().add_gpu({.gpu = GpuId(1), .memory = gib(16)});
  }

  const RegisteredFunction& add_function(const std::string& name) {
    const RegisteredFunction& function = functions.add({.name = name}, nullptr);
    driver.core().add_function(flow_spec(function, tenants));
    return function;
  }

  // The reply of an invocation once it is over.
  using Reply = std::shared_ptr<std::optional<Result<Outcome>>>;
  Reply invoke(const std::string& function, InvokeRequest request = {}) {
    auto reply = std::make_shared<std::optional<Result<Outcome>>>();
    request.invocation.function = function;
    cancel = invocations.invoke(*functions.find(function), std::move(request),
                                [reply](Result<Outcome> made) { *reply = std::move(made); });
    return reply;
  }
  void ready(InstanceId instance) {
    charges.ready(instance);
    driver.tell([&](Core& core, Instant now, Actions& out) { core.instance_ready(now, instance, out); });
  }
  void idle(InstanceId instance) {
    driver.tell([&](Core& core, Instant now, Actions& out) { core.instance_idle(now, instance, out); });
  }
  // The newest invocation that was delivered.
  void answer(const std::string& payload, bool is_error = false) {
    const auto& [instance, request] = runner.delivered.back();
    const InvocationId invocation = request.id;
    if (!invocations.answered({.invocation = invocation, .is_error = is_error, .payload = payload})) return;
    driver.tell([&, on = instance](Core& core, Instant now, Actions& out) {
      const std::optional<DeviceUse> use = memory.report(on, out);
      core.answered(now, invocation, is_error, charges.used(on, use), out);
    });
  }
  void gone(InstanceId instance, const std::string& reason, bool is_nodes_fault = false) {
    charges.gone(instance);
    instances.remove(instance);
    driver.tell([&](Core& core, Instant now, Actions& out) {
      core.instance_gone(now, instance, out);
      for (const Action& action : out) {
        const auto* const complete = std::get_if<Complete>(&action);
        if (complete != nullptr) {
          invocations.instance_gone(complete->invocation, {.reason = reason, .is_nodes_fault = is_nodes_fault});
        }
      }
    });
  }

  boost::asio::io_context io;
  Tenants tenants{{}};
  Functions functions;
  RequestIds request_ids;
  CoreDriver driver;
  Instances instances;
  FakeRunner runner;
  MemoryDesk memory{io,
                    {.move_deadline = std::chrono::seconds(8),
                     .period = std::chrono::hours(1),
                     .runs_anything = [] { return false; }},
                    driver,
                    instances,
                    functions};
  InvocationNotes notes{functions, Duration(0)};
  bool names_processes = true;
  std::vector<InvocationRecord> records;
  Charges charges{io,
                  driver,
                  instances,
                  functions,
                  memory,
                  [this](GpuId) { return names_processes; },
                  [this](const InvocationRecord& record) { records.push_back(record); }};
  Invocations invocations{driver, functions, request_ids, charges, notes};
  Invocations::CancelHandle cancel;  // of the newest invocation
  std::vector<std::string> actions;  // of the core, as to_string() has them
  std::vector<Charge> charged;
  int settled = 0;

 private:
  void act(const StartInstance& action) {
    instances.add(action.instance, {.flow = action.flow, .gpu = action.gpu, .runner = &runner});
    const RegisteredFunction& function = *functions.find(action.flow);
    runner.start({.instance = action.instance, .gpu = action.gpu, .device_memory = gib(16), .function = function});
  }
  void act(const StopInstance& action) {
    charges.stopped(action.instance);
    instances.remove(action.instance);
    runner.kill(action.instance);
  }
  void act(const Deliver& action) {
    DeliverRequest request = invocations.deliver(action);
    charges.begin(action.instance);
    runner.deliver(action.instance, std::move(request));
  }
  void act(const Complete& action) { invocations.act(action); }
  void act(const SwapOutMemory& action) { memory.act(action); }
  void act(const SwapInMemory& action) { memory.act(action); }
  void act(const GrantRoom& action) { memory.act(action); }
  void act(const DeviceChange&) {}
  void act(const SeatChange&) {}
  void act(const Charge& action) {
    charged.push_back(action);
    charges.act(action);
  }
};

}  // namespace fairlead
