// The way of requests through one pipeline: which stage runs which request next, on which replica, and how each request ends.
//
//              admitted            a replica is free, a slot of its ring too      its outputs are whole
//   offered ───────────> waits for a stage ────────────────────────> runs ──────────────────> waits for the next ... ──> answered
//                              ^            that replica failed or is lost,  │
//                              └────── `retries` are left: from the last ────┘──> failed
//                                            whole tensor
//
// Rings. Each stage has a ring of `ring_depth` slots in host memory. A request takes a slot when a stage starts it, the stage writes its outputs
// there, and the slot is free again when all stages that read it have ended and the answer was taken. A stage whose ring is full starts
// nothing: so back-pressure reaches has_room(), and the queue outside. A lost replica loses no slot: the ring is the host's.
//
// Why nothing waits for ever: each stage starts requests in the order in which they were offered. So all slots of a stage for which the
// oldest request waits are free or will be.
//
// Branches. A stage is told which of its components may run; it reports which ran, and the value of each scalar that decides for another
// stage. A component with a condition that does not hold, or with an input whose sources all did not run, does not run. A stage of which
// nothing would run is passed.
//
// Example. Stages {deblur} {sr, background}, ring depth 2: request 1 runs deblur, then sr and background, while request 2 runs deblur. The replica
// of the second stage dies: request 1 waits; with ready() it runs {sr, background} again, from deblur's outputs in slot 0.
//
// A pipeline that goes gives its requests back, each with what it has behind it: the components whose stages have ended. Their tensors are whole,
// and still in their slots where anybody wants them. Another pipeline of the same Dag, however it is cut, goes on from there.
//
// Late and cancelled requests are answered at once; a replica that runs one goes on with nothing else until done(), failed() or lost(), because
// it still writes into its slot.
//
// Who drives: carries out Run (hand the request's tensors to the replica), Kill (end a replica that takes too long; then call lost()), Answer
// (deliver the places of the outputs; call taken() once they are copied), and tells it what happened. A report that says nonsense ends its
// request, not the program.
//
// Time: every entry point takes `now`. Threads: not thread-safe. Determinism: of the calls.
// Source: FluidFaaS (HPDC '25), Listing 1; order, retries and bounds are ours.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "decide/pipeline/dag.h"

namespace fairlead {

using PipelineRequestId = Id<struct PipelineRequestTag>;

struct FlowStage {
  std::vector<std::size_t> components;
  std::size_t replicas = 1;  // the fastest first: of those that are free the first one runs
};

struct FlowSettings {
  std::size_t ring_depth = 4;
  unsigned retries = 1;     // of one request, over all stages
  Duration stage_limit{0};  // a stage that takes longer hangs; 0: none does
};

// A slot of the ring of a stage.
struct RingSlot {
  std::size_t stage = 0, slot = 0;
  bool operator==(const RingSlot&) const = default;
};

enum class FlowEnd { kAnswered, kFailed, kLate, kCancelled, kReturned };
std::string_view flow_end_name(FlowEnd end);  // "answered", ...

// What a request has behind it.
struct FlowProgress {
  std::vector<std::optional<bool>>
      ran;  // by component: whether it ran; empty: it has not ended. No components: nothing has
  std::map<std::pair<std::size_t, std::size_t>, bool>
      scalars;                                    // that conditions need, of those that ran: by component and port
  std::vector<std::optional<std::size_t>> slots;  // by stage, of one that has ended; empty: nobody wants its tensors
  unsigned tries = 0;                             // of its stages that failed, or that ran when their pipeline went
};

// What a stage says when it is done. Only components of the stage.
struct StageReport {
  std::vector<std::size_t> ran;
  // Of each component that ran and on whose scalar output another one's condition hangs: whether it is not 0.
  std::vector<std::pair<TensorSource, bool>> scalars;
};

class RequestFlow {
 public:
  using Try = std::uint64_t;  // tells a report from one of an earlier run

  struct Run {
    PipelineRequestId request;
    std::size_t stage = 0, replica = 0;
    Try tried = 0;
    std::vector<std::size_t>
        components;               // that run, but for conditions on scalars of this stage, which it decides itself
    std::vector<RingSlot> reads;  // where the outputs of earlier stages are
    RingSlot writes;
    bool operator==(const Run&) const = default;
  };
  struct Kill {  // has taken longer than it may
    std::size_t stage = 0, replica = 0;
    bool operator==(const Kill&) const = default;
  };
  struct Answer {
    PipelineRequestId request;
    FlowEnd end = FlowEnd::kAnswered;
    std::string why;  // where it is not kAnswered; names component and bound
    std::vector<RingSlot>
        outputs;  // of kAnswered: of each of the Dag's outputs in order; one that did not run has slot kAbsent, one that
                  // another pipeline made kKept
    bool operator==(const Answer&) const = default;
  };
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1), kKept = static_cast<std::size_t>(-2);
  using Action = std::variant<Run, Kill, Answer>;
  using Actions = std::vector<Action>;

