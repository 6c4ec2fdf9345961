#include "decide/pacing/pacer.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace fairlead {
namespace {

constexpr std::uint64_t bit(std::size_t who) {
  return std::uint64_t{1} << who;
}
bool waits(const Place& place) {
  return place.state == PlaceState::kAsks || place.state == PlaceState::kChosen;
}
bool drains(const Place& place) {
  return place.state == PlaceState::kDraining || place.state == PlaceState::kDrainingAsks;
}
// Whose flow it is charged to, where it names none: its own.
FlowId flow_of(InstanceId instance, const PacedShare& share) {
  return share.flow ? share.flow : FlowId(instance.value() | std::uint64_t{1} << 63);
}

// Less of a frame than this part is not worth a place: its last kernel would drain into the next.
constexpr int kWorthwhile = 8;
// By how much an instance may lag behind its request before nothing without credit goes before it: two frames and this part of
// what it is promised in a window.
constexpr int kLagParts = 50;

}  // namespace

Status Pacer::set_share(Instant now, InstanceId instance, const PacedShare& share, PlaceActions& actions) {
  if (Status sound = check(share); !sound) return sound;
  Paced* place = places_.find(instance);
  if (place == nullptr && places_.size() == kMostPlaces) {
    return fail(Errc::kResourceExhausted, "instances of the device are {}, {} is the most", places_.size(),
                kMostPlaces);
  }
  if (place == nullptr) {
    place = &places_.add(instance);
  } else {
    settle(now, *place, Duration::max());
    leave(*place);
  }
  const bool is_other_width = share.width_percent != place->share.width_percent;
  place->share = share;
  place->account.set_terms(now, {options_.window, share.request_percent, share.limit_percent});
  join(*place, flow_of(instance, share));
  if (is_other_width) places_.step(*place, PlaceEvent::kPassedOver);
  if (is_other_width && places_.step(*place, PlaceEvent::kExpired)) {
    place->until = std::min(place->until, now);
    place->account.shorten(place->until);
    actions.push_back({PlaceAction::Kind::kClose, instance, now});
  }
  go_on(now, actions);
  return {};
}

void Pacer::asks(Instant now, InstanceId instance, std::optional<Instant> due, PlaceActions& actions) {
  Paced* place = places_.find(instance);
  if (place == nullptr) return;
  place->due = due;
  if (place->state == PlaceState::kIdle) {
    place->away = now - place->left;
    end_expectation(now, *place);
  }
  if (!places_.step(*place, PlaceEvent::kAsks)) return;
  if (!is_revoked(place->state)) {
    if (!place->contends) place->asked = now;
    contend(*place, true);
    if (place->rested) place->least_credit = std::max(place->account.credit(now), Duration(0));
    place->rested = false;
  }
  go_on(now, actions);
}

void Pacer::idle(Instant now, InstanceId instance, PlaceActions& actions) {
  Paced* place = places_.find(instance);
  if (place == nullptr) return;
  if (place->state == PlaceState::kOpen) actions.push_back({PlaceAction::Kind::kClose, instance, now});
  release(now, *place, PlaceEvent::kIdle);
  place->rested = true;
  place->is_doubted = false;
  go_on(now, actions);
}

void Pacer::used(Instant now, InstanceId instance, Duration gpu_time) {
  Paced* place = places_.find(instance);
  if (place != nullptr && !place->expected_until) settle(now, *place, gpu_time);
}

void Pacer::drained(Instant now, InstanceId instance, PlaceActions& actions) {
  Paced* place = places_.find(instance);
  if (place == nullptr) return;
  if (place->state == PlaceState::kOpen) {  // its gate closed before the tick came
    if (place->until > now) actions.push_back({PlaceAction::Kind::kClose, instance, now});
    places_.step(*place, PlaceEvent::kExpired);
  }
  if (drains(*place)) frame_.drained_after(now - place->until);
  release(now, *place, PlaceEvent::kDrained);
  place->is_doubted = false;
  go_on(now, actions);
}

void Pacer::gone(Instant now, InstanceId instance, PlaceActions& actions) {
  Paced* place = places_.find(instance);
  if (place == nullptr) return;
  settle(now, *place, Duration::max());
  leave(*place);
  places_.erase(*place);
  go_on(now, actions);
}

