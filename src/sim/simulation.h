// The production core in virtual time, over modelled devices, functions and arrivals. What a node does with processes and
// a driver is done here with events: an instance is ready after its cold start, an invocation runs on a modelled GPU, and
// what that takes comes back to the core as it would from a real one.
//
//   arrivals ──> Core ──StartInstance──> ready after the cold start ──> Core ──Deliver──> GpuModel ──> answered, idle
//                 └──SwapOut, SwapIn──> the device's link, one after the other each way ──> moved
//
// Memory: an instance allocates its function's memory when it is ready and keeps it; where the device is full it asks for
// room. An invocation whose memory is away begins to run when it is back.
//
// Noise: run and start times vary by the scenario's noise. The n-th invocation of a function varies alike under every
// policy, so that policies are compared on the same work.
//
// Faults (Scenario::faults): what a real node meets, at random; after every event what must always hold is checked, and a
// violation aborts with the seed. At the end every accepted invocation was completed exactly once.
//
// Time: its own, from 0. Threads: not thread-safe; runs of different seeds are independent.
// Determinism: the same scenario and seed give the same actions, on every machine; RunResult::state_hash shows it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/id_map.h"
#include "core/core.h"
#include "queueing/indexed_heap.h"
#include "sim/arrivals.h"
#include "sim/event_heap.h"
#include "sim/faults.h"
#include "sim/gpu_model.h"
#include "sim/result.h"
#include "sim/scenario.h"
#include "sim/service_gaps.h"

namespace fairlead::sim {

class Simulation {
 public:
  // REQUIRES: the scenario is valid. It must outlive the simulation.
  Simulation(const Scenario& scenario, std::uint64_t seed, std::unique_ptr<ArrivalSource> arrivals);

  // To the last answer.
  RunResult run();

 private:
  struct Invocation {
    std::size_t function = 0;
    Instant arrived;
    Duration work{0};
    Instant delivered = {};
    GpuId gpu = {};
    bool asynchronous = false;  // survives a restart of the node
  };
  struct LiveInstance {
    std::size_t function = 0;
    GpuId gpu;
    Bytes resident{0}, away{0}, incoming{0};
    InvocationId waiting;  // delivered, and its memory is away
    int room_requests = 0;
    bool waits_for_room = false;
  };
  struct Link {
    Instant in_free{}, out_free{};  // when the last move each way is over
  };

  std::unique_ptr<Core> make_core() const;
  void advance_to(Instant next);
  void arrive(const Arrival& arrival);
  void expect_after_answer(std::size_t function);
  void handle(const Event& event);
  void end_on_gpu(GpuId id);
  bool has_work() const;  // something arrives or is to be answered
  bool is_quiet() const;
  std::optional<Duration> gpu_time(InvocationId id) const;
  // Calls the core and carries out what follows. Carrying out may call it again, so each level has a list of its own.
  template <typename Call>
  void tell(Call call) {
    Actions actions = take_list();
    call(actions);
    carry_out(std::move(actions));
  }
  Actions take_list();
  void carry_out(Actions actions);
  void perform(const StartInstance& action);
  void perform(const StopInstance& action);
  void perform(const Deliver& action);
  void perform(const Complete& action);
  void perform(const SwapOutMemory& action);
  void perform(const SwapInMemory& action);
  void perform(const GrantRoom& action);
  void perform(const DeviceChange&) {}
  void perform(const Charge&) {}  // the work of its functions ends with their answers
  void allocate(InstanceId id);
  void end_swap_out(const Event& event);
  void end_swap_in(const Event& event);
  void report_memory(InstanceId id);
  void begin_run(InstanceId instance, InvocationId invocation);
  Duration move_time(Bytes bytes) const;
  void schedule_end(GpuId gpu);
  GpuModel& gpu(GpuId id) { return gpus_[id.value() - 1]; }
  FunctionResult& result_of(std::size_t function) { return result_.functions[function]; }

  // ---- simulation_faults.cc; all without effect where the scenario has no faults
  bool strikes(Fault fault) { return faults_ && faults_->strikes(fault); }
  bool start_goes_wrong(InstanceId instance, Duration& start);
  bool run_goes_wrong(InstanceId instance, InvocationId invocation);
  void strike_at_any_time();
  void lose_device();
  void cancel_one();
  void update_one();
  void restart_node();
  void check_invariants();
  // Tells the core, and once in a while tells it again.
  template <typename Call>
  void report(Call call) {
    tell(call);
    if (strikes(Fault::kToldTwice)) tell(call);
  }

  // What one run or start of a function takes: `typical`, varied.
  Duration varied(Duration typical, std::size_t function, std::uint64_t number) const;
  void hash(std::uint64_t value);
  void sample();
  void release(InstanceId id);
  static void count_start(FunctionResult& result, StartKind start);

  const Scenario& scenario_;
  const std::uint64_t seed_;
  const std::unique_ptr<ArrivalSource> arrivals_;
  std::optional<Arrival> next_arrival_;
  std::unique_ptr<Core> core_;  // never null; a restart of the node makes another
  std::vector<GpuModel> gpus_;
  std::vector<Link> links_;
  std::vector<Bytes> memory_used_;
  EventHeap events_;
  // When the next run or start on each GPU ends: it changes with all that begins or stops there, so it is no event.
  struct GpuEnd {
    Instant at;
    std::uint64_t order;  // among the events of the same instant
    bool operator<(const GpuEnd& other) const { return at != other.at ? at < other.at : order < other.order; }
  };
  IndexedHeap<GpuEnd> gpu_ends_;  // by index into gpus_; of those where something runs or starts
  Instant now_{};
  IdMap<InvocationId, Invocation> invocations_;
  IdMap<InstanceId, LiveInstance> instances_;
  std::vector<std::uint64_t> runs_, starts_;  // by function, so far
  std::vector<Instant> last_delivered_;       // by function
  std::size_t queued_ = 0;
  Instant next_sample_{};
  std::uint64_t next_invocation_ = 1;
  std::size_t thinking_ = 0;  // clients of a closed loop between an answer and their next
  ServiceGaps gaps_;
  RunResult result_;
  std::vector<Actions> scratch_;
  std::vector<FlowSpec> flows_;
  std::map<std::string, TenantId> tenants_{{"default", TenantId()}};  // also of functions that name none
  std::optional<Faults> faults_;
  Duration global_virtual_time_{0};  // as seen last
};

}  // namespace fairlead::sim
