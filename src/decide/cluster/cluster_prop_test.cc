// What must hold of many nodes, whatever happens: seeded sequences of joins, losses, drains, lies and silence.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "decide/cluster/home_choice.h"
#include "decide/cluster/one_hop.h"
#include "decide/cluster/reservation_split.h"

namespace fairlead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kClass = "a100";

// One gateway and the nodes that it sees. Nodes report when told to; `truth` is what they hold.
struct Gateway {
  explicit Gateway(std::size_t nodes, BoundSettings bound = {})
      : loads(bound), truth(nodes), number(nodes), incarnation(nodes, 1) {
    for (std::size_t i = 0; i < nodes; ++i) {
      orders.add(id(i), node_key("node-" + std::to_string(i)), kClass);
      members.add(now, id(i));
    }
  }
  static NodeId id(std::size_t i) { return NodeId(i + 1); }
  static std::size_t row(NodeId node) { return node.value() - 1; }

  Heard says(std::size_t i, double backlog_s, bool is_draining = false,
             std::shared_ptr<const WarmFunctions> warm = nullptr) {
    const Heard heard = members.heard(now, id(i), {incarnation[i], ++number[i], is_draining});
    if (heard == Heard::kNews) {
      loads.report({.node = id(i),
                    .incarnation = incarnation[i],
                    .number = number[i],
                    .tokens = 2,
                    .backlog_s = backlog_s,
                    .is_draining = is_draining,
                    .warm = std::move(warm)});
    }
    return heard;
  }
  void settle() {
    members.advance(now);
    loads.settle(now, [&](NodeId node) { return members.takes_calls(node); });
  }
  std::optional<HomeChoice> choose(std::uint64_t function) {
    return choose_home({orders, members, loads}, function, kClass, {});
  }

  Instant now = Instant(seconds(100));
  HomeOrders orders;
  Members members{MemberTimes{}};
  PeerLoads loads;
  std::vector<double> truth;
  std::vector<std::uint64_t> number, incarnation;
};

TEST(ClusterProperties, NoFunctionIsWithoutAHomeWhileANodeMayLive) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    Gateway gateway(1 + rng.below(8));
    const std::size_t nodes = gateway.truth.size();
    for (int step = 0; step < 300; ++step) {
      gateway.now += milliseconds(rng.below(400));
      const std::size_t i = rng.below(nodes);
      switch (rng.below(4)) {
        case 0: gateway.members.unreachable(gateway.now, Gateway::id(i)); break;
        case 1: gateway.says(i, static_cast<double>(rng.below(50)), rng.below(8) == 0); break;
        case 2: gateway.loads.sent(Gateway::id(i), 1); break;
        default: gateway.says(i, 0); break;
      }
      gateway.settle();
      bool some_may_live = false, some_takes = false;
      for (std::size_t n = 0; n < nodes; ++n) {
        some_may_live = some_may_live || gateway.members.may_live(Gateway::id(n));
        some_takes = some_takes || (gateway.members.takes_calls(Gateway::id(n)) && gateway.loads.knows(Gateway::id(n)));
      }
      const auto choice = gateway.choose(rng.next());
      ASSERT_EQ(choice.has_value(), some_may_live) << "seed " << seed << " step " << step;
      if (some_takes) {
        ASSERT_TRUE(gateway.members.takes_calls(choice->node)) << "seed " << seed << " step " << step;
      }
    }
  }
}

TEST(ClusterProperties, NoNodeIsGivenACallAboveTheBoundWhileAnotherIsBelow) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    Gateway gateway(2 + rng.below(30));
    for (int step = 0; step < 200; ++step) {
      gateway.now += milliseconds(200);
      for (std::size_t i = 0; i < gateway.truth.size(); ++i) {
        gateway.truth[i] = std::max(0.0, gateway.truth[i] - 0.4);
        gateway.says(i, gateway.truth[i]);
      }
      gateway.settle();
      const std::uint64_t hot = rng.below(3);
      for (int call = 0; call < 20; ++call) {
        const auto choice = gateway.choose(function_key("t", std::to_string(rng.below(2) == 0 ? hot : rng.next())));
        ASSERT_TRUE(choice);
        if (!gateway.loads.is_within_bound(choice->node)) {
          for (std::size_t i = 0; i < gateway.truth.size(); ++i)
            ASSERT_FALSE(gateway.loads.is_within_bound(Gateway::id(i))) << "seed " << seed;
        }
        gateway.loads.sent(choice->node, 0.5);
        gateway.truth[Gateway::row(choice->node)] += 0.5;
      }
    }
  }
}

