// Functions that are pipelines: which slices each has, the servers that run it there, and its requests.
//
// For the core a pipeline's function has one device of its own, on which nothing runs but its instances in seats: as many as requests may be
// in it at a time. An instance of it is a place for a request and has no process. So its queue, deadlines, charges and fronts are those of
// every function, and what the pipeline has no room for waits in the function's own queue.
//
//   slice     the core's ──planned, drained──> awaited ──empty──> held by a pipeline ──its processes are reaped──> the core's, or the next one's
//   pipeline  none ──slices are free──> starts ──all there──> current ──a better place is ready──> drains ──empty──> leaves ──reaped──> gone
//             starts ──fails, or takes too long──> backs off (start_attempts.h) ──> none ... ──too often──> broken
//             current ──nobody calls, others wait──> warm ──long idle──> cold ──a request──> none, and so on
//
// Moves. Where a slice is free that has room for the whole function, and is expected to answer no later, a second pipeline of one stage starts
// there. From when it is ready new requests go to it; the first runs what it has and goes. So nothing is dropped, and what came first
// began first.
//
// Who waits for slices gets them from who is idle, shares, has more than its tenant's share, or has had them for its turn (slice_claims.h). A
// pipeline whose function uses it is hot (keep_alive.h), and does not share. While slices change hands, what is to be done next is looked for
// every few milliseconds.
//
// Threads: everything on the io_context's thread; large answers are made on a thread of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decide/pipeline/keep_alive.h"
#include "decide/pipeline/slice_claims.h"
#include "decide/pipeline/start_attempts.h"
#include "edge/node_service.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/loop_jobs.h"
#include "node/pipeline_slices.h"
#include "node/program_jail.h"
#include "node/program_runner.h"
#include "node/runner.h"
#include "node/slice_cutter.h"
#include "node/worker.h"
#include "runtime/pipeline/pipeline_instance.h"

namespace fairlead {

struct PipelinesOptions {
  ServerProcess::Options servers;                  // but the environment
  std::map<std::string, std::string> environment;  // of the servers: where the GPU's libraries are
  ProgramLauncher launch_program = {};             // of components that need no GPU
  // Host memory between stages; shared with the pipelines.
  std::shared_ptr<RingBudget> rings = std::make_shared<RingBudget>(RingBudget::Bounds());
  // What components took; shared with who keeps profiles.
  std::shared_ptr<ComponentTimes> times = std::make_shared<ComponentTimes>();
  unsigned retries = 2;                         // of a request, whose stage fails
  Duration patience = std::chrono::seconds(5);  // of a request, while it fits on nothing that is free or others give up
  Duration start_limit = std::chrono::seconds(60);  // of a stage's server, until it is ready
  Duration empty_limit = std::chrono::seconds(60);  // of slices, until what ran there is gone
  StartTerms starts = {};
  Duration turn_patience = std::chrono::seconds(60);  // of one whose function waits for its turn
  ClaimTerms claims = {};                             // `idle`: without a call, before others may have its slices
  KeepAliveTerms keep = {};
  SliceCutterOptions cutter = {};
  std::function<std::map<std::string, double>()> weights = {};  // of tenants, by name; empty: all have 1
};

class Pipelines final : public Runner {
 public:
  Pipelines(boost::asio::io_context& io, PipelinesOptions options, CoreDriver& driver, Functions& functions,
            InstanceEvents events);

  void connect(PipelineSlices::Devices devices);
  // Once each period of the monitor: functions that came and went, devices likewise, what is better now.
  void tick();
  std::string holder(GpuId gpu) const;         // the function that has it; "": none
  std::vector<PipelineStatus> status() const;  // by function
  SliceCutStatus cuts() const { return cutter_.status(); }

  void start(const StartOrder& order) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
  void abandoned(InvocationId invocation) override;
  void kill(InstanceId instance) override;
  std::optional<DeviceUse> use(InstanceId instance) override;
  UseSource use_source() const override { return UseSource::kMeasured; }
  // Its memory is its slices'.
  void swap_out(InstanceId, Bytes, Duration) override {}
  void swap_in(InstanceId) override {}
  void grant_room(InstanceId, std::uint64_t, bool) override {}
  std::string log_tail(InstanceId) const override { return {}; }
  int init_pid(InstanceId) const override { return 0; }

