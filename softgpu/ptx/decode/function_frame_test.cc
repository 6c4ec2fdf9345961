#include "softgpu/ptx/decode/function_frame.h"

#include "softgpu/ptx/decode/decode_test.h"

namespace softgpu::ptx {
namespace {

using testing::OneFunction;

TEST(FunctionFrame, AnEntrysParametersLieInTheLaunchs) {
  OneFunction one(
      ".entry k(.param .u32 a, .param .u64 b, .param .align 16 .b8 c[20], .param .u8 d) {\n"
      ".reg .b64 %r; ld.param.u64 %r, [b]; ld.param.u8 %r, [d]; ret; }");
  const FunctionFrame& frame = one.decoder().frame;
  EXPECT_EQ(frame.parameter_offset(0), 0u);
  EXPECT_EQ(frame.parameter_offset(1), 8u);
  EXPECT_EQ(frame.parameter_offset(2), 16u);
  EXPECT_EQ(frame.parameter_offset(3), 36u);
  const auto operands = one.begin(0);
  EXPECT_TRUE(frame.is_kernel_parameter(operands[1]));
  EXPECT_FALSE(frame.is_kernel_parameter(operands[0])) << "a register";
  EXPECT_EQ(frame.variable(operands[0]), nullptr);
  EXPECT_EQ(frame.variable(operands[1])->frame_offset, kNoRow);
  EXPECT_TRUE(one.code.is_entry);
  EXPECT_EQ(one.code.local_bytes, 0u);
}

TEST(FunctionFrame, AFunctionsParametersLieInTheFrameAndAreCopiedForTheirAddress) {
  OneFunction one(
      ".func (.param .b32 r) f(.param .b32 a, .param .b32 b) {\n.reg .b64 %r; .local .align 4 .b8 v[6];\n"
      "ld.param.u32 %r, [a]; mov.u64 %r, b; mov.u64 %r, v; ret; }");
  const auto variables = one.decoder().frame.variables();
  ASSERT_EQ(variables.size(), 4u);
  EXPECT_EQ(one.code.returns.size(), 1u);
  EXPECT_EQ(one.code.parameters.size(), 2u);
  EXPECT_EQ(variables[1].frame_offset - variables[0].frame_offset, 4 * kLanes);
  EXPECT_FALSE(variables[1].has_local_copy) << "only loaded from";
  EXPECT_TRUE(variables[2].has_local_copy);
  EXPECT_EQ(variables[2].local_offset, 0u);
  EXPECT_EQ(variables[3].local_offset, 4u);
  EXPECT_EQ(one.code.local_bytes, 16u) << "10, in steps of 16";
  EXPECT_FALSE(one.decoder().frame.is_kernel_parameter(one.begin(0)[1]));
}

TEST(FunctionFrame, ScratchRowsAreGivenAgainToTheNextInstruction) {
  OneFunction one(".entry k() { ret; }");
  FunctionFrame& frame = one.decoder().frame;
  const auto first = frame.scratch(), second = frame.scratch();
  EXPECT_EQ(second - first, 8 * kLanes);
  const std::size_t bytes = one.code.frame_bytes;
  frame.begin_instruction();
  EXPECT_EQ(frame.scratch(), first);
  EXPECT_EQ(frame.scratch(), second);
  EXPECT_EQ(one.code.frame_bytes, bytes);
  frame.scratch();
  EXPECT_GT(one.code.frame_bytes, bytes);
}

TEST(FunctionFrame, WhatIsTooLargeIsRefused) {
  EXPECT_EQ(OneFunction(".entry k() { .local .b8 a[524288]; }").error(), "none");
  EXPECT_EQ(OneFunction(".entry k() { .local .b8 a[524289]; }").error(),
            "function k: more than 512 KiB of local memory per thread");
  EXPECT_EQ(OneFunction(".entry k(.param .b8 a[32764]) { }").error(), "none");
  EXPECT_EQ(OneFunction(".entry k(.param .b8 a[32765]) { }").error(),
            "function k: more than 32,764 bytes of parameters");
  EXPECT_EQ(OneFunction(".entry k() { .param .b8 a[524288]; }").error(), "none");
  EXPECT_EQ(OneFunction(".entry k() { .param .b8 a[524289]; }").error(),
            "function k: function needs more than 2^24 bytes of registers and arguments");
}

}  // namespace
}  // namespace softgpu::ptx
