// The instances of one device by id, the states of their places, and the widths that are held.
//
// Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "decide/pacing/place_scheduler.h"

namespace fairlead {

enum class PlaceEvent : std::uint8_t {
  kAsks,
  kIdle,
  kChosen,
  kPassedOver,
  kOpened,
  kExpired,
  kDrained,
  kRevoked,
  kForgiven,  // long enough after it was revoked
};
// What the state becomes; empty: the event means nothing in it.
std::optional<PlaceState> place_after(PlaceState state, PlaceEvent event);

struct Place {
  InstanceId id;
  PacedShare share;
  PlaceState state = PlaceState::kIdle;
  int width = 0;            // that is held: the share's when the place was opened
  Instant until;            // of an open or draining place; of a revoked one, when it is forgiven
  bool is_doubted = false;  // it was revoked, and has not drained since
  std::optional<Instant> due;
  Instant asked;  // when it began to ask without a place
};

// When the place is revoked where it drains, or forgiven where it was revoked; none: neither.
inline std::optional<Instant> place_deadline(const Place& place, const PlaceOptions& options) {
  if (place.state == PlaceState::kDraining || place.state == PlaceState::kDrainingAsks) {
    return place.until +
           (place.is_doubted ? std::min(options.drain_limit, options.second_drain_limit) : options.drain_limit);
  }
  if (is_revoked(place.state)) return place.until;
  return std::nullopt;
}

// P derives from Place.
template <typename P>
class PlaceTable {
 public:
  P* find(InstanceId id) {
    const auto at = position(id);
    return at != places_.end() && (*at)->id == id ? at->get() : nullptr;
  }
  const P* find(InstanceId id) const { return const_cast<PlaceTable*>(this)->find(id); }
  P& add(InstanceId id) {
    auto made = std::make_unique<P>();
    made->id = id;
    return **places_.insert(position(id), std::move(made));
  }
  void erase(P& place) {
    held_ -= place.width;
    places_.erase(position(place.id));
  }
  std::size_t size() const { return places_.size(); }
  P& operator[](std::size_t index) { return *places_[index]; }  // in order of id
  auto begin() const { return places_.begin(); }                // of std::unique_ptr<P>, by id
  auto end() const { return places_.end(); }

  // False: the event means nothing in the place's state.
  bool step(P& place, PlaceEvent event) {
    const auto after = place_after(place.state, event);
    if (!after) return false;
    place.state = *after;
    const int width = !holds_width(*after)                               ? 0
                      : event == PlaceEvent::kOpened && place.width == 0 ? place.share.width_percent
                                                                         : place.width;
    held_ += width - place.width;
    place.width = width;
    FL_CHECK(held_ >= 0 && held_ <= kWholeDevice, "{} % of the SMs are held", held_);
    return true;
  }
  int held() const { return held_; }
  int room() const { return kWholeDevice - held_; }

 private:
  auto position(InstanceId id) {
    return std::lower_bound(places_.begin(), places_.end(), id,
                            [](const std::unique_ptr<P>& place, InstanceId wanted) { return place->id < wanted; });
  }

  std::vector<std::unique_ptr<P>> places_;  // few, and in order
  int held_ = 0;
};

}  // namespace fairlead