void Pacer::tick(Instant now, PlaceActions& actions) {
  judge_late(now, actions);
  for (const auto& place : places_) {
    if (place->expected_until && *place->expected_until <= now) end_expectation(now, *place);
  }
  if (frame_end_ && *frame_end_ <= now) begin_frame(now, actions);
  go_on(now, actions);
}

std::optional<Instant> Pacer::next_tick() const {
  std::optional<Instant> next = frame_end_;
  const auto also = [&](std::optional<Instant> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const auto& place : places_) {
    also(place_deadline(*place, options_));
    also(place->expected_until);
  }
  return next;
}

std::optional<PlaceState> Pacer::state_of(InstanceId instance) const {
  const Paced* place = places_.find(instance);
  if (place == nullptr) return std::nullopt;
  return place->state;
}

int Pacer::width_reserved() const {
  int width = 0;
  for (const auto& place : places_) {
    if (place->state == PlaceState::kChosen) width += place->share.width_percent;
    if (place->state == PlaceState::kOpen) width += place->width;
  }
  return width;
}

std::optional<Pacer::View> Pacer::view(Instant now, InstanceId instance) {
  Paced* place = places_.find(instance);
  if (place == nullptr) return std::nullopt;
  return View{place->account.credit(now), place->account.entitled(), place->flow->time};
}

// ---- flows

void Pacer::join(Paced& place, FlowId flow) {
  place.flow = &flows_.try_emplace(flow, Flow{.time = clock_}).first->second;
  ++place.flow->places;
  if (place.contends) {
    place.contends = false;
    contend(place, true);
  }
}

void Pacer::leave(Paced& place) {
  if (place.contends) --place.flow->contenders;
  if (--place.flow->places == 0) {
    std::erase_if(flows_, [&](const auto& flow) { return &flow.second == place.flow; });
  }
  place.flow = nullptr;
}

void Pacer::contend(Paced& place, bool contends) {
  if (place.contends == contends) return;
  place.contends = contends;
  if (!contends) {
    --place.flow->contenders;
  } else if (place.flow->contenders++ == 0) {
    place.flow->time = std::max(place.flow->time, clock_);
  }
}

// ---- places

void Pacer::settle(Instant now, Paced& place, Duration reported) {
  const Duration extra = place.account.settle(now, reported);
  place.flow->time += extra.count() * place.share.width_percent / place.share.weight;
}

void Pacer::release(Instant now, Paced& place, PlaceEvent event) {
  settle(now, place, Duration::max());  // what was held and never reported
  if (!places_.step(place, event)) return;
  place.account.release(now);
  if (waits(place)) {
    place.asked = now;
    contend(place, true);  // who was revoked did not
  } else {
    contend(place, false);
    expect(now, place);
  }
}

// What is kept is paid for as if it were used: who comes back again and again and does nothing keeps no more than its request.
void Pacer::expect(Instant now, Paced& place) {
  place.left = now;
  if (place.state != PlaceState::kIdle || place.away > kReturns) return;
  if (!has_claim(now, place) || !place.account.is_below_limit(now)) return;
  place.expected_until = now + std::min(2 * place.away, kReturns);
  place.account.hold(now, Grant::kEntitled, *place.expected_until);
}

void Pacer::end_expectation(Instant now, Paced& place) {
  if (!std::exchange(place.expected_until, std::nullopt)) return;
  settle(now, place, Duration::max());
  place.account.release(now);
}

int Pacer::width_expected(Instant now) const {
  int width = 0;
  for (const auto& place : places_) {
    if (place->expected_until && *place->expected_until > now) width += place->share.width_percent;
  }
  return width;
}

void Pacer::open(Instant now, Paced& place, Grant grant, PlaceActions& actions) {
  places_.step(place, PlaceEvent::kOpened);
  place.until = *frame_end_;
  place.account.hold(now, grant, place.until);
  actions.push_back({PlaceAction::Kind::kOpen, place.id, place.until});
}

