// Runs cases: in this process one after the other on the first device, or, where a case leaves its context unusable, in a
// process of its own. On hardware a fault ruins the whole process, so after an unexpected one all others run alone, too; a
// crash or a hang is survived by those that run alone only.
#pragma once

#include <string>

#include "abi/cuda.h"
#include "softgpu/conformance/case.h"

namespace softgpu::conformance {

// Makes the primary context of the first device current on this thread.
CUresult use_first_device();

class Runner {
 public:
  // Isolated cases start this program again with `library` and the case's name; with `isolate` all do.
  Runner(std::string library, bool isolate) : library_(std::move(library)), isolate_(isolate) {}

  CaseResult run(const std::string& name, const Case& one);

  // What the started process does: runs the case here and writes the result to `result_fd`.
  static void run_for_parent(const Case& one, int result_fd);

 private:
  std::string library_;
  bool isolate_;
};

}  // namespace softgpu::conformance
