// All four schedulers of places under events in any order; the pacer against brute force, and against its bounds.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/rng.h"
#include "decide/pacing/admission.h"
#include "decide/pacing/pacer.h"
#include "decide/pacing/pacing_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// What the actions say is open, by instance, and what must be true after every event.
class Watch {
 public:
  explicit Watch(PlaceScheduler& scheduler) : scheduler_(scheduler) {}
  std::map<InstanceId, PacedShare> shares;

  void check(Instant now, const PlaceActions& actions) {
    for (const PlaceAction& action : actions) {
      RC_ASSERT(shares.contains(action.instance));
      const PlaceState state = *scheduler_.state_of(action.instance);
      if (action.kind == PlaceAction::Kind::kOpen) RC_ASSERT(action.until > now);
      if (action.kind == PlaceAction::Kind::kRevoke) RC_ASSERT(is_revoked(state));
    }
    RC_ASSERT(scheduler_.width_held() >= 0 && scheduler_.width_held() <= 100);
    bool holds = false, has_work = false;
    for (const auto& [id, share] : shares) {
      const auto state = scheduler_.state_of(id);
      RC_ASSERT(state.has_value());
      holds |= holds_width(*state);
      has_work |= *state != PlaceState::kIdle;  // who was revoked, too: it comes back
    }
    RC_ASSERT(holds == (scheduler_.width_held() > 0));
    if (has_work) RC_ASSERT(scheduler_.next_tick().has_value());  // nobody is forgotten
  }

 private:
  PlaceScheduler& scheduler_;
};

PacedShare random_share(Rng& rng) {
  const int limit = 1 + static_cast<int>(rng.below(100));
  return {.flow = FlowId(rng.below(3)),
          .width_percent = 1 + static_cast<int>(rng.below(100)),
          .request_percent = static_cast<int>(rng.below(static_cast<std::uint64_t>(limit) + 1)),
          .limit_percent = limit,
          .weight = 1 + static_cast<int>(rng.below(4))};
}

