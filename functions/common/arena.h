// The device memory a sample function holds besides its own weights, so that a demonstration can give each function the
// footprint of the real program it stands for.
#pragma once

#include <cstddef>
#include <optional>

#include "fairlead/gpu.h"

namespace fairlead::sample {

class Arena {
 public:
  // Takes and fills `mebibytes` of device memory; none when 0.
  Arena(const Gpu& gpu, std::size_t mebibytes);

  // Queues a kernel that reads from all of it: memory that was moved to the host has to come back.
  void touch() const;

 private:
  static constexpr std::size_t kStrideBytes = 64 * 1024;

  std::optional<Buffer> memory_;
  std::optional<Buffer> sum_;
  std::optional<Module> module_;
  std::optional<Kernel> touch_;
};

}  // namespace fairlead::sample
