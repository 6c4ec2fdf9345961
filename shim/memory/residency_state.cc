#include "shim/memory/residency_state.h"

namespace fairlead::shim::memory {
namespace {

using enum RegionAction;

RegionStep refuse(RegionState state) {
  return {state, kRefuse};
}

// Arrived: there it stays, unless it was freed meanwhile.
RegionStep arrive(RegionState state, Residency residency, RegionAction action) {
  state.residency = state.freed ? Residency::kGone : residency;
  return {state, state.freed ? kDispose : action};
}

RegionStep from_resident(RegionState state, RegionEvent event) {
  if (event != RegionEvent::kLeave || state.fixed) return refuse(state);
  state.residency = Residency::kLeaving;
  return {state, kCopyOut};
}

RegionStep from_leaving(RegionState state, RegionEvent event) {
  switch (event) {
    case RegionEvent::kCopied: return {state, kUnmap};
    case RegionEvent::kUnmapped: state.mapped = false; return arrive(state, Residency::kAway, kNone);
    case RegionEvent::kFailed: return arrive(state, Residency::kResident, kGiveStaging);
    default: return refuse(state);
  }
}

RegionStep from_away(RegionState state, RegionEvent event) {
  if (event != RegionEvent::kReturn) return refuse(state);
  state.residency = Residency::kReturning;
  return {state, kMap};
}

RegionStep from_returning(RegionState state, RegionEvent event) {
  switch (event) {
    case RegionEvent::kMapped:
      state.mapped = true;
      if (!state.empty) return {state, kCopyIn};
      state.empty = false;
      return arrive(state, Residency::kResident, kNone);
    case RegionEvent::kCopied: return arrive(state, Residency::kResident, kGiveStaging);
    case RegionEvent::kUnmapped: state.mapped = false; return arrive(state, Residency::kAway, kNone);
    case RegionEvent::kFailed:
      if (state.mapped) return {state, kUnmap};
      return arrive(state, Residency::kAway, kNone);
    default: return refuse(state);
  }
}

RegionStep free(RegionState state) {
  if (state.freed || state.residency == Residency::kGone) return refuse(state);
  state.freed = true;
  if (state.moving()) return {state, kNone};
  state.residency = Residency::kGone;
  return {state, kDispose};
}

}  // namespace

RegionStep step(RegionState state, RegionEvent event) {
  if (event == RegionEvent::kFreed) return free(state);
  switch (state.residency) {
    case Residency::kResident: return from_resident(state, event);
    case Residency::kLeaving: return from_leaving(state, event);
    case Residency::kAway: return from_away(state, event);
    case Residency::kReturning: return from_returning(state, event);
    case Residency::kGone: return refuse(state);
  }
  return refuse(state);
}

}  // namespace fairlead::shim::memory
