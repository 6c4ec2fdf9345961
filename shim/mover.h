// The thread that moves memory when the node says so, one order after the other (memory.h: the moves have one caller).
//
// Threads: any.
#pragma once

#include <cstdint>

#include "wire/shim_frames.h"

namespace fairlead::shim {

// Where a move's answer goes.
using MoveAnswer = void (*)(const wire::Moved& moved);

// Carries out kSwapOut or kSwapIn after the orders before it; answers kBusy at once when too many wait.
void order_move(const wire::Frame& order, MoveAnswer answer);
// There is no node: everything comes back, tried again until it has or the node is there again.
void order_return();
void stop_return();

bool memory_moves();
// In the child of a fork.
void forget_moves();

// A thread of the shim in the host: signals blocked, named, small. False: the system refuses.
bool start_thread(const char* name, void* (*body)(void*));

}  // namespace fairlead::shim
