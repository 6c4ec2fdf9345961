// Kernel tasks: each instance a session in the device server of its GPU and tenant (runtime/device_servers). A task's
// constants are in the data layer before its session starts.
//
//   start ──> constants that the data layer does not have are put there ──> session
//
// Threads: everything on the io_context's thread. Files are read on the worker.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/kernel_tasks.h"
#include "node/program_runner.h"
#include "node/runner.h"
#include "node/worker.h"
#include "runtime/device_servers/device_servers.h"
#include "store/object_store.h"

namespace fairlead {

struct KernelTaskRunnerOptions {
  DeviceServersOptions servers;
  std::map<std::string, std::string> environment;  // of the servers: where the GPU's libraries are
};

class KernelTaskRunner final : public Runner {
 public:
  // `objects`, `worker` and `pacers` must outlive it.
  KernelTaskRunner(boost::asio::io_context& io, KernelTaskRunnerOptions options, ObjectStore& objects, Worker& worker,
                   GpuPacers& pacers, InstanceEvents events);

  void set_share(GiveShare give_share) { give_share_ = std::move(give_share); }  // before the first start

  void start(const StartOrder& order) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
  void kill(InstanceId instance) override;
  std::optional<DeviceUse> use(InstanceId instance) override;
  UseSource use_source() const override { return UseSource::kMeasured; }
  // Its memory is moved by its server, and reported as fixed: there are no orders.
  void swap_out(InstanceId, Bytes, Duration) override {}
  void swap_in(InstanceId) override {}
  void pace(InstanceId instance, const PacedShare& share) override { pacers_.set_share(instance, share); }
  void grant_room(InstanceId, std::uint64_t, bool) override {}
  std::string log_tail(InstanceId) const override { return {}; }
  int init_pid(InstanceId) const override { return 0; }

  StoredObjects& objects() { return stored_objects_; }
  std::vector<DeviceServers::View> servers() const { return servers_.views(); }
  void end_idle_servers(GpuId gpu) { servers_.end_idle(gpu); }

 private:
  void put_constants(std::shared_ptr<const BundledTask> task, const std::string& tenant, std::size_t from,
                     std::function<void(Status)> done);
  InstanceEvents paced(InstanceEvents events);
  DeviceServersOptions servers_options();
  void end_start(InstanceId instance, const std::string& why);

  boost::asio::io_context& io_;
  const KernelTaskRunnerOptions options_;
  ObjectStore& objects_;
  Worker& worker_;
  GpuPacers& pacers_;
  const std::function<void(InstanceId, ExitInfo)> gone_;
  GiveShare give_share_;
  std::set<InstanceId> putting_constants_;  // and not killed meanwhile
  std::set<InstanceId> as_wide_as_said_;    // their author says how wide they are
  StoredObjects stored_objects_;
  DeviceServers servers_;
};

}  // namespace fairlead
