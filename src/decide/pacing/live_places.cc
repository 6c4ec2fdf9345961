#include "decide/pacing/live_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

constexpr Duration kMostClaimed = std::chrono::hours(24 * 365 * 100);

}  // namespace

Status LivePlaces::set_share(Instant now, InstanceId id, const PacedShare& share) {
  const auto known = instances_.find(id);
  PacedShare terms = share;
  if (known != instances_.end() && known->second.is_disbelieved) terms.request_percent = 0;
  if (Status set = pacer_.set_share(now, id, terms, actions_); !set) return set;
  Instance& instance = instances_[id];
  instance.share = terms;
  if (known == instances_.end() && evaders_.contains(terms.flow)) {
    instance.claim_check.expect_the_worst();
    instance.place_check.expect_the_worst();
  }
  act(now);
  return {};
}

void LivePlaces::remove_instance(Instant now, InstanceId id) {
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  end_place(now, found->second, Duration::max());
  for (const auto& [page, state] : found->second.pages) owners_.erase(page);
  instances_.erase(found);
  pacer_.gone(now, id, actions_);
  act(now);
}

void LivePlaces::add_page(InstanceId id, ProcessPage page) {
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  found->second.pages.try_emplace(page);
  owners_[page] = id;
}

void LivePlaces::remove_page(Instant now, ProcessPage page) {
  const auto owner = owners_.find(page);
  if (owner == owners_.end()) return;
  const InstanceId id = owner->second;
  owners_.erase(owner);
  Instance& instance = instances_.at(id);
  instance.pages.erase(page);
  tell(now, id, instance);
}

void LivePlaces::observe(Instant now, ProcessPage number, const PageReading& reading) {
  const auto owner = owners_.find(number);
  if (owner == owners_.end()) return;
  Instance& instance = instances_.at(owner->second);
  Page& page = instance.pages.at(number);
  if (reading.has_left) return remove_page(now, number);
  page.asks = reading.asks && !reading.is_open;
  if (reading.drained == page.grant && !reading.is_open) page.drained = true;
  // A claim that falls, or grows faster than time, is none.
  const Duration more = std::clamp(reading.gpu_time - page.gpu_time, Duration(0), Duration(std::chrono::hours(1)));
  page.gpu_time = reading.gpu_time;
  // However often it claims however much.
  instance.unreported = std::min(instance.unreported + more, kMostClaimed);
  instance.claimed = std::min(instance.claimed + more, kMostClaimed);
  if (page.is_open && !reading.is_open) page.is_open = false;  // it has no use for the rest, or saw the end first
  if (!page.is_open && reading.is_open) {
    orders_.push_back({PageOrder::Kind::kClose, number, page.grant, now});
    if (++instance.own_gates == kOwnGates) {
      disbelieve(now, owner->second, instance);
      findings_.push_back(
          {owner->second,
           fmt::format("has opened its gate itself {} times; nothing is promised to it any more", kOwnGates)});
    }
  }
}

void LivePlaces::decide(Instant now) {
  for (auto& [id, instance] : instances_) tell(now, id, instance);
  if (const auto tick = pacer_.next_tick(); tick && *tick <= now) pacer_.tick(now, actions_);
  act(now);
  for (auto& [id, instance] : instances_) tell(now, id, instance);  // let in, and nobody is there any more
  for (auto& [id, instance] : instances_) instance.meter.note(now, service(now, instance));
}

// What its pages say together.
void LivePlaces::tell(Instant now, InstanceId id, Instance& instance) {
  const auto any = [&](auto what) {
    return std::any_of(instance.pages.begin(), instance.pages.end(),
                       [&](const auto& page) { return what(page.second); });
  };
  const bool asks = any([](const Page& page) { return page.asks; });
  const bool has_drained = !any([](const Page& page) { return page.is_open || !page.drained; });
  PlaceState state = *pacer_.state_of(id);
  if (has_drained && (holds_width(state) || is_revoked(state))) {
    const Duration told = std::exchange(instance.unreported, Duration(0));
    pacer_.used(now, id, told);
    end_place(now, instance, told);
    asks ? pacer_.drained(now, id, actions_) : pacer_.idle(now, id, actions_);
  } else if (!asks && (state == PlaceState::kAsks || state == PlaceState::kChosen)) {
    pacer_.idle(now, id, actions_);  // whoever asked has gone
  } else if (has_drained && instance.is_doubted) {
    pacer_.drained(now, id, actions_);  // at last, of a place before
  }
  if (has_drained) instance.is_doubted = false;
  state = *pacer_.state_of(id);
  if (!asks) {
    instance.asked.reset();
    return act(now);
  }
  if (!instance.asked) instance.asked = now;
  if (state == PlaceState::kOpen) {
    if (instance.place && instance.place->until > now) open(now, instance, instance.place->until);
  } else if (state == PlaceState::kIdle || state == PlaceState::kDraining || state == PlaceState::kRevoked) {
    pacer_.asks(now, id, std::nullopt, actions_);
  }
  act(now);  // before another is asked: what it says is of the place it has
}

