#include "softgpu/ptx/native/slow_ways.h"

namespace softgpu::ptx::native {

void SlowWays::call(const void* function, const SlowCall& kept) {
  VectorCode(as_).zero_upper();
  as_.move(rdi, rbx);
  as_.move(rsi, reinterpret_cast<std::uint64_t>(&kept));
  as_.move(rdx, rsp);
  as_.call(function);
}

// What is deferred meanwhile may move the functions, so each is taken out first.
void SlowWays::emit_deferred() {
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    const std::function<void()> emit = std::move(deferred_[i]);
    emit();
  }
  deferred_.clear();
}

}  // namespace softgpu::ptx::native
