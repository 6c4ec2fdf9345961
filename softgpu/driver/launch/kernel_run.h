// A kernel on its way through a stream.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "softgpu/device/time/execution.h"
#include "softgpu/driver/code/module.h"
#include "softgpu/driver/launch/launch.h"

namespace softgpu {

// What the stream executes; holds the code and a copy of the parameters until then. A fault sticks to the context.
class KernelRun {
 public:
  KernelRun(const KernelLaunch& launch, std::vector<std::byte> parameters);

  // May be called again, one call at a time.
  void operator()();

 private:
  Execution::Kernel describe() const;
  std::uint64_t sms() const { return std::min(most_sms_, context_->sms()); }
  std::uint64_t blocks() const { return std::uint64_t{launch_.grid.x} * launch_.grid.y * launch_.grid.z; }
  void execute(ptx::Outcome& outcome, KernelWork& work);

  CUcontext context_;         // the function's
  CUcontext stream_context_;  // the same, or one that is of the same primary context
  std::uint64_t most_sms_;    // the stream's
  std::shared_ptr<const LoadedModule> code_;
  const ptx::Kernel* kernel_;
  ptx::Launch launch_;
  std::vector<std::byte> parameters_;
};

}  // namespace softgpu