  // kInvalidArgument: stages that do not have each component once, that read each other in a circle, or a depth or number of replicas of 0.
  static Result<RequestFlow> make(Dag dag, std::vector<FlowStage> stages, FlowSettings settings);

  // Whether a request that is offered now finds a slot at the first stage before it waits behind as many as a ring has.
  bool has_room() const;
  // REQUIRES: has_room(); an id above all earlier ones. `deadline`: answered late then, whatever it waits for.
  // `progress`: in another pipeline of this Dag; its tensors are the driver's to hand on.
  void offer(Instant now, PipelineRequestId request, std::optional<Instant> deadline, Actions& out,
             const FlowProgress& progress = {});
  // Of one that is not answered; none of another.
  FlowProgress progress(PipelineRequestId request) const;
  // Ends of a Run; of an earlier try they are ignored. REQUIRES: the stage and replica exist.
  void done(Instant now, std::size_t stage, std::size_t replica, Try tried, const StageReport& report, Actions& out);
  void failed(Instant now, std::size_t stage, std::size_t replica, Try tried, const std::string& why, Actions& out);
  // The process or its slice is gone; and it is there again. All are there at the beginning.
  void lost(Instant now, std::size_t stage, std::size_t replica, const std::string& why, Actions& out);
  void ready(Instant now, std::size_t stage, std::size_t replica, Actions& out);
  // The answer's outputs have been copied: their slots may be used again.
  void taken(Instant now, PipelineRequestId request, Actions& out);
  void cancel(Instant now, PipelineRequestId request, Actions& out);
  // The pipeline goes: every request ends as kReturned, for another pipeline. One of which a stage runs, and has no retry left,
  // ends as kFailed: what it does may be why the pipeline goes. Who only waited has lost nothing.
  void abandon(Instant now, const std::string& why, Actions& out);
  void wake(Instant now, Actions& out);
  std::optional<Instant> next_wakeup() const;

  const Dag& dag() const { return dag_; }
  std::size_t stages() const { return stages_.size(); }
  std::size_t unanswered() const { return unanswered_; }
  std::size_t slots_used(std::size_t stage) const;
  // Nobody is answered, runs or is to be taken: a pipeline that drains may go.
  bool is_empty() const { return requests_.empty(); }

 private:
  enum class At { kWaits, kRuns, kEnded };
  struct Progress {
    At at = At::kWaits;
    std::optional<std::size_t> slot;
  };
  struct Request {
    std::optional<Instant> deadline;
    unsigned tries_left = 0;
    bool is_answered = false, is_taken = false;
    std::string failed;  // why a stage did the last time
    std::vector<Progress> stages;
    std::vector<std::optional<bool>> ran;                         // by component
    std::map<std::pair<std::size_t, std::size_t>, bool> scalars;  // by component and port
    std::vector<bool> kept;                                       // by component: another pipeline ended it

    bool has_ended(const std::vector<std::size_t>& all) const;
    bool runs() const;  // a stage of it
  };
  struct Replica {
    bool is_there = true;
    bool is_killed = false;
    std::optional<PipelineRequestId> runs;
    Try tried = 0;
    Instant since;
  };
  struct Stage {
    std::vector<std::size_t> components;
    std::vector<std::size_t> reads, read_by;   // stages
    bool has_output = false;                   // of the Dag
    std::vector<std::size_t> decides_outside;  // components whose scalars later stages need
    std::vector<Replica> replicas;
    std::vector<bool> slots;                // used
    std::deque<PipelineRequestId> awaited;  // not started here, oldest first
    std::deque<PipelineRequestId> again;    // to be run once more, slot in hand

    Replica* free_replica();
  };

  RequestFlow(Dag dag, FlowSettings settings) : dag_(std::move(dag)), settings_(settings) {}
  Status add_stages(const std::vector<FlowStage>& stages);

  bool component_runs(const Request& request, std::size_t component, const std::vector<std::optional<bool>>& ran) const;
  std::vector<std::size_t> components_of(const Request& request, std::size_t stage) const;
  void pump(Instant now, Actions& out);
  bool step(Instant now, std::size_t stage, Actions& out);
  void run(Instant now, PipelineRequestId id, std::size_t stage, Replica& replica, Actions& out);
  void end_stage(Instant now, PipelineRequestId id, std::size_t stage, Actions& out);
  std::string note(Request& request, std::size_t stage, const StageReport& report);
  void try_again(Instant now, PipelineRequestId id, std::size_t stage, const std::string& why, Actions& out);
  void answer(PipelineRequestId id, FlowEnd end, std::string why, Actions& out);
  void release(PipelineRequestId id);

  Dag dag_;
  FlowSettings settings_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> stage_of_;  // by component
  std::map<PipelineRequestId, Request> requests_;
  std::size_t unanswered_ = 0;
  PipelineRequestId last_;
  Try last_try_ = 0;
};

}  // namespace fairlead
