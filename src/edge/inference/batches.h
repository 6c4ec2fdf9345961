// Inferences of one model that one call of its function answers together (tag gpu:batch; which go when: decide/batching/batcher.h).
//
//   x [2, 8] ──┐                                                        ┌──> y [2]
//   x [1, 8] ──┼──> one payload, x [6, 8] ──invoke──> y [6] ──by rows──┼──> y [1]
//   x [3, 8] ──┘                                                        └──> y [3]
//
// A call that the function answers with an error or with what the model does not say, or does not survive, is made again for each half of
// its inferences, down to one, so that nobody has another's error: one of 32 that cannot be read costs ten more calls. Who goes while it
// waits is not called; a call that everybody has left is over.
//
// Threads: the io_context's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "decide/batching/batcher.h"
#include "edge/inference/model.h"
#include "edge/loop_clock.h"
#include "edge/node_service.h"

namespace fairlead::inference {

struct BatchedInference {
  std::vector<std::string> inputs;  // bytes, by the signature's inputs
  std::size_t rows = 0;
  std::vector<std::uint32_t> wanted;        // of the signature's outputs
  std::optional<std::int64_t> deadline_ms;  // since 1970; who has no answer then is told so
  std::string trace_id;
};

// Tensors as the function gave them.
struct Answered {
  std::vector<TensorSpec> outputs;  // with their sizes
  KernelTaskAnswer answer;
};

class Batches {
 public:
  using Done = NodeService::Callback<Answered>;

  // REQUIRES: `node` outlives this and what it was asked for.
  Batches(NodeService& node, LoopClock clock) : node_(node), clock_(std::move(clock)) {}

  // Takes the tensors of a request that may go with others: they have as many rows as each other, some, and no more than a call may have.
  // Nothing: it may not, and keeps them.
  static std::optional<BatchedInference> take_from(const Model& model, InferRequest& request);
  // REQUIRES: `inference` is what take_from() gave. `done` is called once, unless it was cancelled.
  NodeService::CancelHandle call(const Model& model, BatchedInference inference, Done done);

 private:
  using Number = Batcher::Request;
  struct Member {
    BatchedInference inference;
    Done done;  // empty: its client has gone, or was told that it is late
    std::string group;
    std::optional<Instant> late;  // from when on
    std::uint64_t call = 0;       // that it is in; 0: none yet
  };
  struct Group {
    CallSignature signature;
    std::string function;
    Batcher batcher;
    std::optional<Instant> timer;  // that is set
    std::size_t members = 0;
  };
  struct Call {
    std::string group;
    std::vector<Number> members;
    std::size_t present = 0;  // of them
    Instant began;
    bool is_batched = true;  // the group's batcher knows of it
    NodeService::CancelHandle cancel;
  };

  void start(const std::string& group, const Batcher::Batches& batches);
  void start_call(const std::string& group, Batcher::Batch members, bool is_batched);
  InvokeRequest request_of(const Group& group, const std::vector<Number>& members);
  void set_timer(const std::string& group);
  void on_outcome(std::uint64_t call, Result<Outcome> outcome);
  Result<std::vector<Answered>> split(CallSignature signature, const std::vector<Number>& members,
                                      std::string_view payload);
  void repeat(const std::string& group, const std::vector<Number>& members);
  void over(const Call& call, std::optional<Instant> began);
  void watch_deadlines();
  void expire(Number member);
  void leave(Number member);
  Done release(Number member);
  void forget_if_empty(const std::string& group);

  NodeService& node_;
  const LoopClock clock_;
  std::map<Number, Member> members_;
  std::map<std::string, Group> groups_;
  std::map<std::uint64_t, Call> calls_;
  std::set<std::pair<Instant, Number>> deadlines_;
  std::optional<Instant> deadline_timer_;  // that is set
  Number next_ = 1;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();  // callbacks hold it weakly
};

}  // namespace fairlead::inference