TEST(ClusterProperties, TheFunctionsOfADeadNodeGoElsewhereWithinTheTimeOfSuspicion) {
  Gateway gateway(10);
  constexpr std::size_t kDead = 3;
  for (int tick = 0; tick < 5; ++tick) {
    gateway.now += milliseconds(200);
    for (std::size_t i = 0; i < 10; ++i) gateway.says(i, 1);
    gateway.settle();
  }
  std::vector<std::uint64_t> its_own;
  for (std::uint64_t f = 0; its_own.size() < 20; ++f) {
    const std::uint64_t key = function_key("t", std::to_string(f));
    if (gateway.choose(key)->node == Gateway::id(kDead)) its_own.push_back(key);
  }
  const Instant lost = gateway.now;
  std::set<NodeId> after;
  while (gateway.now - lost < MemberTimes{}.suspect_after) {
    gateway.now += milliseconds(200);
    for (std::size_t i = 0; i < 10; ++i) {
      if (i != kDead) gateway.says(i, 1);
    }
    gateway.settle();
  }
  for (const std::uint64_t key : its_own) {
    after.insert(gateway.choose(key)->node);
    EXPECT_NE(gateway.choose(key)->node, Gateway::id(kDead));
  }
  EXPECT_GT(after.size(), 3u);  // all over the others
}

// All gateways with maps of their own, which differ: a call crosses the network once within an attempt, and at most twice in all.
TEST(ClusterProperties, NoCallIsForwardedTwice) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed);
    const std::size_t nodes = 1 + rng.below(5);
    struct View {
      std::uint64_t epoch;
      std::size_t chosen;
      bool may_run;
    };
    std::vector<View> views;
    for (std::size_t i = 0; i < nodes; ++i) views.push_back({rng.below(4), rng.below(nodes), rng.below(4) != 0});
    const std::size_t entry = rng.below(nodes);
    unsigned crossings = 0, attempts = 0;
    bool is_over = false;
    while (!is_over) {
      ++attempts;
      ASSERT_LE(attempts, kMostAttempts);
      std::size_t at = entry;
      ArrivedCall call;
      for (;;) {
        const View& view = views[at];
        const HopVerdict verdict = judge_hop(call, {.epoch = view.epoch,
                                                    .is_chosen = view.chosen == at,
                                                    .may_run = view.may_run,
                                                    .knows_other = view.chosen != at});
        if (verdict == HopVerdict::kForward) {
          ASSERT_EQ(call.hops, 0u) << "seed " << seed;
          call = {.hops = call.hops + 1, .is_from_peer = true, .sender_epoch = view.epoch};
          at = view.chosen;
          ++crossings;
          continue;
        }
        ASSERT_TRUE(verdict != HopVerdict::kRun || view.may_run);
        is_over = verdict != HopVerdict::kMisdirected || after_misdirected(attempts) == AfterMisdirected::kGiveUp;
        if (!is_over) views[entry] = {view.epoch, view.chosen, views[entry].may_run};
        break;
      }
    }
    ASSERT_LE(crossings, 2u);
  }
}

