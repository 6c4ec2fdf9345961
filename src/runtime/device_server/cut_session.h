// A session whose calls take long is registered again, with modules in which its kernels have twins (gpu/fence/block_ranges.h): with a
// new name and a file of its own such a module is fenced, tried and loaded as any other. What cannot be cut is named in the log, once.
//
//   kernels a (10,000 blocks), b (80 blocks) of module m     ->     m with a__cut_blocks: b has no more blocks than the device holds
//
// Threads: the device server's loop. It reads the modules' text, as the verifier does.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/kernel_task.h"
#include "wire/device_frames.h"

namespace fairlead {

struct CutSession {
  wire::RegisterSession frame;
  std::vector<UniqueFd> files;  // which the frame names
  std::vector<bool> twins;      // by kernel
};

// images[m]: of the task's module m, as frame.modules[m] says. at_once[k]: how many blocks of kernel k the device holds together.
// kNotFound: no kernel of it can be cut, and why.
Result<CutSession> cut_session(const wire::RegisterSession& frame, const std::vector<UniqueFd>& images,
                               const KernelTask& task, const std::vector<std::uint64_t>& at_once,
                               std::uint32_t architecture);

}  // namespace fairlead
