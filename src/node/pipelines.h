// Functions that are pipelines: which slices each has, the servers that run it there, and its requests.
//
// For the core a pipeline's function has one device of its own, on which nothing runs but its instances in seats: as many as requests may be
// in it at a time. An instance of it is a place for a request and has no process. So its queue, deadlines, charges and fronts are those of
// every function, and what the pipeline has no room for waits in the function's own queue.
//
//   slice     the core's ──planned, drained──> awaited ──empty──> held by a pipeline ──the pipeline went──> the core's
//   pipeline  none ──slices are free──> starts ──all there──> current ──a better place is ready──> drains ──empty──> gone
//
// Moves. Where a slice is free that has room for the whole function, and is expected to answer no later, a second pipeline of one stage starts
// there. From when it is ready new requests go to it; the first runs what it has and goes. So nothing is dropped, and what came first
// began first.
//
// Threads: everything on the io_context's thread.
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

#include "edge/node_service.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/pipeline_slices.h"
#include "node/program_runner.h"
#include "node/runner.h"
#include "runtime/pipeline/pipeline_instance.h"

namespace fairlead {

struct PipelinesOptions {
  ServerProcess::Options servers;                  // but the environment
  std::map<std::string, std::string> environment;  // of the servers: where the GPU's libraries are
  unsigned retries = 2;                            // of a request, whose stage fails
  Duration patience = std::chrono::seconds(5);     // of a place, while no slices are free
};

class Pipelines final : public Runner {
 public:
  Pipelines(boost::asio::io_context& io, PipelinesOptions options, CoreDriver& driver, Functions& functions,
            InstanceEvents events);

  void connect(PipelineSlices::Devices devices, GiveShare give_share);
  // Once each period of the monitor: functions that came and went, devices likewise, what is better now.
  void tick();
  std::string holder(GpuId gpu) const;         // the function that has it; "": none
  std::vector<PipelineStatus> status() const;  // by function

  void start(const StartOrder& order) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
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
    PipelinePlacement placement;
    std::unique_ptr<PipelineInstance> instance;  // null: its slices are not empty yet
  };
  struct Asked {  // a request
    InvocationId invocation;
    InstanceId place;
    FlowId flow;
    bool binary = false;
    std::shared_ptr<const PipelineProgram> program;  // as it was when the request came
    std::shared_ptr<const std::vector<std::string>> inputs;
    Instant deadline;
    unsigned returns = 0;
    std::optional<std::pair<Number, PipelineRequestId>> at;  // none: it waits for a pipeline
  };
  struct Group {  // a function
    FlowId flow;
    std::string name, tenant;
    GpuId device;
    std::shared_ptr<const PipelineProgram> program;
    std::optional<Running> current, next;
    std::vector<Running> draining;
    std::deque<InvocationId> waiting;  // in the order of their arrival
    std::string lacking;               // why there is no pipeline; "": there is one
    Duration wait{0};                  // after a pipeline that did not start
    Instant not_before;
    std::uint64_t moves = 0, rebuilt = 0;
  };
  struct Place {  // an instance, for the core
    FlowId flow;
    bool is_ready = false;
    Instant since;
    Duration gpu_time{0};
    std::optional<InvocationId> request;
  };

  void meet_functions();
  void forget(Group& group, const std::string& why);
  void lose_slices(Group& group);
  void place(Group& group);
  void improve(Group& group);
  void retire(Group& group);
  Running reserve(PipelinePlacement placement);
  bool begin(Group& group, Running& running);
  Status begin_now(Group& group, Running& running);
  void on_ready(FlowId flow, Number number);
  void on_broken(FlowId flow, Number number, const std::string& why);
  void on_reply(FlowId flow, Number number, PipelineInstance::Reply reply);
  void drain(Group& group, Running running);

  void offer_waiting(Group& group);
  void ready_places(Group& group);
  void answer(Asked& asked, Answer reply);
  void fail_request(InvocationId invocation, const std::string& type, const std::string& message);
  void end_place(InstanceId place, const std::string& why);
  Result<std::vector<std::string>> read_call(const Group& group, const std::string& payload) const;
  Group* find(FlowId flow);
  void post(std::function<void()> job);

  boost::asio::io_context& io_;
  const PipelinesOptions options_;
  CoreDriver& driver_;
  Functions& functions_;
  const InstanceEvents events_;
  PipelineSlices slices_;
  GiveShare give_share_;
  std::map<FlowId, Group> groups_;
  std::map<InstanceId, Place> places_;
  std::map<InvocationId, Asked> asked_;
  std::map<std::pair<Number, PipelineRequestId>, InvocationId> by_request_;
  std::uint64_t last_number_ = 0, last_request_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fairlead
