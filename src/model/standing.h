// Where a flow stands between its queue and the GPU: what it has to run on, and what keeps it from running. Queueing is
// told both, placement knows the second, core carries them between the two.
#pragma once

namespace fairlead {

// What a flow has to run on. The core tells it where instances start ahead of the choice (CoreOptions::starts_per_gpu);
// elsewhere nobody tells, and every flow counts as ready: a dispatch that needs a start does the start itself.
enum class Supply {
  kReady,     // an instance of the flow has started, free or busy
  kStarting,  // none has, and one starts
  kNone,
  kSeats,  // its instances are all in seats (FlowSpec::seats): it waits for nobody's slot, and is never chosen, only seated
};

// Why a flow cannot run, or cannot start an instance, right now. Whether it holds others back follows from it: work that
// runs can be waited for by letting no more of it in; a start is waited for by nobody but its own flow.
enum class Obstacle {
  kNothing,  // it can
  kMemory,   // what runs has the device memory that it needs; less of that, and it fits
  kStarts,   // instances that start, or that wait for their first invocation, have the memory or the place
  kItself,   // its own instance is busy, or starts, and is there sooner than another start would end
  kSlots,    // its free instance is on a GPU whose slots are taken
};

}  // namespace fairlead
