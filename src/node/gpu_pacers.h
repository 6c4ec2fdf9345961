// Who puts kernels on each device when: a pacer for each device on which somebody has a quota (node/pacing/pace_driver.h).
//
//   gpu:quota-request 40 on a device  ──>  that device has a pacer; all instances on it need places, those without a quota too
//   the last instance with a quota goes  ──>  the pacer goes, and all gates are open
//
// Where nobody has a quota there is no pacer, no thread, and nothing in a process's page. A session of a kernel task has a page as a
// process has (runtime/device_server/call_gates.h).
//
// Threads: everything on the io_context's thread. What is told to the log is told by the pacers' threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decide/pacing/paced_share.h"
#include "edge/node_service.h"
#include "node/pacing/pace_driver.h"

namespace fairlead {

// What cannot be paced runs without places, and is named in the log once: an instance once in its life, a device that has no thread once
// until it has one.
class GpuPacers {
 public:
  // Throws std::system_error where there is no thread.
  using MakeDriver = std::function<std::unique_ptr<PaceDriver>(PaceDriverOptions)>;

  // Kernels of processes run side by side, as under MPS, and not in turns. Before the first instance.
  void set_side_by_side(bool are) { are_side_by_side_ = are; }

  GpuPacers();
  explicit GpuPacers(MakeDriver make) : make_(std::move(make)) {}

  // An instance that has a shim is about to start on the device.
  void started(InstanceId instance, GpuId gpu, const PacedShare& share);
  // Other terms, while it runs. Unknown: nothing happens.
  void set_share(InstanceId instance, const PacedShare& share);
  // A session, whose kernels are on a part of the device's SMs at most, whatever its share: it is no wider than that from now on, where
  // kernels run side by side. Those of one server do; those of several do where processes do, and else each is as wide as the device.
  // Unknown: nothing happens.
  struct KernelSize {
    std::uint64_t server = 0;
    int width_percent = kWholeDevice;
  };
  void size(InstanceId instance, const KernelSize& kernels);
  void gone(InstanceId instance);

  // Processes of instances, by the node's numbers. Of unknown instances: nothing happens.
  // let_in: as in PaceDriver::add_page.
  void process_came(InstanceId instance, std::uint64_t process, PaceDriver::Page page, PaceDriver::LetIn let_in = {});
  void process_left(std::uint64_t process);

  // What the device did for an instance since the last call; of one whose processes are not all paced nothing can be said. Why it is to be
  // stopped, which is said once: it goes on computing outside of its turns.
  std::optional<std::string> device_worked(InstanceId instance, Duration busy);
  void forget(FlowId flow) { ledgers_.erase(flow); }

  // Of devices that have a pacer, by id.
  std::vector<std::pair<GpuId, PaceSnapshot>> snapshot() const;
  // Fills in what the function's instances had and waited for. Delivered: of the instance that had least in the last second, of those that
  // had work; of those that are promised something, if any is. Empty: none had work, or no device of theirs has a pacer.
  void measure(FlowId flow, ShareStatus& status) const;

 private:
  struct Process {
    InstanceId instance;
    PaceDriver::Page page;
    PaceDriver::LetIn let_in;
  };
  struct Instance {
    GpuId gpu;
    PacedShare share;
    std::optional<KernelSize> kernels = {};
    Duration device{0};  // worked for it, as the device says
  };
  // Of a function: what does not go with its instances.
  struct Ledger {
    WaitHistogram waits;
    TurnsEvaded evaded;
  };

  static bool has_quota(const PacedShare& share) { return share.request_percent > 0 || share.limit_percent < 100; }
  // A pacer where one is wanted, none where none is.
  void suit(GpuId gpu);
  PacedShare share_of(const Instance& instance) const;
  bool may_be_narrow(GpuId gpu) const;
  void resize(GpuId gpu);
  void pace(PaceDriver& pacer, InstanceId instance, const PacedShare& share);
  void pace(PaceDriver& pacer, std::uint64_t number, const Process& process);
  // Null: there is no thread.
  PaceDriver* pacer_of(GpuId gpu);
  void keep_waits(const PaceDriver& pacer, std::optional<InstanceId> instance);
  void warn_once(InstanceId instance, const std::string& why);

  MakeDriver make_;
  bool are_side_by_side_ = false;
  std::map<InstanceId, Instance> instances_;
  std::map<std::uint64_t, Process> processes_;
  std::map<GpuId, std::unique_ptr<PaceDriver>> pacers_;
  std::map<FlowId, Ledger> ledgers_;
  std::map<InstanceId, PacedShare> told_;  // to the pacer of its device, last
  std::set<InstanceId> named_;             // as not paced
  std::set<GpuId> without_thread_;         // named, too
};

}  // namespace fairlead
