// One region's way out of the device and back: what to do next, given what has happened. Pure: no driver, no clock.
//
//   resident ──kLeave──> leaving ──kCopied──> leaving ──kUnmapped──> away
//       ^                   │ kFailed: the device still has everything    │ kReturn
//       └───────────────────┘                                            v
//   resident <──kCopied── returning <──kMapped── returning  (kFailed: the host still has everything, away again)
//
// The contents are whole in one place at any moment: memory is unmapped only after its copy is complete, and the copy is
// given up only after its memory is. A region that is freed on the way is told so, finishes its step, and goes.
#pragma once

#include <cstdint>

namespace fairlead::shim::memory {

enum class Residency : std::uint8_t { kResident, kLeaving, kAway, kReturning, kGone };

struct RegionState {
  Residency residency = Residency::kResident;
  bool fixed = false;  // never leaves
  bool empty = false;  // away, and was never on the device: there are no contents to keep
  bool freed = false;  // goes as soon as its step is done
  bool mapped = true;  // has device memory

  bool moving() const { return residency == Residency::kLeaving || residency == Residency::kReturning; }
};

enum class RegionEvent : std::uint8_t {
  kLeave,     // it shall make room
  kReturn,    // it shall come back
  kCopied,    // the copy is complete
  kMapped,    // it has device memory under its address again
  kUnmapped,  // it has not any more
  kFailed,    // the step asked for did not happen
  kFreed,     // the program has freed it
};

enum class RegionAction : std::uint8_t {
  kNone,
  kCopyOut,      // to staging
  kUnmap,        // and release the memory
  kMap,          // memory under the same address, with everyone's access
  kCopyIn,       // from staging
  kGiveStaging,  // the copy is of no use any more
  kDispose,      // give back memory, staging and address, whichever it has
  kRefuse,       // the event means nothing here; nothing has changed
};

struct RegionStep {
  RegionState state;
  RegionAction action = RegionAction::kNone;
};

RegionStep step(RegionState state, RegionEvent event);

}  // namespace fairlead::shim::memory
