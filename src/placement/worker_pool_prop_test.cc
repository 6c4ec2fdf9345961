// What holds for every worker pool, whatever comes: no request is lost or made up, none waits for ever, lanes are kept,
// and a GPU whose worker is not the client's is always said to need a new one.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "placement/worker_pool.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// Some constants are somewhere, others nowhere; does not change.
class Scattered final : public ReloadCost {
 public:
  Duration reload(FlowId client, GpuId gpu) const override {
    return (client.value() + gpu.value()) % 3 == 0 ? Duration(0) : 50ms;
  }
};

class Bench {
 public:
  Bench(std::string_view name, const WorkerPoolOptions& options, std::size_t clients)
      : options_(options), exclusive_(name == "exclusive"), pool_(*make_worker_pool(name, options)) {
    for (std::size_t i = 1; i <= clients; ++i) pool_->add_client(FlowId(i));
  }

  void arrive(FlowId client) {
    pool_->on_arrival(now_, client);
    ++waiting_[client];
    assign_all();
  }

  void end_one(std::size_t which, Duration took) {
    if (running_.empty()) return;
    now_ += took;
    const auto chosen = running_.begin() + static_cast<std::ptrdiff_t>(which % running_.size());
    const WorkerPool::Assignment ended = *chosen;
    running_.erase(chosen);
    pool_->on_completion(now_, ended.client, ended.gpu, {.gpu_time = took, .latency = took});
    assign_all();
  }

  // Ends whatever runs until nothing waits. True: that came to pass.
  bool drain() {
    for (int i = 0; i < 10'000; ++i) {
      if (running_.empty()) {
        const auto chance = pool_->next_chance();
        if (!chance) break;
        now_ = *chance;
        assign_all();
      }
      end_one(0, 10ms);
    }
    std::size_t left = running_.size();
    for (const auto& [client, count] : waiting_) left += count;
    return left == 0;
  }

 private:
  void assign_all() {
    while (const auto next = pool_->assign(now_, residency_)) {
      RC_ASSERT(waiting_[next->client] > 0u);
      --waiting_[next->client];
      std::size_t beside = 0;
      for (const auto& one : running_) beside += one.gpu == next->gpu ? 1 : 0;
      RC_ASSERT(beside < (exclusive_ ? 1 : options_.lanes));
      if (exclusive_) RC_ASSERT(next->new_worker == (worker_[next->gpu] != next->client));
      worker_[next->gpu] = next->client;
      running_.push_back(*next);
    }
    if (const auto chance = pool_->next_chance()) RC_ASSERT(*chance > now_);
  }

  const WorkerPoolOptions options_;
  const bool exclusive_;
  const Scattered residency_;
  std::unique_ptr<WorkerPool> pool_;
  Instant now_{};
  std::map<FlowId, std::size_t> waiting_;
  std::map<GpuId, FlowId> worker_;
  std::vector<WorkerPool::Assignment> running_;
};

RC_GTEST_PROP(WorkerPools, EveryRequestRunsOnceAndNoneWaitsForEver, ()) {
  const auto names = worker_pool_names();
  const auto name = names[*rc::gen::inRange<std::size_t>(0, names.size())];
  const auto clients = *rc::gen::inRange<std::size_t>(1, 9);
  const WorkerPoolOptions options{.gpus = *rc::gen::inRange<std::size_t>(1, 5),
                                  .lanes = *rc::gen::inRange<std::size_t>(1, 4),
                                  .over_run = std::chrono::milliseconds(*rc::gen::inRange(0, 100))};
  Bench bench(name, options, clients);
  for (const auto step : *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 1000))) {
    if (step % 2 == 0) {
      bench.arrive(FlowId(1 + step % clients));
    } else {
      bench.end_one(step, std::chrono::milliseconds(step % 40));
    }
  }
  RC_ASSERT(bench.drain());
}

}  // namespace
}  // namespace fairlead
