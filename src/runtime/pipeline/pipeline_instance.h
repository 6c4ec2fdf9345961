// A pipeline that runs: its stages on their slices, the memory between them, and the requests that pass through. RequestFlow
// (decide/pipeline/request_flow.h) decides which stage runs which request; here that is done.
//
//   start ──> every stage's server has its components ──> ready ──> offer ──> answered ...
//   a server ends ──> the stage's request waits, or runs again from the last whole tensor ──> its next server is there ──> goes on
//
// Where a tensor is. What another stage reads, the function answers or a condition looks at goes through a ring in host memory, and so does
// what a program reads or writes; what kernel tasks of the same stage read stays on the device as an object until the stage has ended its
// run; what came with the request is in the node's memory.
//
// A server that ends is started again on its slice: at once where it had ended a run well since it was ready, or was ready for a minute. Else
// after 0.1 s, doubled up to kMostWait. So who sends what ends a server makes the others wait for its start, and no longer.
// One that is not ready `start_limit` after its start is ended, and has ended as any other. A slice that is gone takes the whole instance
// with it: abandon() gives the requests back, each with the tensors that are whole, in the rings that have them. Another instance reads them
// there, so nothing is copied; such a ring stays until no request needs it.
//
// The slices are free when has_processes() says that no server is left, and not before.
//
// Threads: the loop's. Events never come from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "decide/pipeline/request_flow.h"
#include "runtime/pipeline/earliest_timer.h"
#include "runtime/pipeline/ring_budget.h"
#include "runtime/pipeline/stage_workers.h"
#include "runtime/pipeline/tensor_places.h"

namespace fairlead {

struct PlacedStage {
  GpuId gpu;                                       // none: the stage needs no slice
  std::string slice;                               // "2g.20gb" or "host", for people
  std::vector<std::size_t> components;             // in topological order
  std::map<std::string, std::string> environment;  // of its server
};

// What a request has behind it in an instance that went.
struct PipelineProgress {
  struct Tensor {
    std::shared_ptr<const HostRing> ring;  // shared by the requests that need it
    std::uint32_t slot = 0;
  };
  FlowProgress flow;
  std::map<std::pair<std::size_t, std::size_t>, Tensor> tensors;  // by component and port
};

class PipelineInstance {
 public:
  using LaunchProgram = std::function<Result<ProgramLaunch>(std::size_t component)>;
  static constexpr Duration kMostWait = std::chrono::seconds(10);

  struct Options {
    std::string name;  // of the function, for people
    std::shared_ptr<const PipelineProgram> program;
    std::string tenant = "default";
    ServerProcess::Options process;  // but the environment
    std::vector<PlacedStage> stages;
    FlowSettings flow;
    Duration start_limit = std::chrono::seconds(60);  // of a server, until all of its sessions are there
    LaunchProgram launch_program = {};                // of components that need no GPU
    // Of the node, shared by its pipelines: who asks for more host memory between stages does not start.
    std::shared_ptr<RingBudget> rings = std::make_shared<RingBudget>(RingBudget::Bounds());
  };
  struct Request {
    PipelineRequestId id;
    std::shared_ptr<const std::vector<std::string>> inputs;  // bytes of the function's inputs, in their order
    std::optional<Instant> deadline;
    std::shared_ptr<const PipelineProgress> progress = {};  // as a reply said, of this program; null: none
  };
  // A tensor of an answer, where it is: in a ring, or among the request's inputs.
  struct Output {
    std::shared_ptr<const HostRing> ring;  // shared, so that it is there until it was copied
    std::uint32_t slot = 0;
    std::shared_ptr<const std::vector<std::string>> inputs;  // of the request; null: the ring has it
    std::size_t port = 0;
    std::string_view bytes() const { return inputs ? std::string_view((*inputs)[port]) : ring->tensor(slot); }
  };
  struct Reply {
    PipelineRequestId id;
    FlowEnd end = FlowEnd::kAnswered;
    std::string why;
    std::vector<std::optional<Output>> outputs;  // of kAnswered, until taken(); empty: what makes it did not run
    // Of all stages, also of runs that failed. Of one whose server ended nobody knows it: the time it had its slice counts.
    Duration gpu_time{0};
    TaskPhases phases;                                 // sums
    std::shared_ptr<const PipelineProgress> progress;  // of kReturned; shared with whoever runs it next; null: none
  };
  struct Events {
    std::function<void()> ready;  // the first time that all stages are there
    std::function<void(Reply)> replied;
    // A component's kernels took so much of its stage's slice. Not the first time in a server, which loads modules; and without copies,
    // which depend on where its neighbours are.
    std::function<void(std::size_t stage, std::size_t component, Duration kernels)> ran = {};
    std::function<void(std::string why)> broken;  // once, before it was ever ready: it cannot start. abandon() it
    std::function<void(Duration gpu_time)>
        used;  // by a run whose request had ended before; at most what came after that
  };
  struct StageView {
    GpuId gpu;
    std::string slice;
    std::vector<std::string> components;
    std::int64_t pid = 0;
    bool is_ready = false;
    std::size_t ring_used = 0, ring_depth = 0;
    Bytes ring_bytes{0};
    std::uint64_t requests = 0, restarts = 0;  // runs that ended well; servers that ended
    Duration gpu_time{0};
  };

