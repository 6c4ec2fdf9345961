// What invocations are charged: what the runners say that instances used, the work that goes on after an answer, and what the
// devices say against a report that is too small (sharing/gpu_books.h decides).
//
//   deliver ──> begin ... answer ──> used() ──> the core, with Complete
//                                    goes_on()? the charge stays open until the work has ended: Charge
//   sample of a device ──> compare ──> what is missing is owed by the function, which is named
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "decide/core/invocation_record.h"
#include "decide/sharing/gpu_books.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/instance_processes.h"
#include "node/instances.h"
#include "node/memory_desk.h"
#include "node/process_meter.h"
#include "node/work_after_answers.h"

namespace fairlead {

class Charges {
 public:
  // Whether the device says which process computes. On a slice nobody does, so that no report can be held against anything:
  // the time held counts.
  using NamesProcesses = std::function<bool(GpuId)>;
  // A record that waited for its charge.
  using AddRecord = std::function<void(const InvocationRecord&)>;

  Charges(boost::asio::io_context& io, CoreDriver& driver, Instances& instances, Functions& functions,
          MemoryDesk& memory, NamesProcesses names_processes, AddRecord add_record);

  // It may have its first invocation: what it did until here is nobody's.
  void ready(InstanceId instance);
  // An invocation is delivered. What the instance's processes did on the device since its last one is owed.
  void begin(InstanceId instance);
  // It is answered: of `use`, what is its own. Empty: the time held counts.
  std::optional<Duration> used(InstanceId instance, const std::optional<DeviceUse>& use);
  // Work of it is on the device still, as the instance says, or as the device does where the instance lied before.
  bool goes_on(InstanceId instance, const std::optional<DeviceUse>& use) const;
  // From the answer on: looks until the work has ended, and tells the core.
  void watch(InstanceId instance, InvocationId invocation) { after_answers_.add(instance, invocation); }

  // An invocation is over that was delivered.
  void completed(InstanceId instance, const Complete& complete);
  // Its charge is open: its record waits for that, and is added then.
  bool is_open(InvocationId invocation) const { return after_answers_.has(invocation); }
  void keep(InvocationId invocation, const InvocationRecord& record) { after_answers_.keep(invocation, record); }
  void act(const Charge& charge);

  void stopped(InstanceId instance) { after_answers_.forget(instance); }
  // REQUIRES: it is among the instances still. What it did and was not charged, its function owes.
  void gone(InstanceId instance);
  void forget(FlowId flow) { books_.forget(flow); }

  // Gives what the devices did for each instance that is in the samples.
  std::map<InstanceId, Duration> compare_with_devices(const std::vector<ProcessSample>& samples);

 private:
  void on_work_ended(InstanceId instance);
  void correct(InstanceId instance, const GpuBooks::Finding& finding);
  void owe(InstanceId instance, const GpuBooks::Debt& debt);
  FlowId function_of(FlowId flow);

  CoreDriver& driver_;
  Instances& instances_;
  Functions& functions_;
  MemoryDesk& memory_;
  const NamesProcesses names_processes_;
  const AddRecord add_record_;
  GpuBooks books_;
  InstanceProcesses processes_;
  WorkAfterAnswers after_answers_;
};

}  // namespace fairlead
