// One life of a node, from its start to its end or a power cut: the node's own classes from the HTTP server to the database, wired
// as src/node/node.cc does, with a recorder in place of what would start processes (node/testing/fake_runner.h).
//
//   client ──HTTP──> HttpServer ──> Router ──> Lambda's edge ──> Events, Invocations ──> core ──> runner.started, runner.delivered
//                                                  │
//                                                Store (SQLite on a disk that fails and loses what was not synced)
//
// Threads: the test's, beside the store's and the worker's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "edge/error_document.h"
#include "edge/router.h"
#include "edge/testing/fake_node.h"
#include "net/http_server.h"
#include "node/async_invocations.h"
#include "node/function_control.h"
#include "node/testing/node_without_processes.h"
#include "store/testing/power_cut_disk.h"

namespace fairlead::chaos {

inline constexpr std::size_t kBudgetBytes = 1 << 20;  // of bodies and answers

class Life final : public NodeWithoutProcesses {
 public:
  // What the folder has is found again. `edge` sees the invocations before the node does.
  Life(const std::string& folder, store::PowerCutDisk& disk, std::uint64_t seed);
  // Why it cannot begin; then it is good for nothing.
  Status begin(const std::string& socket, Router& router);

  using NodeWithoutProcesses::functions;
  using NodeWithoutProcesses::gone;
  using NodeWithoutProcesses::idle;
  using NodeWithoutProcesses::instances;
  using NodeWithoutProcesses::invocations;
  using NodeWithoutProcesses::ready;
  using NodeWithoutProcesses::runner;

  // Everything that is to be done at this moment is done and on disk, in an order that depends on nothing but the seed.
  // False: the power was cut meanwhile, and nothing of what is told afterwards is to be believed.
  bool settle();

  void answered(InstanceId instance, InvocationId invocation, bool is_error, std::string payload);
  // Waits for code to be unpacked; false: the power was cut.
  bool create(const std::string& name, FunctionConfig config, const std::string& code,
              FunctionControl::Callback<FunctionRecord> done);

  Store& disk_store() { return *store_; }
  AsyncInvocations& asynchronous() { return *events_; }
  FunctionControl& control() { return *control_; }
  std::size_t held_bytes() const { return http_->held_bytes(); }
  std::vector<QueuedEvent> found;  // of those that waited on disk

 private:
  void TestBody() override {}  // it is no test by itself
  void plug();

  const std::string folder_;
  store::PowerCutDisk& disk_;
  std::size_t plugs_ = 0;  // whose callbacks have yet to run
  std::unique_ptr<Store> store_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<AsyncInvocations> events_;
  std::unique_ptr<FunctionControl> control_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace fairlead::chaos