// What follows from any change: a frame begins where somebody asks and none runs, and free room is given out.
void Pacer::go_on(Instant now, PlaceActions& actions) {
  if (!frame_end_) begin_frame(now, actions);
  if (!frame_end_ || *frame_end_ <= now) return;  // the tick is due, and decides
  for (const Grant grant : {Grant::kEntitled, Grant::kExtra}) {
    for (const auto& place : places_) {
      if (place->state != PlaceState::kChosen || place->grant != grant) continue;
      if (place->share.width_percent <= places_.room()) open(now, *place, grant, actions);
    }
  }
  if (*frame_end_ - now >= frame_.length() / kWorthwhile) backfill(now, actions);
}

void Pacer::backfill(Instant now, PlaceActions& actions) {
  int hole = kWholeDevice - width_reserved();
  const int expected = width_expected(now);
  const auto fits = [&](Paced& place) {
    const int kept = has_claim(now, place) ? 0 : expected;
    return place.state == PlaceState::kAsks && place.share.width_percent <= std::min(hole, places_.room()) - kept;
  };
  while (true) {
    Paced* next = nullptr;
    std::int64_t heaviest = 0;
    for (const auto& place : places_) {
      if (!fits(*place) || !place->account.is_below_limit(now)) continue;
      const std::int64_t weight = weight_of(now, *place);
      const bool is_next = next == nullptr || weight > heaviest ||
                           (weight == heaviest && weight == 0 && place->flow->time < next->flow->time);
      if (!is_next) continue;
      next = place.get();
      heaviest = weight;
    }
    if (next == nullptr) return;
    hole -= next->share.width_percent;
    open(now, *next, heaviest > 0 ? Grant::kEntitled : Grant::kExtra, actions);
  }
}

void Pacer::judge_late(Instant now, PlaceActions& actions) {
  for (const auto& place : places_) {
    const auto late = place_deadline(*place, options_);
    if (!late || *late > now) continue;
    if (is_revoked(place->state)) {
      release(now, *place, PlaceEvent::kForgiven);
      continue;
    }
    settle(now, *place, Duration::max());  // and held on, for the account: its kernels may run
    places_.step(*place, PlaceEvent::kRevoked);
    contend(*place, false);
    place->is_doubted = true;
    place->until = now + options_.again_after;
    actions.push_back({PlaceAction::Kind::kRevoke, place->id, now});
  }
}

// ---- frames

void Pacer::begin_frame(Instant now, PlaceActions& actions) {
  const bool has_work = std::any_of(places_.begin(), places_.end(), [](const auto& place) {
    return waits(*place) || place->state == PlaceState::kOpen;
  });
  frame_end_.reset();
  if (!has_work) return;
  const Set set = choose(now);
  frame_end_ = now + frame_.length();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Paced& place = places_[i];
    const bool is_chosen = (set.chosen & bit(i)) != 0;
    place.grant = (set.entitled & bit(i)) != 0 ? Grant::kEntitled : Grant::kExtra;
    if (is_chosen && place.state == PlaceState::kOpen) {
      open(now, place, place.grant, actions);
    } else if (is_chosen) {
      places_.step(place, PlaceEvent::kChosen);
    } else {
      places_.step(place, PlaceEvent::kPassedOver);
      places_.step(place, PlaceEvent::kExpired);
    }
  }
  move_clock(set);
}

