// Kernels run on the host's threads, whose floating-point state is the host program's: -ffast-math flushes subnormal
// numbers, fesetround() rounds otherwise, feenableexcept() makes 0/0 a signal. While one of these lives, its thread has
// the state a GPU has: nothing flushed, nothing trapped, rounding to nearest. Then the host's is back.
//
//   const FloatEnvironment environment;     30 ns; 200 if the host rounds otherwise or traps
#pragma once

#include <cfenv>
#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace softgpu::ptx {

class FloatEnvironment {
 public:
  FloatEnvironment() {
#if defined(__SSE__)
    control_ = _mm_getcsr();
    // fegetround() reads the x87's control word, so it must agree with the other; it seldom needs a change.
    std::uint16_t word = 0;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    is_whole_ = word != kX87Default;
    had_flags_ = has_x87_flags();
#endif
    if (is_whole_) {
      std::fegetenv(&whole_);
      std::fesetenv(FE_DFL_ENV);
    }
#if defined(__SSE__)
    if ((_mm_getcsr() & ~kFlags) != kDefault) _mm_setcsr(kDefault);  // writing takes long
#endif
  }
  ~FloatEnvironment() {
    if (is_whole_) std::fesetenv(&whole_);
#if defined(__SSE__)
    if (_mm_getcsr() != control_) _mm_setcsr(control_);
    // Kernels' flags would be signals as soon as the host asks for them.
    if (!is_whole_ && !had_flags_ && has_x87_flags()) __asm__ volatile("fnclex");
#endif
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  bool is_whole_ = true;  // the C library's view of it is saved, too
  std::fenv_t whole_;
#if defined(__SSE__)
  static constexpr unsigned kDefault = 0x1f80;
  static constexpr unsigned kFlags = 0x3f;
  static constexpr std::uint16_t kX87Default = 0x037f;
  static bool has_x87_flags() {
    std::uint16_t word = 0;
    __asm__ volatile("fnstsw %0" : "=m"(word));
    return (word & kFlags) != 0;
  }
  unsigned control_ = 0;
  bool had_flags_ = false;
#endif
};

}  // namespace softgpu::ptx