  // kResourceExhausted, kTooLarge: memory between the stages. Else what RequestFlow::make() refuses.
  static Result<std::unique_ptr<PipelineInstance>> start(boost::asio::io_context& io, Options options, Events events);
  ~PipelineInstance();  // ends the servers; nothing is told, and nobody waits for their end

  bool is_ready() const { return was_ready_; }
  bool has_room() const { return flow_.has_room(); }
  // REQUIRES: has_room(); ids ascend.
  void offer(Request request);
  // The outputs of its reply have been copied; their slots are used again. For each reply; any thread may copy before.
  void taken(PipelineRequestId request);
  void cancel(PipelineRequestId request);
  // Every request is answered kReturned or kFailed, and the servers end: it can only be destroyed then, once it is_empty() and has no
  // processes any more.
  void abandon(const std::string& why);
  bool has_processes() const;
  bool is_empty() const { return flow_.is_empty(); }
  std::size_t unanswered() const { return flow_.unanswered(); }
  std::vector<StageView> stages() const;

 private:
  struct Run {  // that a stage does
    RequestFlow::Run order;
    std::size_t next = 0;         // of order.components
    std::uint64_t call = 0;       // of the one that runs; 0: none does
    Instant sent;                 // that call
    std::optional<Instant> over;  // its request ended before it
    std::vector<std::size_t> ran;
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> objects;  // on the device: by component and port
  };
  struct Stage {
    std::unique_ptr<StageWorkers> process;
    std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<HostRing>>
        rings;  // of its outputs: by component and port; shared with the stage's processes
    std::optional<Run> run;
    std::unique_ptr<boost::asio::steady_timer>
        timer;         // the next process, or the latest that the present one may be ready
    Duration wait{0};  // before the next restart
    Instant ready_since;
    std::uint64_t requests_before = 0;  // view.requests, when it was ready
    std::set<std::size_t> warm;         // components that ran in this server
    StageView view;
  };
  struct Live {
    Request request;
    Duration gpu_time{0};
    TaskPhases phases;
    std::vector<std::optional<bool>> ran;              // by component
    std::shared_ptr<const PipelineProgress> progress;  // when it is given back
  };

  PipelineInstance(boost::asio::io_context& io, Options options, RequestFlow flow, Events events);
  Status make_rings();
  void start_process(std::size_t stage);
  void on_ready(std::size_t stage);
  void on_lost(std::size_t stage, const std::string& why);
  void on_done(std::size_t stage, wire::CallDone done);

  void carry_out(RequestFlow::Actions actions);
  void act(const RequestFlow::Run& run);
  void act(const RequestFlow::Kill& kill);
  void act(const RequestFlow::Answer& answer);
  void step(std::size_t stage);
  bool runs(const Run& run, const Live& live, std::size_t component) const;
  bool scalar(const Run& run, const TensorSource& source) const;
  void send(std::size_t stage, std::size_t component);
  void bind_input(wire::RunCall& call, const Run& run, const Live& live, std::size_t stage, std::size_t component,
                  std::size_t input);
  void charge(Run& run, Duration gpu_time);
  void end_run(std::size_t stage, const std::string& error);
  void begin_runs();

  boost::asio::io_context& io_;
  const Options options_;
  RequestFlow flow_;
  const Events events_;
  const TensorPlaces places_;
  std::vector<Stage> stages_;
  std::map<PipelineRequestId, Live> live_;
  bool was_ready_ = false, is_broken_ = false, is_abandoned_ = false;
  std::uint64_t last_number_ = 0;  // of a call, of an object
  struct {
    std::deque<std::pair<std::size_t, RequestFlow::Try>> runs;  // by stage
    bool is_beginning = false;
  } ordered_;
  EarliestTimer timer_;
  Lifetime life_;
};

}  // namespace fairlead
