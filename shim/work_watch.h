// A thread that learns of the end of work that the program does not wait for (gpu_time.h). It looks as long as a context
// is busy: after a tenth of a millisecond at first, then after a sixteenth of the busy time so far, at most a millisecond.
// With nothing to watch it sleeps, and a launch on an idle device wakes it.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace fairlead::shim {

// A context has become busy.
void watch_work();

// How long until the next look at work that began `age_ns` ago.
std::uint64_t watch_period_ns(std::uint64_t age_ns);

// In the child of a fork: the thread is not there.
void forget_watch();

}  // namespace fairlead::shim
