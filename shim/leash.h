// The leash: a closed gate stops launches, not what was launched, and programs launch hundreds of kernels ahead. So where the node says that
// others may want the device (wire::kPaceLeash), a launch waits while 0.4 ms of its stream's work, as estimated, are in flight
// (leash_book.h). Without that word nothing of this runs.
//
// Graphs are one piece each, however long. What is put on a stream while another is under capture passes, as do copies. A piece that runs
// for much longer than it did before (a kernel that waits for the host) is not waited for without end: after 20 ms and four times the
// estimate nothing of the stream's counts any more, and that is counted as passed through.
//
// Threads: any.
#pragma once

#include "abi/cuda_types.h"
#include "shim/gate.h"

namespace fairlead::shim {

inline bool has_leash() {
  return (page().pace.load(std::memory_order_relaxed) & wire::kPaceLeash) != 0;
}

// Before a launch of the piece `key` on the stream: may wait, outside the gate; then the gate is passed again. True: leash_launched()
// follows the launch.
bool leash_launch(ThreadSlot* slot, CUstream stream, std::uint64_t key);
void leash_launched(CUstream stream);

// All work of the context has ended.
void leash_let_go(CUcontext context);
// The context is being destroyed, and its events with it.
void leash_forget(CUcontext context);
// In the child of a fork.
void leash_forget_all();

}  // namespace fairlead::shim
