#include "decide/placement/instance_life.h"

namespace fairlead {

bool InstanceLife::is_legal() const {
  // Only what has something bound has anything to load, or to end before it goes.
  if (!holds_slot()) return !loads_ && !retires_;
  // A session is never bound before it is ready, and what is chosen is delivered before anything else happens.
  return !(loads_ && phase_ == Phase::kStarting) && !(retires_ && phase_ == Phase::kChosen);
}

std::string InstanceLife::text() const {
  std::string text(name_of(phase_));
  if (loads_) text += ", loads";
  if (retires_) text += ", retires";
  return text;
}

std::string_view name_of(InstanceLife::Phase phase) {
  constexpr std::string_view kNames[] = {"starting ahead", "preparing", "unused",        "idle",
                                         "returning",      "starting",  "chosen",        "returning, chosen",
                                         "running",        "working",   "working, asked"};
  return kNames[static_cast<int>(phase)];
}

std::string_view name_of(InstanceEvent event) {
  constexpr std::string_view kNames[] = {"prepares",      "ready",     "ready, unawaited", "bound",
                                         "bound to load", "delivered", "loaded",           "answered",
                                         "asked",         "ended",     "retired"};
  return kNames[static_cast<int>(event)];
}

}  // namespace fairlead