 private:
  using Number = PipelineSlices::Holder;  // of a running pipeline; never used again
  struct Running {
    Number number = 0;
    std::string function;
    PipelinePlacement placement;
    Instant reserved;                            // it was given its slices
    Instant since;                               // they were its own; its processes started; it was ready
    std::unique_ptr<PipelineInstance> instance;  // null: its slices are not empty yet
  };
  struct Asked {  // a request
    InvocationId invocation;
    InstanceId place;
    FlowId flow;
    bool binary = false, has_begun = false;          // it was in a pipeline
    std::shared_ptr<const PipelineProgram> program;  // as it was when the request came
    std::shared_ptr<const std::vector<std::string>> inputs;
    Instant deadline;
    Instant since;                                     // it waits for a pipeline
    std::shared_ptr<const PipelineProgress> progress;  // in one that went; shared with the replies and requests of it
    std::optional<std::pair<Number, PipelineRequestId>> at;  // none: it waits for a pipeline
  };
  struct Group {  // a function
    FlowId flow;
    std::string name, tenant;
    GpuId device;
    std::shared_ptr<const PipelineProgram> program;
    std::optional<Running> current, next;
    std::vector<Running> draining;
    std::deque<InvocationId> waiting;       // in the order of their arrival
    std::string lacking;                    // why there is no pipeline; "": there is one, or none is wanted
    std::optional<PipelinePlacement> turn;  // what it gets of others if its requests only wait
    Instant had_turn;                       // there was one, or it got slices, the last time
    std::optional<Instant> lacks_since;     // none: it does not wait for slices
    StartAttempts starts, moving;           // of its pipeline; of one on a better place
    KeepAlive keep;
    std::optional<Instant> wanted_since;  // by a request, without slices
    Instant used;                         // by a request, the last time
    std::optional<Instant> asked;         // by a request, the last time that one came
    Duration gap = Duration::max();       // SliceHolder
    Duration comes_back{0};               // likewise
    Duration gpu_time{0};                 // of its requests, since `measured`
    Instant measured;
    std::uint64_t moves = 0, rebuilt = 0;
  };
  struct Place {  // an instance, for the core
    FlowId flow;
    Duration gpu_time{0};
    std::optional<InvocationId> request;
  };

  void meet_functions();
  void meet(Group& group, const RegisteredFunction& function);
  void retire(Group& group);
  void drain(Group& group, std::optional<Running>& running);
  void end(std::optional<Running>& running, const std::string& why);
  void settle(Group& group);
  void note_use(Group& group);
  void evict(Group& group);
  void arrange();
  bool place(Group& group, Duration waited, const SliceClaims& claims, const std::vector<Group*>& holders);
  void improve(Group& group);
  Running reserve(const Group& group, PipelinePlacement placement);
  void begin(Group& group, std::optional<Running>& running);
  Status begin_now(Group& group, Running& running);
  void on_ready(FlowId flow, Number number);
  void start_failed(Group& group, std::optional<Running>& running, const std::string& why);
  void on_reply(FlowId flow, Number number, PipelineInstance::Reply reply);

  void offer_waiting(Group& group);
  void ready_places(Group& group);
  void answer(Asked& asked, Answer reply);
  void fail_request(InvocationId invocation, const std::string& type, const std::string& message);
  void end_place(InstanceId place, const std::string& why);
  PipelineInstance* instance(Number number);
  Group* find(FlowId flow);

  LoopJobs jobs_;
  const PipelinesOptions options_;
  CoreDriver& driver_;
  Functions& functions_;
  const InstanceEvents events_;
  PipelineSlices slices_;
  SliceCutter cutter_;
  std::map<FlowId, Group> groups_;
  std::map<InstanceId, Place> places_;
  std::map<FlowId, std::set<InstanceId>> unready_;  // places of pipelines that start
  std::map<InvocationId, Asked> asked_;
  std::map<std::pair<Number, PipelineRequestId>, InvocationId> by_request_;
  std::vector<Running> leaving_;  // have no requests any more, and processes still
  std::uint64_t last_number_ = 0;
  Worker worker_;  // last: its jobs are done first
};

}  // namespace fairlead
