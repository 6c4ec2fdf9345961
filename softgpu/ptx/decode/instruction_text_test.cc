#include "softgpu/ptx/decode/instruction_text.h"

#include <array>

#include "softgpu/ptx/decode/decode_test.h"

namespace softgpu::ptx {
namespace {

using testing::OneFunction;

const std::string kBody = ".entry k() { .reg .b32 %r<4>;\nld.global.f32.cg.f32 %r0, [%r1];\nbra %r0;\nret; }";

TEST(InstructionText, WhatWasTakenIsNotTakenAgain) {
  OneFunction one(kBody);
  InstructionText& text = one.decoder().text;
  one.begin(0);
  EXPECT_EQ(text.opcode(), "ld");
  EXPECT_FALSE(text.take("ca"));
  EXPECT_TRUE(text.take("cg"));
  EXPECT_FALSE(text.take("cg"));
  EXPECT_TRUE(text.contains("cg")) << "taken or not";
  EXPECT_EQ(text.maybe_space(), Space::kGlobal);
  EXPECT_EQ(text.maybe_space(), std::nullopt);
  EXPECT_EQ(text.take_type(), Type::kF32);
  EXPECT_EQ(text.maybe_type(), Type::kF32) << "a second one of the name";
  EXPECT_EQ(text.maybe_type(), std::nullopt);
  text.finish();
  EXPECT_EQ(one.error(), "none");
}

TEST(InstructionText, WhatNobodyTakesRefusesTheInstruction) {
  OneFunction one(kBody);
  one.begin(0);
  one.decoder().text.take("f32");
  one.decoder().text.take("global");
  one.decoder().text.finish();
  EXPECT_EQ(one.error(), "instruction ld.global.f32.cg.f32: modifier .cg is not supported");
  EXPECT_EQ(one.decoder().text.error()->line, 2);
}

TEST(InstructionText, OfSeveralTheFirstThatIsSpelledIsTaken) {
  OneFunction one(kBody);
  one.begin(0);
  constexpr std::array<std::string_view, 3> kNames = {"cg", "global", "ca"};
  EXPECT_EQ(one.decoder().text.take_any(kNames), 1);
  EXPECT_EQ(one.decoder().text.take_any(kNames), 0);
  EXPECT_EQ(one.decoder().text.take_any(kNames), -1);
}

TEST(InstructionText, TheFirstRefusalStaysAndNamesWhereItIs) {
  OneFunction one(kBody);
  InstructionText& text = one.decoder().text;
  EXPECT_EQ(text.line(), 1) << "the function's";
  one.begin(2);
  EXPECT_EQ(text.line(), 4);
  EXPECT_FALSE(text.expect_operands(1, 2));
  text.refuse("no more");
  text.fail({LoadError::Kind::kSyntax, 0, "nor this"});
  EXPECT_EQ(one.error(), "instruction ret: it has 0 operands instead of 1");
  OneFunction other(kBody);
  other.decoder().text.refuse("too large");
  EXPECT_EQ(other.error(), "function k: too large");
}

TEST(InstructionText, ATypeOrALabelMayBeMissing) {
  OneFunction type(kBody), label(kBody);
  type.begin(2);
  type.decoder().text.take_type();
  EXPECT_EQ(type.error(), "instruction ret: a type is missing");
  label.decoder().text.label(label.begin(1)[0]);
  EXPECT_EQ(label.error(), "instruction bra: a label is missing");
}

}  // namespace
}  // namespace softgpu::ptx
