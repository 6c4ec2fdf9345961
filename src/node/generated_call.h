// A call of a kernel task that nobody wrote, to measure the task with: all of its inputs are there, of the right size and with harmless
// contents. A kernel computes nothing for anybody but itself, so calling it changes nothing.
//
// Example: x (input, f32, [4096]), i (input, s32, [16])  ──>  4096 times 0.5, 16 times 0. Whole numbers may be indices, and 0 is one of
// everything; a half is no factor that makes numbers grow, and none that makes them vanish at once.
//
// Where the time of a call depends on what is in its inputs, its author has samples (tag gpu:samples, --sample) that tell more.
//
// Threads: free functions, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "model/kernel_task.h"

namespace fairlead {

// In binary (wire/kernel_task_codec.h). kTooLarge: the inputs are more than a payload may have, or what is answered inline is more than an
// answer may have; with what to do.
Result<std::string> generated_call(const KernelTask& task);

}  // namespace fairlead
