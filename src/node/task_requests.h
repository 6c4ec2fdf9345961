// One-off requests of kernel tasks. A request's task becomes a function that nobody can name, so that it queues, is charged
// and stays warm like any other; the same request again finds it by its content.
//
//   run ──kept? yes──> invoke ──> queues
//          └─no─> worker: read, check ──> room made, function added ──> invoke of all who waited for it
//
// What is large is read, hashed and checked on a worker, tenants in turns, so that a flood of it holds up its tenant alone.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "edge/node_service.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/invocations.h"
#include "node/kept_tasks.h"
#include "node/kernel_tasks.h"
#include "node/tenant_worker.h"
#include "node/tenants.h"

namespace fairlead {

class TaskRequests {
 public:
  using CancelHandle = NodeService::CancelHandle;
  // `objects` lends device servers the constants that came with a request.
  TaskRequests(boost::asio::io_context& io, StoredObjects& objects, Functions& functions, Tenants& tenants,
               CoreDriver& driver, Invocations& invocations)
      : objects_(objects),
        functions_(functions),
        tenants_(tenants),
        driver_(driver),
        invocations_(invocations),
        worker_(io) {}

  CancelHandle run(TaskRun run, NodeService::Callback<Outcome> done);
  TaskRequestsStatus status() const;

  // NodeService::run_elsewhere.
  Status run_elsewhere(const std::string& tenant, Bytes bytes, NodeService::Job job) {
    return worker_.run(tenant, bytes, std::move(job));
  }

 private:
  // A task that is being read has those who wait for it.
  struct Waiter {
    InvokeRequest request;
    NodeService::Callback<Outcome> done;
    bool gone = false;
    CancelHandle cancel;  // of its invocation, once there is one
  };
  using WaiterPtr = std::shared_ptr<Waiter>;  // shared with the handles that cancel them
  using Waiters = std::vector<WaiterPtr>;

  void run_named(const std::string& name, TaskRun run, WaiterPtr waiter);
  void add(const std::string& name, TaskRun run, Result<BundledTask> task);
  Status make_room_for(const TaskRun& run);
  void queue(const std::string& name, WaiterPtr waiter);

  StoredObjects& objects_;
  Functions& functions_;
  Tenants& tenants_;
  CoreDriver& driver_;
  Invocations& invocations_;
  KeptTasks kept_;
  std::map<std::string, Waiters> being_read_;
  TenantWorker worker_;  // last: its jobs use the others
};

}  // namespace fairlead
