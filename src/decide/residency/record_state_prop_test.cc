// The state under events in any order, against a flag for each fact.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "decide/residency/record_state.h"

namespace fairlead {
namespace {

using enum RecordEvent;
using Motion = RecordState::Motion;
using WayBack = RecordState::WayBack;

// Nothing here knows which of them go together.
struct Flags {
  bool starts = true, runs = true, stopping = false, sample_due = false, reported = false;
  bool out = false, in = false, stuck_out = false, stuck_in = false, full = false, doubted = false;
  bool wanted = false, served = false, prefetched = false;

  void happens(RecordEvent event) {
    switch (event) {
      case kReady: starts = false; break;
      case kChosen: runs = true, sample_due = stuck_out = wanted = served = prefetched = false; break;
      case kRested: runs = false, sample_due = true; break;
      case kUnused: runs = false; break;
      case kStopped: *this = {.starts = false, .runs = false, .stopping = true, .reported = reported}; break;
      case kReported: reported = true, sample_due = stuck_in = false; break;
      case kWants:
      case kDoubts:
        stuck_in = full = false;
        doubted = event == kDoubts && reported && !out && !in;
        if (!runs) wanted = true;
        break;
      case kSatisfied: wanted = false; break;
      case kLeaves: out = true, doubted = prefetched = false; break;
      case kReturnsAhead: prefetched = true; [[fallthrough]];
      case kReturns: in = true, doubted = full = false; break;
      case kLeft: out = false; break;
      case kNotLeft: out = false, stuck_out = true; break;
      case kReturned: in = false, served = wanted, wanted = false; break;
      case kFull: in = false, full = true; break;
      case kFailed: in = false, stuck_in = true; break;
      case kCutShort: in = false; break;
    }
  }
  bool agree_with(const RecordState& state) const {
    return starts == state.starts() && runs == state.runs() && (!runs && !stopping) == state.idle() &&
           stopping == state.stopping() && sample_due == state.sample_due() && reported == state.reported() &&
           out == (state.motion() == Motion::kLeaving) && in == (state.motion() == Motion::kReturning) &&
           stuck_out == state.unmovable() && stuck_in == (state.way_back() == WayBack::kFailed) &&
           full == (state.way_back() == WayBack::kFull) && doubted == (state.way_back() == WayBack::kDoubted) &&
           wanted == state.wants() && served == state.was_served() && prefetched == state.prefetched();
  }
};

RC_GTEST_PROP(RecordStateProperty, NoSequenceOfEventsLeavesTheLegalStates, ()) {
  RecordState state;
  Flags flags;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    // Most things that happen are no stop, so that there is a life before it.
    auto event = static_cast<RecordEvent>(*rc::gen::inRange(0, kRecordEvents));
    if (event == kStopped && *rc::gen::inRange(0, 20) != 0) event = kReported;
    const auto next = step(state, event);
    if (!next) {
      ++refused;
      continue;
    }
    RC_ASSERT(!state.stopping());
    flags.happens(event);
    RC_ASSERT(next->is_legal());
    RC_ASSERT(flags.agree_with(*next));
    RC_ASSERT(!(next->motion() == Motion::kLeaving && next->motion() != state.motion()) || state.idle());
    state = *next;
  }
  RC_CLASSIFY(refused > 100);
}

}  // namespace
}  // namespace fairlead
