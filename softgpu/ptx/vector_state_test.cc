// The wide code leaves the caller's vector registers clean. Otherwise the SSE instructions of the host program would run a
// hundred times slower after a module was loaded.
#include <cpuid.h>
#include <gtest/gtest.h>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

// Whether the CPU says which register states are in use (XGETBV with ECX = 1).
bool can_tell() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(0xd, 1, &a, &b, &c, &d) != 0 && (a & 4) != 0;
}

bool upper_halves_in_use() {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & 4) != 0;
}

TEST(VectorState, IsCleanAfterLoadAndLaunch) {
  if (!can_tell()) GTEST_SKIP() << "this CPU does not say which registers are in use";
  testing::TestDevice device;
  const std::uint64_t words = device.allocate(128);
  const std::string text = testing::header() +
                           ".entry k(.param .u64 p) {\n"
                           ".reg .b32 %r<4>; .reg .b64 %d<4>;\n"
                           "ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;\n"
                           "add.s64 %d2, %d0, %d1; ld.global.u32 %r1, [%d2]; st.global.u32 [%d2], %r1;\nret;\n}\n";
  const auto module = testing::load_or_fail(text, device);
  EXPECT_FALSE(upper_halves_in_use());
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(testing::run_kernel(*module, device, "k", {1}, {32}, words).fault, FaultKind::kNone);
  EXPECT_FALSE(upper_halves_in_use());
}

}  // namespace
}  // namespace softgpu::ptx