void LivePlaces::act(Instant now) {
  for (const PlaceAction& action : std::exchange(actions_, {})) {
    const auto found = instances_.find(action.instance);
    if (found == instances_.end()) continue;
    Instance& instance = found->second;
    switch (action.kind) {
      case PlaceAction::Kind::kOpen:
        if (!instance.place) {
          instance.place =
              PlaceSpan{.instance = action.instance, .width_percent = instance.share.width_percent, .begin = now};
          instance.claimed_before = instance.claimed;
          instance.unreported = Duration(0);  // told of places before: of one that was revoked and forgiven
        }
        instance.place->until = action.until;
        open(now, instance, action.until);
        break;
      case PlaceAction::Kind::kClose: close(instance); break;
      case PlaceAction::Kind::kRevoke:
        ++instance.revoked;
        instance.is_doubted = true;
        instance.unreported = Duration(0);  // the pacer has charged all of the time
        if (instance.place) instance.place->is_revoked = true;
        end_place(now, instance, Duration::max());
        break;
    }
  }
  close_what_is_over();
}

// A frame that begins ends places without a word.
void LivePlaces::close_what_is_over() {
  for (auto& [id, instance] : instances_) {
    if (pacer_.state_of(id) != PlaceState::kOpen) close(instance);
  }
}

void LivePlaces::open(Instant now, Instance& instance, Instant until) {
  bool let_in = false;
  for (auto& [number, page] : instance.pages) {
    if (page.is_open) {
      orders_.push_back({PageOrder::Kind::kExtend, number, page.grant, until});
    } else if (page.asks) {
      page.is_open = true;
      page.drained = page.asks = false;
      orders_.push_back({PageOrder::Kind::kOpen, number, ++page.grant, until});
      let_in = true;
    }
  }
  if (let_in && instance.asked) instance.waits.add(now - *std::exchange(instance.asked, std::nullopt));
}

void LivePlaces::close(Instance& instance) {
  for (auto& [number, page] : instance.pages) {
    if (!std::exchange(page.is_open, false)) continue;
    orders_.push_back({PageOrder::Kind::kClose, number, page.grant, {}});
  }
}

// Charged as the pacer charges: place_account.h.
void LivePlaces::end_place(Instant now, Instance& instance, Duration told) {
  if (!instance.place) return;
  PlaceSpan span = *std::exchange(instance.place, std::nullopt);
  const Duration held = now - span.begin;
  instance.served += std::clamp(told, held / 10, held);
  instance.held += held;
  span.end = now;
  spans_.push_back(span);
  if (spans_.size() > kSpans) spans_.pop_front();
}

// Time held counts until the instance has told what it used of it.
Duration LivePlaces::service(Instant now, const Instance& instance) {
  return instance.served + (instance.place ? now - instance.place->begin : Duration(0));
}

void LivePlaces::device_says(Instant now, InstanceId id, Duration used) {
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  Instance& instance = found->second;
  // Whoever has a place is charged all of its time until it has told, so that a long kernel is no untruth.
  const Duration in_place = instance.place ? now - instance.place->begin : Duration(0);
  const Duration held = instance.held + in_place;
  const Duration told = std::max(instance.claimed, instance.claimed_before + in_place);
  if (instance.is_doubted) {
    instance.claim_check.skip(now, told, used);
    instance.place_check.skip(now, held, used);
    return;
  }
  using Verdict = ClaimCheck::Verdict;
  const Verdict claim = instance.claim_check.compare(now, told, used);
  const Verdict place = instance.place_check.compare(now, held, used);
  if (claim == Verdict::kDisbelieved || place == Verdict::kDisbelieved) {
    evaders_.insert(instance.share.flow);
    disbelieve(now, id, instance);
    findings_.push_back({id, evasion(instance, claim, used) + "; it is stopped", true});
  } else if (claim == Verdict::kNamed || place == Verdict::kNamed) {
    findings_.push_back({id, evasion(instance, claim, used)});
  }
}

std::string LivePlaces::evasion(const Instance& instance, ClaimCheck::Verdict by_claim, Duration used) {
  if (instance.pages.empty()) {
    return fmt::format("used {:.0f} ms of the device outside of its turns, without the shim", to_ms(used));
  }
  if (by_claim == ClaimCheck::Verdict::kAgrees) {
    return fmt::format("used {:.0f} ms of the device, and had it for {:.0f} ms", to_ms(used), to_ms(instance.held));
  }
  return fmt::format("used {:.0f} ms of the device, as that says, and tells of {:.0f} ms", to_ms(used),
                     to_ms(instance.claimed));
}

void LivePlaces::disbelieve(Instant now, InstanceId id, Instance& instance) {
  instance.is_disbelieved = true;
  PacedShare share = instance.share;
  share.request_percent = 0;
  instance.share = share;
  (void)pacer_.set_share(now, id, share, actions_);  // sound: less is asked for than before
  act(now);
}

std::vector<DeliveredService> LivePlaces::delivered(Instant now) {
  std::vector<DeliveredService> all;
  for (auto& [id, instance] : instances_) {
    instance.meter.note(now, service(now, instance));
    DeliveredService one;
    one.instance = id;
    one.share = instance.share;
    one.state = *pacer_.state_of(id);
    one.last_second = instance.meter.in_last_second(now);
    one.last_minute = instance.meter.in_last_minute(now);
    one.total = instance.meter.total();
    one.credit = pacer_.view(now, id)->credit;
    one.waits = instance.waits;
    one.revoked = instance.revoked;
    one.own_gates = instance.own_gates;
    one.is_disbelieved = instance.is_disbelieved;
    all.push_back(one);
  }
  return all;
}

}  // namespace fairlead
