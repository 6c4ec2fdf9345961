// Why slots idle beside queued work, from what the queue asked in the dispatch that left them idle, and who pays for it.
//
// The policy asks about flows in its order, so the first that cannot run, or start, is the one whose turn it is: what keeps it is
// the reason. Example: one slot is free, A is next and its memory does not fit beside B, which runs: kMemory, until B has ended.
//
// A slot that idles because starts hold the memory is paid for by them: each could have started later, or on less.
//
// Threads: the core's.
#pragma once

#include "decide/core/dispatchable.h"
#include "decide/core/idle_slots.h"
#include "decide/core/tables.h"

namespace fairlead {

// REQUIRES: a slot is free and something is queued. `may_start`: an instance might start ahead now.
IdleReason why_slots_idle(const CoreTables& tables, const DispatchAnswers& answers, bool may_start);

// The dispatch at `now` is over: what idles from here on is noted, and what has idled since the one before is charged.
void note_idle_slots(Instant now, CoreTables& tables, const DispatchAnswers& answers, const StartPlanner& planner,
                     IdleSlots& slots);

}  // namespace fairlead
