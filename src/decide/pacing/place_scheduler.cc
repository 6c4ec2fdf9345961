#include "decide/pacing/place_scheduler.h"

#include <fmt/ranges.h>

#include "decide/pacing/pacer.h"
#include "decide/pacing/place_table.h"
#include "decide/pacing/token_scheduler.h"

namespace fairlead {

std::string_view place_state_name(PlaceState state) {
  switch (state) {
    case PlaceState::kIdle: return "idle";
    case PlaceState::kAsks: return "asks";
    case PlaceState::kChosen: return "chosen";
    case PlaceState::kOpen: return "open";
    case PlaceState::kDraining: return "draining";
    case PlaceState::kDrainingAsks: return "draining, asks";
    case PlaceState::kRevoked: return "revoked";
    case PlaceState::kRevokedAsks: return "revoked, asks";
  }
  FL_CHECK(false, "state {}", static_cast<int>(state));
}

bool holds_width(PlaceState state) {
  return state == PlaceState::kOpen || state == PlaceState::kDraining || state == PlaceState::kDrainingAsks;
}

bool is_revoked(PlaceState state) {
  return state == PlaceState::kRevoked || state == PlaceState::kRevokedAsks;
}

std::optional<PlaceState> place_after(PlaceState state, PlaceEvent event) {
  using enum PlaceState;
  const bool drains = state == kDraining || state == kDrainingAsks;
  const bool waits = state == kAsks || state == kChosen;
  switch (event) {
    case PlaceEvent::kAsks:
      if (state == kIdle) return kAsks;
      if (drains) return kDrainingAsks;
      if (state == kRevoked) return kRevokedAsks;
      break;
    case PlaceEvent::kIdle:
      if (state != kIdle) return kIdle;
      break;
    case PlaceEvent::kChosen:
      if (state == kAsks) return kChosen;
      break;
    case PlaceEvent::kPassedOver:
      if (state == kChosen) return kAsks;
      break;
    case PlaceEvent::kOpened:
      if (waits || state == kOpen) return kOpen;
      break;
    case PlaceEvent::kExpired:
      if (state == kOpen) return kDraining;
      break;
    case PlaceEvent::kDrained:
      if (state == kDrainingAsks || state == kRevokedAsks) return kAsks;
      if (state == kDraining || state == kRevoked) return kIdle;
      break;
    case PlaceEvent::kRevoked:
      if (state == kDraining) return kRevoked;
      if (state == kDrainingAsks) return kRevokedAsks;
      break;
    case PlaceEvent::kForgiven:
      if (state == kRevokedAsks) return kAsks;
      if (state == kRevoked) return kIdle;
      break;
  }
  return std::nullopt;
}

std::vector<std::string_view> place_scheduler_names() {
  return {"pacer", "paper", "backfill", "one"};
}

Result<std::unique_ptr<PlaceScheduler>> make_place_scheduler(std::string_view name, const PlaceOptions& options) {
  constexpr Duration kLeastFrame = std::chrono::microseconds(10);
  if (options.shortest_frame < kLeastFrame || options.shortest_frame > options.longest_frame) {
    return fail(Errc::kInvalidArgument, "the shortest frame is {} us, it must be {} to the longest, {}",
                to_us(options.shortest_frame), to_us(kLeastFrame), to_us(options.longest_frame));
  }
  if (options.window < 10 * options.longest_frame) {
    return fail(Errc::kInvalidArgument, "the window is {} us, it must be at least 10 of the longest frames, {}",
                to_us(options.window), to_us(10 * options.longest_frame));
  }
  if (name == "pacer") return std::make_unique<Pacer>(options);
  if (name == "paper") return std::make_unique<TokenScheduler>(TokenRule::kHeadFirst, options);
  if (name == "backfill") return std::make_unique<TokenScheduler>(TokenRule::kBackfill, options);
  if (name == "one") return std::make_unique<TokenScheduler>(TokenRule::kOneAtATime, options);
  return fail(Errc::kInvalidArgument, "scheduler is \"{}\", it must be one of {}", name,
              fmt::join(place_scheduler_names(), ", "));
}

}  // namespace fairlead
