#include "common/arena.h"

#include "arena_ptx.h"

namespace fairlead::sample {

Arena::Arena(const Gpu& gpu, std::size_t mebibytes) {
  if (mebibytes == 0) return;
  memory_.emplace(gpu, mebibytes << 20);
  memory_->fill(0x5a);
  sum_.emplace(gpu, sizeof(int));
  sum_->fill(0);
  module_.emplace(gpu, arena_ptx);
  touch_.emplace(module_->kernel("touch"));
}

void Arena::touch() const {
  if (!memory_) return;
  constexpr unsigned kThreads = 256;
  const int count = static_cast<int>(memory_->bytes() / kStrideBytes);
  touch_->launch({(static_cast<unsigned>(count) + kThreads - 1) / kThreads}, {kThreads}, *memory_,
                 static_cast<int>(kStrideBytes / sizeof(int)), count, *sum_);
}

}  // namespace fairlead::sample