Pacer::Set Pacer::choose(Instant now) {
  int room = kWholeDevice;
  const int expected = width_expected(now);
  std::vector<FrameClaim> claims;
  std::vector<std::size_t> others;  // by turn
  std::uint64_t pressing = 0;
  std::int64_t most_served = std::numeric_limits<std::int64_t>::min();
  count_untold(now);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Paced& place = places_[i];
    if (drains(place)) room -= place.width;
    if ((!waits(place) && place.state != PlaceState::kOpen) || !place.account.is_below_limit(now)) continue;
    if (has_claim(now, place)) {
      claims.push_back({i, place.share.width_percent, weight_of(now, place)});
      if (is_pressing(now, place)) pressing |= bit(i);
    } else {
      others.push_back(i);
    }
    most_served = std::max(most_served, turn_of(*place.flow));
  }
  // Who has waited for too long, longest first; then by virtual time.
  const auto turn = [&](std::size_t who) {
    const Instant asked = places_[who].state == PlaceState::kOpen ? now : places_[who].asked;
    return std::tuple(std::min(asked, now - options_.patience), turn_of(*places_[who].flow), who);
  };
  std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) { return turn(a) < turn(b); });
  const auto choice = [&](std::uint64_t entitled, std::uint64_t first) {
    Set set{.chosen = entitled | first, .entitled = entitled};
    int rest = room - expected;
    for (std::size_t i = 0; i < places_.size(); ++i)
      rest -= (set.chosen & bit(i)) != 0 ? places_[i].share.width_percent : 0;
    for (const std::size_t who : others) {
      const int width = places_[who].share.width_percent;
      if (width > rest || (set.chosen & bit(who)) != 0) continue;
      set.chosen |= bit(who);
      rest -= width;
    }
    return set;
  };

  const Set set = choice(heaviest_set(claims, room), 0);
  if (others.empty() || (set.chosen & bit(others.front())) != 0) return set;
  const Paced& first = places_[others.front()];
  const int width = first.share.width_percent;
  if (width > room || !may_go_first(now, first, most_served)) return set;
  const std::uint64_t beside = heaviest_set(claims, room - width);
  return (pressing & ~beside) == 0 ? choice(beside, bit(others.front())) : set;
}

void Pacer::count_untold(Instant now) {
  for (auto& [id, flow] : flows_) flow.untold = 0;
  for (const auto& place : places_) {
    place->flow->untold += place->account.held_extra(now).count() * place->share.width_percent / place->share.weight;
  }
}

std::int64_t Pacer::turn_of(const Flow& flow) const {
  return flow.time + std::max<std::int64_t>(0, flow.untold - options_.over_run.count() * kWholeDevice);
}

bool Pacer::has_claim(Instant now, Paced& place) const {
  return place.share.request_percent > 0 && place.account.credit(now) > Duration(0);
}

std::int64_t Pacer::weight_of(Instant now, Paced& place) const {
  if (!has_claim(now, place)) return 0;
  return claim_weight({.credit = place.account.credit(now),
                       .request_percent = place.share.request_percent,
                       .is_open = place.state == PlaceState::kOpen,
                       .is_urgent = place.due && *place.due <= now + 2 * frame_.length()});
}

// Whether it could be late if it had to wait for another frame: its work, or what it is promised while it has work.
bool Pacer::is_pressing(Instant now, Paced& place) const {
  const Duration credit = place.account.credit(now);
  place.least_credit = std::max(std::min(place.least_credit, credit), Duration(0));
  if (place.due && *place.due <= now + 2 * frame_.length()) return true;
  return credit - place.least_credit >
         2 * frame_.length() + options_.window / 100 * place.share.request_percent / kLagParts;
}

bool Pacer::may_go_first(Instant now, const Paced& place, std::int64_t most_served) const {
  const bool is_behind = most_served - turn_of(*place.flow) >= options_.over_run.count() * kWholeDevice;
  return is_behind || (waits(place) && now - place.asked >= options_.patience);
}

// Nobody saves up service that its width, or its credit, leaves no use for.
void Pacer::move_clock(const Set& set) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t least_waiting = kNone, most_served = std::numeric_limits<std::int64_t>::min();
  const auto contends = [&](std::size_t i) { return places_[i].contends; };
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!contends(i)) continue;
    most_served = std::max(most_served, places_[i].flow->time);
    const bool is_left = waits(places_[i]) && (set.chosen & bit(i)) == 0;
    if (is_left) least_waiting = std::min(least_waiting, places_[i].flow->time);
  }
  const std::int64_t reference = least_waiting == kNone ? most_served : least_waiting;
  std::int64_t least = kNone;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!contends(i)) continue;
    Flow& flow = *places_[i].flow;
    if ((set.chosen & bit(i)) != 0) {
      const std::int64_t lead = (set.entitled & bit(i)) != 0 ? 0 : options_.over_run.count() * kWholeDevice;
      flow.time = std::max(flow.time, reference - lead);
    }
    least = std::min(least, flow.time);
  }
  if (least != kNone) clock_ = std::max(clock_, least);
}

}  // namespace fairlead
