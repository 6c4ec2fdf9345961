// For tests of what native code is made of: segments without a kernel, and code as its author would have written it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <vector>

#include "softgpu/ptx/native/emission.h"

namespace softgpu::ptx::native::testing {

// A stretch of one function. Its instructions stay where they are while it lives.
class Stretch {
 public:
  // dst = action(a, b, c) of 32-bit elements.
  Instruction& add(Action action, std::int32_t dst, std::int32_t a = kNoRow, std::int32_t b = kNoRow,
                   std::int32_t c = kNoRow) {
    Instruction& at = instructions_.emplace_back();
    at.dst = dst;
    at.a = a;
    at.b = b;
    at.c = c;
    at.counted = 1;
    segment_.steps.push_back({&at, Meaning{action}});
    return at;
  }
  Meaning& meaning(std::size_t step) { return segment_.steps[step].meaning; }
  void become_loop() { segment_.is_loop = true; }
  // The row holds a value of the function from handler `first` to `last`.
  void live(std::int32_t row, int first, int last) { lives_.push_back({row, first, last}); }

  const Segment& segment() const { return segment_; }
  const Step& step(std::size_t i) const { return segment_.steps[i]; }
  RowFlow flow() const { return {segment_, lives_}; }

 private:
  std::deque<Instruction> instructions_;
  Segment segment_;
  std::vector<RowLife> lives_;
};

inline std::vector<std::uint8_t> written(const std::function<void(Assembler&)>& write) {
  Assembler assembler;
  write(assembler);
  return assembler.finish();
}

}  // namespace softgpu::ptx::native::testing
