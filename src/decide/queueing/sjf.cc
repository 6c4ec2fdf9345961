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
// Time, threads, determinism: as flow_queue.h.
#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

// Paella's limiter as the authors of MQFQ-Sticky set it.
constexpr std::int64_t kLimitTurns = 25;

class Sjf final : public KeyedOrder<Sjf, ByTime<Duration>> {
 public:
  using KeyedOrder::KeyedOrder;

  Key key(const Flow& flow) const { return {flow.service.value_or(Duration(0)), flow.id}; }

  void add(Row row) override {
    if (row < taken_.size()) return;
    taken_.resize(row + 1, 0);
    called_.resize(row + 1, false);
  }

  void remove(Row row) override {
    if (called_[row]) --sharing_;
    called_[row] = false;
    KeyedOrder::remove(row);
  }

  std::optional<Pick> pick(Instant now, const Placeable& placeable) override {
    const auto owed_most = owed_.find_first([&](Row row) { return placeable.can_run(flows_[row].id); });
    if (owed_most && given_ - taken_[*owed_most] > kLimitTurns * kTurn) return Pick{*owed_most};
    return KeyedOrder::pick(now, placeable);
  }

  // Owed nothing for the time before its first call.
  void on_waiting(Row row) {
    if (!called_[row]) {
      called_[row] = true;
      ++sharing_;
      taken_[row] = given_;
    }
    owed_.set(row, {taken_[row], flows_[row].id});
  }

  void began(const Pick& pick) override {
    given_ += kTurn / sharing_;
    taken_[pick.row] += kTurn;
    owed_.set(pick.row, {taken_[pick.row], flows_[pick.row].id});
    settle(pick.row);
  }

  void on_idle(Row row) { owed_.erase(row); }

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

}  // namespace

constinit const Policy sjf_policy{
    .name = "sjf", .next_is = "the least mean service, until another flow is owed 25 turns", .make = make_order<Sjf>};

}  // namespace fairlead
