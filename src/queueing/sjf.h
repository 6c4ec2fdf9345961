// Shortest job first with a limiter of unfairness, as Paella schedules (compared with in MQFQ-Sticky section 6). The flow
// with the least mean service is next, unless some flow has been passed over for too long: at each choice every flow that
// was ever called earns an equal part of one turn, the chosen one spends a turn, and a flow that is owed more than `limit`
// turns goes first. Flows without work earn too, and keep what they are owed, as in the code that the paper's authors
// published: a function that is seldom called is then served at once, and its parts of a turn are not the others'. It counts
// turns, not time: a flow of long jobs that is owed a turn gets a long one.
//
// Example: A takes 1 s, B 9 s, both always queued. Each choice owes B half a turn; with a limit of 25, B runs for the first
// time after 51 choices of A, and then at every second choice.
//
// Turns are shared out by one growing number: what a flow is owed is the difference between it and the flow's own count,
// so a choice touches one flow, not all. Fixed point, 2^20 to the turn.
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

class Sjf final : public KeyedPolicy<ByTime<Duration>> {
 public:
  // Paella's limiter as the authors of MQFQ-Sticky set it.
  static constexpr std::int64_t kLimitTurns = 25;

  using KeyedPolicy::KeyedPolicy;
  std::string_view name() const override { return "sjf"; }

  void add_flow(FlowId flow, const FlowShare& share) override {
    KeyedPolicy::add_flow(flow, share);
    const Row row = flows_.row_of(flow);
    if (row >= taken_.size()) {
      taken_.resize(row + 1, 0);
      called_.resize(row + 1, false);
    }
  }

  void remove_flow(FlowId flow) override {
    const Row row = flows_.row_of(flow);
    if (called_[row]) --sharing_;
    called_[row] = false;
    KeyedPolicy::remove_flow(flow);
  }

 protected:
  Key key(const Flow& flow) const override { return {flow.service.value_or(Duration(0)), flow.id}; }

  std::optional<Row> pick(const Placeable& placeable) override {
    const auto can_run = [&](Row row) { return placeable.can_run(flows_[row].id); };
    const auto owed_most = owed_.find_first(can_run);
    if (owed_most && given_ - taken_[*owed_most] > kLimitTurns * kTurn) return owed_most;
    return order_.find_first(can_run);
  }

  // Owed nothing for the time before its first call.
  void on_waiting(Row row) override {
    if (!called_[row]) {
      called_[row] = true;
      ++sharing_;
      taken_[row] = given_;
    }
    owed_.set(row, {taken_[row], flows_[row].id});
  }

  void on_dispatch(Row row) override {
    given_ += kTurn / sharing_;
    taken_[row] += kTurn;
    owed_.set(row, {taken_[row], flows_[row].id});
  }

  void on_idle(Row row) override { owed_.erase(row); }

 private:
  static constexpr std::int64_t kTurn = 1 << 20;
  struct ByTurns {
    std::int64_t taken;
    FlowId flow;
    auto operator<=>(const ByTurns&) const = default;
  };

  std::int64_t given_ = 0;           // turns that a flow would have been given, had it been called from the beginning
  std::vector<std::int64_t> taken_;  // by row
  std::vector<bool> called_;         // by row: ever
  std::int64_t sharing_ = 0;         // how many of them were
  IndexedHeap<ByTurns> owed_;        // who has taken least is owed most
};

}  // namespace fairlead
