#include "decide/pacing/token_scheduler.h"

namespace fairlead {

Status TokenScheduler::set_share(Instant now, InstanceId instance, const PacedShare& share, PlaceActions& actions) {
  if (Status sound = check(share); !sound) return sound;
  Holder* holder = places_.find(instance);
  if (holder == nullptr && places_.size() == kMostPlaces) {
    return fail(Errc::kResourceExhausted, "instances of the device are {}, {} is the most", places_.size(),
                kMostPlaces);
  }
  if (holder == nullptr) holder = &places_.add(instance);
  if (share.width_percent != holder->share.width_percent && places_.step(*holder, PlaceEvent::kExpired)) {
    holder->until = std::min(holder->until, now);
    holder->account.shorten(holder->until);
    actions.push_back({PlaceAction::Kind::kClose, instance, now});
  }
  holder->share = share;
  grant(now, actions);
  return {};
}

void TokenScheduler::asks(Instant now, InstanceId instance, std::optional<Instant> due, PlaceActions& actions) {
  Holder* holder = places_.find(instance);
  if (holder == nullptr) return;
  holder->due = due;
  if (places_.step(*holder, PlaceEvent::kAsks)) grant(now, actions);
}

void TokenScheduler::idle(Instant now, InstanceId instance, PlaceActions& actions) {
  Holder* holder = places_.find(instance);
  if (holder == nullptr) return;
  settle(now, *holder, Duration::max());
  if (holder->state == PlaceState::kOpen) actions.push_back({PlaceAction::Kind::kClose, instance, now});
  places_.step(*holder, PlaceEvent::kIdle);
  holder->is_doubted = false;
  holder->account.release(now);
  grant(now, actions);
}

void TokenScheduler::used(Instant now, InstanceId instance, Duration gpu_time) {
  if (Holder* holder = places_.find(instance)) settle(now, *holder, gpu_time);
}

void TokenScheduler::drained(Instant now, InstanceId instance, PlaceActions& actions) {
  Holder* holder = places_.find(instance);
  if (holder == nullptr) return;
  settle(now, *holder, Duration::max());
  if (holder->state == PlaceState::kOpen) {
    if (holder->until > now) actions.push_back({PlaceAction::Kind::kClose, instance, now});
    places_.step(*holder, PlaceEvent::kExpired);
  }
  if (places_.step(*holder, PlaceEvent::kDrained)) holder->account.release(now);
  holder->is_doubted = false;
  grant(now, actions);
}

void TokenScheduler::gone(Instant now, InstanceId instance, PlaceActions& actions) {
  Holder* holder = places_.find(instance);
  if (holder == nullptr) return;
  places_.erase(*holder);
  grant(now, actions);
}

void TokenScheduler::tick(Instant now, PlaceActions& actions) {
  for (const auto& holder : places_) {
    if (holder->state == PlaceState::kOpen && holder->until <= now) places_.step(*holder, PlaceEvent::kExpired);
    const auto late = place_deadline(*holder, options_);
    if (!late || *late > now) continue;
    settle(now, *holder, Duration::max());
    if (places_.step(*holder, PlaceEvent::kForgiven)) {
      holder->account.release(now);
      continue;
    }
    places_.step(*holder, PlaceEvent::kRevoked);
    holder->is_doubted = true;
    holder->until = now + options_.again_after;
    actions.push_back({PlaceAction::Kind::kRevoke, holder->id, now});
  }
  if (now - window_ >= options_.window) {
    for (const auto& holder : places_) {
      settle(now, *holder, Duration::max());
      holder->used = Duration(0);
    }
    window_ = now - (now - window_) % options_.window;
  }
  grant(now, actions);
}

std::optional<Instant> TokenScheduler::next_tick() const {
  std::optional<Instant> next;
  const auto consider = [&](Instant at) {
    if (!next || at < *next) next = at;
  };
  for (const auto& holder : places_) {
    if (holder->state == PlaceState::kOpen) consider(holder->until);
    if (const auto late = place_deadline(*holder, options_)) consider(*late);
    if (holder->state == PlaceState::kAsks && !may_ask(*holder)) consider(window_ + options_.window);
  }
  return next;
}

std::optional<PlaceState> TokenScheduler::state_of(InstanceId instance) const {
  const Holder* holder = places_.find(instance);
  if (holder == nullptr) return std::nullopt;
  return holder->state;
}

Duration TokenScheduler::missing(const Holder& holder) const {
  return options_.window / 100 * holder.share.request_percent - holder.used;
}

bool TokenScheduler::may_ask(const Holder& holder) const {
  return holder.used < options_.window / 100 * holder.share.limit_percent;
}

void TokenScheduler::settle(Instant now, Holder& holder, Duration reported) {
  const Duration held = holder.account.held(now);
  holder.account.settle(now, reported);
  holder.used += std::clamp(reported, held / 10, held);
}

void TokenScheduler::grant(Instant now, PlaceActions& actions) {
  std::vector<Holder*> queue;
  for (const auto& holder : places_) {
    if (holder->state == PlaceState::kAsks && may_ask(*holder)) queue.push_back(holder.get());
  }
  std::stable_sort(queue.begin(), queue.end(),
                   [&](const Holder* a, const Holder* b) { return missing(*a) > missing(*b); });
  for (Holder* holder : queue) {
    const int needs = rule_ == TokenRule::kOneAtATime ? kWholeDevice : holder->share.width_percent;
    if (needs > places_.room() || (rule_ == TokenRule::kOneAtATime && places_.held() > 0)) {
      if (rule_ == TokenRule::kBackfill) continue;
      return;
    }
    places_.step(*holder, PlaceEvent::kOpened);
    holder->until = now + options_.shortest_frame;
    holder->account.hold(now, Grant::kExtra, holder->until);
    actions.push_back({PlaceAction::Kind::kOpen, holder->id, holder->until});
  }
}

}  // namespace fairlead