TEST(ClusterProperties, SharesNeverExceedTheReservationAndSumToItWhenAllHaveAnswered) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const std::uint64_t reserved = rng.below(40);
    ReservationSplit split(reserved);
    std::map<NodeId, std::uint64_t> uses;                            // what each node allows itself
    std::vector<std::pair<NodeId, ReservationSplit::Told>> answers;  // under way to the gateway
    std::map<NodeId, std::uint64_t> last_number;
    const auto deliver = [&](NodeId node) {
      const auto told = split.told(node);
      if (told.number < last_number[node]) return;
      last_number[node] = told.number;
      uses[node] = told.share;
      answers.emplace_back(node, told);
    };
    std::uint64_t next = 1;
    for (int step = 0; step < 200; ++step) {
      switch (rng.below(5)) {
        case 0:
          if (uses.size() < 6) {
            uses[NodeId(next)] = 0;
            split.join(NodeId(next++));
          }
          break;
        case 1:
          if (uses.size() > 1 && rng.below(3) == 0) {
            const NodeId gone = std::next(uses.begin(), static_cast<std::ptrdiff_t>(rng.below(uses.size())))->first;
            uses.erase(gone);
            split.lose(gone);
          }
          break;
        case 2: {
          std::map<NodeId, std::uint64_t> arrivals;
          for (const auto& [node, used] : uses) arrivals[node] = rng.below(100);
          split.aim(arrivals);
          break;
        }
        case 3:
          if (!uses.empty())
            deliver(std::next(uses.begin(), static_cast<std::ptrdiff_t>(rng.below(uses.size())))->first);
          break;
        default:
          if (!answers.empty()) {
            const std::size_t i = rng.below(answers.size());
            split.applies(answers[i].first, answers[i].second.number);
            if (rng.below(2) == 0) answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(i));
          }
          break;
      }
      std::uint64_t used = 0;
      for (const auto& [node, share] : uses) used += share;
      ASSERT_LE(used, reserved) << "seed " << seed << " step " << step;
      ASSERT_LE(split.held(), reserved);
    }
    if (uses.empty()) continue;
    split.aim({});
    for (int round = 0; round < 3; ++round) {
      for (const auto& [node, used] : uses) split.applies(node, split.told(node).number);
    }
    EXPECT_EQ(split.told_in_all(), reserved) << "seed " << seed;
  }
}

TEST(ClusterProperties, WhoReportsTooLittleTakesNoMoreThanTheBound) {
  Gateway gateway(10);
  constexpr std::size_t kLiar = 4;
  for (int tick = 0; tick < 200; ++tick) {
    gateway.now += milliseconds(200);
    for (std::size_t i = 0; i < 10; ++i) gateway.says(i, i == kLiar ? 0 : gateway.truth[i]);
    gateway.settle();
    for (int call = 0; call < 40; ++call) {
      const auto choice = gateway.choose(function_key("t", std::to_string(call)));
      const NodeId liar = Gateway::id(kLiar);
      if (choice->node == liar) {
        ASSERT_TRUE(gateway.loads.own_outstanding(liar) <= 0 ||
                    gateway.loads.own_outstanding(liar) / 2 < gateway.loads.bound_per_token())
            << tick;
      }
      gateway.loads.sent(choice->node, 0.5);
      gateway.truth[Gateway::row(choice->node)] += 0.5;
    }
    for (std::size_t i = 0; i < 10; ++i) {  // all work alike; the liar answers nothing
      if (i == kLiar) continue;
      const double done = std::min(gateway.truth[i], 2.2);
      gateway.truth[i] -= done;
      gateway.loads.answered(Gateway::id(i), done);
    }
  }
}

TEST(ClusterProperties, WhoReportsTooMuchShedsItsCallsForPatienceAndLiftsNobodysBound) {
  Gateway gateway(10);
  constexpr std::size_t kLiar = 4;
  int shed = 0, taken_after = 0;
  const Duration patience = BoundSettings{}.patience;
  const Instant begin = gateway.now;
  for (int tick = 0; tick < 100; ++tick) {
    gateway.now += milliseconds(200);
    for (std::size_t i = 0; i < 10; ++i) gateway.says(i, i == kLiar ? 1e300 : 2);
    gateway.settle();
    ASSERT_LE(gateway.loads.bound_per_token(),
              1.5 * (9 * 1 + 4 * 1) / 10.0 + 1e-9);  // of honest nodes with 1 s per token
    for (std::uint64_t f = 0; f < 200; ++f) {
      const std::uint64_t key = function_key("t", std::to_string(f));
      if (*gateway.orders.at(key, kClass, 0) != Gateway::id(kLiar)) continue;
      const bool is_given = gateway.choose(key)->node == Gateway::id(kLiar);
      if (gateway.now - begin <= patience) {
        shed += is_given ? 0 : 1;
      } else if (gateway.now - begin > patience + milliseconds(400)) {
        ASSERT_TRUE(is_given);
        ++taken_after;
      }
    }
  }
  EXPECT_GT(shed, 0);
  EXPECT_GT(taken_after, 0);
}

}  // namespace
}  // namespace fairlead