// Honest, late, lying and dying instances.
void any_events(std::string_view name, std::uint64_t seed, int steps) {
  Rng rng(seed);
  auto scheduler = std::move(*make_place_scheduler(name, {.drain_limit = 20ms, .again_after = 60ms}));
  Watch watch(*scheduler);
  Instant now(1s);
  for (int step = 0; step < steps; ++step) {
    now += Duration(rng.below(rng.below(20) == 0 ? 50'000'000 : 700'000));
    const InstanceId id(1 + rng.below(8));
    PlaceActions actions;
    switch (rng.below(12)) {
      case 0: {
        const PacedShare share = random_share(rng);
        RC_ASSERT(scheduler->set_share(now, id, share, actions).has_value());
        watch.shares[id] = share;
        break;
      }
      case 1:
      case 2:
      case 3:
        scheduler->asks(now, id, rng.below(3) == 0 ? std::optional(now + Duration(rng.below(9'000'000))) : std::nullopt,
                        actions);
        break;
      case 4: scheduler->idle(now, id, actions); break;
      case 5: scheduler->used(now, id, Duration(static_cast<std::int64_t>(rng.below(4'000'000)) - 1'000'000)); break;
      case 6:
      case 7: scheduler->drained(now, id, actions); break;
      case 8:
        if (rng.below(4) == 0) {
          scheduler->gone(now, id, actions);
          watch.shares.erase(id);
          RC_ASSERT(!scheduler->state_of(id));
        }
        break;
      default:
        if (const auto next = scheduler->next_tick()) now = std::max(now, *next);
        scheduler->tick(now, actions);
    }
    watch.check(now, actions);
  }
  // Once nobody answers any more, nothing is held after the drain limit.
  for (int i = 0; i < 40; ++i) {
    now += 5ms;
    PlaceActions actions;
    for (const auto& [id, share] : watch.shares) {
      const PlaceState state = *scheduler->state_of(id);
      if (state != PlaceState::kDraining && state != PlaceState::kDrainingAsks) scheduler->idle(now, id, actions);
    }
    scheduler->tick(now, actions);
    watch.check(now, actions);
  }
  for (const auto& [id, share] : watch.shares) {
    const PlaceState state = *scheduler->state_of(id);
    RC_ASSERT(state == PlaceState::kIdle || state == PlaceState::kRevoked);
  }
  for (std::uint64_t id = 1; id <= 8; ++id) {
    PlaceActions actions;
    scheduler->gone(now, InstanceId(id), actions);
  }
  RC_ASSERT(scheduler->width_held() == 0);
  RC_ASSERT(!scheduler->next_tick() ||
            (scheduler->tick(*scheduler->next_tick(), *std::make_unique<PlaceActions>()), !scheduler->next_tick()));
}

RC_GTEST_PROP(PlaceSchedulers, HoldWhatIsTrueWhateverHappens, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  for (const std::string_view name : place_scheduler_names()) any_events(name, seed, 400);
}

// Whatever it is that never says that it has drained: it is let in again and again, as long as it asks.
TEST(PlaceSchedulers, NobodyIsRevokedForEver) {
  for (const std::string_view name : place_scheduler_names()) {
    auto scheduler = std::move(*make_place_scheduler(name, {}));
    PlaceActions actions;
    const InstanceId silent(1), other(2);
    ASSERT_TRUE(scheduler->set_share(Instant(1s), silent, {}, actions));
    ASSERT_TRUE(scheduler->set_share(Instant(1s), other, {}, actions));
    int opened = 0;
    Duration drains{0};
    for (Instant now(1s); now < Instant(11s); now += 1ms) {
      actions.clear();
      scheduler->asks(now, silent, std::nullopt, actions);
      if (scheduler->state_of(other) == PlaceState::kDraining) scheduler->drained(now, other, actions);
      scheduler->asks(now, other, std::nullopt, actions);
      scheduler->tick(now, actions);
      for (const PlaceAction& action : actions) {
        opened += action.instance == silent && action.kind == PlaceAction::Kind::kOpen ? 1 : 0;
      }
      const PlaceState state = *scheduler->state_of(silent);
      if (holds_width(state) && state != PlaceState::kOpen) drains += 1ms;
    }
    EXPECT_GE(opened, 8) << name;
    EXPECT_LE(drains, 200ms + 10 * 11ms) << name << ": others wait for it";
  }
}

RC_GTEST_PROP(Pacer, GivesNoCreditFromNothing, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<PacedShare> shares;
  for (std::uint64_t i = 0; i < 2 + rng.below(5); ++i) {
    shares.push_back(
        {.width_percent = 10 + static_cast<int>(rng.below(91)), .request_percent = static_cast<int>(rng.below(90))});
  }
  Pacer pacer({});
  const Duration drain(rng.below(600'000));
  BusyDevice device(pacer, shares, [&](std::size_t) { return drain; });
  const Instant began = device.now;
  device.run_until(began + 3s, [&] {
    for (auto& [id, one] : device.busy) {
      const auto view = *pacer.view(device.now, id);
      const Duration earned = (device.now - began) / 100 * one.share.request_percent;
      RC_ASSERT(view.credit <= 10ms * one.share.request_percent);
      RC_ASSERT(view.entitled <=
                earned + pacer.frame_length() + 10ms);  // a frame that began with any credit, of any length
      RC_ASSERT(view.credit <= earned - view.entitled + 1us);
    }
    RC_ASSERT(pacer.width_reserved() <= 100);
  });
}

// Reservations that fit side by side are always chosen when they have credit: credit never exceeds what is earned in a frame and a drain,
// and what the instance gets in any interval is its request of it, less that and the place's own end.
RC_GTEST_PROP(Pacer, ReservationsSideBySideGetTheirRequestInEveryInterval, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<PacedShare> shares;
  int width = 0;
  for (std::uint64_t i = 0; i < 1 + rng.below(4); ++i) {
    const int mine = 10 + static_cast<int>(rng.below(50));
    if (width + mine > 100) break;
    width += mine;
    shares.push_back({.width_percent = mine, .request_percent = 5 + static_cast<int>(rng.below(90))});
  }
  const std::size_t reserved = shares.size();
  for (std::uint64_t i = 0; i < 1 + rng.below(4); ++i)
    shares.push_back({.width_percent = 5 + static_cast<int>(rng.below(96))});
  Pacer pacer({});
  const Duration drain = 10us + Duration(rng.below(190'000));
  BusyDevice device(pacer, shares, [&](std::size_t) { return drain; });
  std::vector<std::vector<Duration>> totals(reserved);
  const Instant began = device.now;
  const Duration step = 50ms;
  for (int i = 0; i <= 60; ++i) {
    device.run_until(began + i * step);
    for (std::size_t k = 0; k < reserved; ++k) totals[k].push_back(device.busy[InstanceId(k + 1)].total);
  }
  // docs/explanation/pacer.md: less 2 F + 2 % of a window's request, which a wide flow may take first, and 2 (F + d).
  for (std::size_t k = 0; k < reserved; ++k) {
    const double request = shares[k].request_percent / 100.0;
    const double slack = 0.02 * request + 2 * 0.002 + 2 * (0.002 + to_seconds(drain));
    for (std::size_t from = 2; from < totals[k].size(); ++from) {
      for (std::size_t to = from + 1; to < totals[k].size(); ++to) {
        const double got = to_seconds(totals[k][to] - totals[k][from]);
        RC_ASSERT(got >= request * to_seconds(step) * static_cast<double>(to - from) - slack);
      }
    }
  }
}

// Flows of which no two fit side by side: their virtual times differ by at most two frames and drains.
RC_GTEST_PROP(Pacer, BestEffortFlowsStayTogether, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<PacedShare> shares;
  for (std::uint64_t i = 0; i < 2 + rng.below(4); ++i) {
    shares.push_back(
        {.width_percent = 51 + static_cast<int>(rng.below(50)), .weight = 1 + static_cast<int>(rng.below(3))});
  }
  Pacer pacer({});
  const Duration drain(rng.below(200'000));
  BusyDevice device(pacer, shares, [&](std::size_t) { return drain; });
  device.run_until(device.now + 1s, [&] {
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    for (auto& [id, one] : device.busy) {
      const std::int64_t time = pacer.view(device.now, id)->flow_time;
      least = std::min(least, time);
      most = std::max(most, time);
    }
    RC_ASSERT(most - least <= 2 * (2ms + drain + 1us).count() * 100);
  });
}

// Of any widths, where narrow ones may run beside each other for ever: nobody waits longer than `patience` and a turn of each other flow.
RC_GTEST_PROP(Pacer, ABestEffortFlowOfAnyWidthIsLetInSoon, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<PacedShare> shares;
  const std::uint64_t count = 2 + rng.below(6);
  for (std::uint64_t i = 0; i < count; ++i) shares.push_back({.width_percent = 5 + static_cast<int>(rng.below(96))});
  Pacer pacer({});
  const Duration drain(rng.below(200'000));
  BusyDevice device(pacer, shares, [&](std::size_t) { return drain; });
  std::map<InstanceId, Instant> waits_since;
  device.run_until(device.now + 1s, [&] {
    for (auto& [id, one] : device.busy) {
      if (*pacer.state_of(id) == PlaceState::kOpen) waits_since.erase(id);
      const Instant since = waits_since.try_emplace(id, device.now).first->second;
      RC_ASSERT(device.now - since <= 50ms + static_cast<int>(count + 2) * (2ms + drain));
    }
  });
}

TEST(FrameChoice, IsTheHeaviestOfAllSets) {
  Rng rng(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<FrameClaim> claims;
    for (std::size_t i = 0; i < 1 + rng.below(9); ++i) {
      claims.push_back({i, 1 + static_cast<int>(rng.below(100)), 1 + static_cast<std::int64_t>(rng.below(50))});
    }
    const int room = static_cast<int>(rng.below(101));
    std::int64_t heaviest = 0;
    const auto weigh = [&](std::uint64_t set) {
      int width = 0;
      std::int64_t weight = 0;
      for (const FrameClaim& claim : claims) {
        if ((set >> claim.who & 1) == 0) continue;
        width += claim.width;
        weight += claim.weight;
      }
      return width <= room ? weight : -1;
    };
    for (std::uint64_t set = 0; set < 1u << claims.size(); ++set) heaviest = std::max(heaviest, weigh(set));
    ASSERT_EQ(weigh(heaviest_set(claims, room)), heaviest);
  }
}

// Every set of up to three instances of these widths and requests that some schedule can serve with 10 % to spare: everybody gets what
// was promised. The proof that a schedule exists is the exact one.
TEST(Pacer, ServesEverySmallSetThatAnyScheduleServes) {
  std::vector<PacedShare> kinds;
  for (const int width : {30, 51, 70, 100}) {
    for (const int request : {10, 25, 45, 80}) kinds.push_back({.width_percent = width, .request_percent = request});
  }
  Admission admission({.reserve_percent = 10});
  int sets = 0;
  for (std::size_t a = 0; a < kinds.size(); ++a) {
    for (std::size_t b = a; b < kinds.size(); ++b) {
      for (std::size_t c = b; c < kinds.size(); ++c) {
        const std::vector<PacedShare> shares = {kinds[a], kinds[b], kinds[c]};
        if (!admission.ask(shares).fits()) continue;
        ++sets;
        Pacer pacer({});
        BusyDevice device(pacer, shares, [](std::size_t i) { return Duration(20us + 17us * i); });
        device.run_until(Instant(2s));
        std::vector<Duration> before;
        for (const auto& [id, one] : device.busy) before.push_back(one.total);
        device.run_until(Instant(3s));
        for (const auto& [id, one] : device.busy) {
          const double part = to_seconds(one.total - before[id.value() - 1]) * 100 / one.share.request_percent;
          EXPECT_GE(part, 0.97) << one.share.width_percent << " x " << one.share.request_percent << " in set " << a
                                << " " << b << " " << c;
        }
      }
    }
  }
  EXPECT_GT(sets, 100);
}

}  // namespace
}  // namespace fairlead
