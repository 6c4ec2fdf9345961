#include "softgpu/ptx/text/parser.h"

#include <gtest/gtest.h>

#include <string>

namespace softgpu::ptx {
namespace {

constexpr const char* kHeader = ".version 7.5\n.target sm_75\n.address_size 64\n";

LoadError error_of(const std::string& text) {
  const ParseResult result = parse(text);
  EXPECT_TRUE(result.error.has_value()) << text;
  return result.error.value_or(LoadError{});
}

TEST(Parser, ReadsFunctionsParametersAndInstructions) {
  const std::string text = std::string(kHeader) +
                           ".visible .entry k(.param .u64 .ptr .global .align 4 p, .param .align 16 .b8 s[32])\n"
                           ".maxntid 128, 2, 1\n{\n.reg .b32 %r<4>;\nadd.s32 %r1, %r2, -5;\nret;\n}\n";
  const ParseResult result = parse(text);
  ASSERT_FALSE(result.error) << result.error->message;
  ASSERT_EQ(result.module.functions.size(), 1u);
  const ast::Function& function = result.module.functions[0];
  EXPECT_TRUE(function.is_entry);
  EXPECT_EQ(function.max_threads, 256u);
  ASSERT_EQ(function.parameters.size(), 2u);
  EXPECT_EQ(function.parameters[0].alignment, 8u) << "the alignment of a pointer's target is not the parameter's";
  EXPECT_EQ(function.parameters[1].bytes, 32u);
  EXPECT_EQ(function.parameters[1].alignment, 16u);
  ASSERT_EQ(function.instructions.size(), 2u);
  const auto operands = function.operands_of(function.instructions[0]);
  EXPECT_EQ(function.instructions[0].line, 8);
  EXPECT_EQ(operands[2].bits, static_cast<std::uint64_t>(-5));
}

TEST(Parser, InnerDeclarationsHideOuterOnesUntilTheScopeEnds) {
  const std::string text =
      std::string(kHeader) + ".entry k() {\n.reg .b32 %x;\n{\n.reg .b64 %x;\nmov.b64 %x, 1;\n}\nmov.b32 %x, 1;\n}\n";
  const ParseResult result = parse(text);
  ASSERT_FALSE(result.error) << result.error->message;
  const ast::Function& function = result.module.functions[0];
  const auto type_of_destination = [&](std::size_t i) {
    return function.registers[static_cast<std::size_t>(function.operands_of(function.instructions[i])[0].index)];
  };
  EXPECT_EQ(type_of_destination(0), Type::kB64);
  EXPECT_EQ(type_of_destination(1), Type::kB32);
}

TEST(Parser, ReadsNumbersOfEveryForm) {
  const std::string text = std::string(kHeader) +
                           ".global .u64 a[6] = {0x10, 010, 0b101, 42U, -1, 18446744073709551615};\n"
                           ".global .f32 b[3] = {0f3F800000, 2.5, -1.0e1};\n.global .f64 c = 0d3FF0000000000000;\n";
  const ParseResult result = parse(text);
  ASSERT_FALSE(result.error) << result.error->message;
  std::vector<std::uint64_t> bits;
  for (const auto& variable : result.module.variables) {
    for (const auto& value : variable.initialisers) bits.push_back(value.bits);
  }
  EXPECT_EQ(bits, (std::vector<std::uint64_t>{16, 8, 5, 42, ~0ull, ~0ull, 0x3f800000, 0x40200000, 0xc1200000,
                                              0x3ff0000000000000}));
}

TEST(Parser, ALabelMayStandBeforeADirective) {
  const std::string text = std::string(kHeader) + ".entry k() {\n$L:\n.pragma \"nounroll\";\nbra $L;\n}\n";
  const ParseResult result = parse(text);
  ASSERT_FALSE(result.error) << result.error->message;
  EXPECT_EQ(result.module.functions[0].instructions.front().label, "$L");
}

TEST(Parser, WhitespaceOnlySeparatesTokens) {
  const ParseResult result = parse(
      ".version 7.5 .target sm_75, debug .address_size 64 .file 1 \"a.cu\" .pragma \"x\"; .global .u32 g; .visible "
      ".entry "
      "k() { .reg .b32 %r<2>; .loc 1 2 3 mov.b32 %r0, 1; .pragma \"nounroll\"; .loc 1 3 1, function_name $s + 4, "
      "inlined_at 1 2 3 add.s32 %r1, %r0, 1; .file 2 \"b.cu\", 1, 2 ret; }");
  ASSERT_FALSE(result.error) << result.error->message;
  EXPECT_EQ(result.module.variables.size(), 1u);
  ASSERT_EQ(result.module.functions.size(), 1u);
  EXPECT_EQ(result.module.functions[0].instructions.size(), 3u);
}

TEST(Parser, CommentsCountLines) {
  const LoadError error = error_of(std::string(kHeader) + "/* two\nlines */ // rest\n.entry k() { add.s32 ? ; }");
  EXPECT_EQ(error.line, 6);
  EXPECT_EQ(error.kind, LoadError::Kind::kSyntax);
}

struct Refused {
  const char* text;
  int line;
  const char* message;
};

class ParserRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(ParserRefuses, WithTheLineAndTheName) {
  const LoadError error = error_of(GetParam().text);
  EXPECT_EQ(error.line, GetParam().line);
  EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, ParserRefuses,
    ::testing::Values(Refused{".entry k() {\nret\n}", 3, "expected an operand before '}'"},
                      Refused{".entry k() {\nret;", 2, "end of text"}, Refused{".entry k()\n{\n@%p bra L;\n}", 3, "%p"},
                      Refused{".entry k() {\n.reg .b32 %r<2>;\nmov.u32 %r1, !%r1, ;\n}", 3, "expected an operand"},
                      Refused{".entry k() {\n.reg .b256 %q;\n}", 2, ".b256"}, Refused{"\n.texref t;", 2, ".texref"},
                      Refused{".entry k() {\n.reg .b32 %r<9999999>;\n}", 2, "2^20"},
                      Refused{".global .align 3 .b8 x[4];", 1, "alignment 3"},
                      Refused{".global .b8 x[2] = {1,2,3};", 1, "more initial values"},
                      Refused{".shared .attribute(.managed) .b32 x;", 1, "only a variable in .global"},
                      Refused{".global .u32 a[4];\n.entry k() {\nmov.u64 %r1, a[x];\n}", 3, "expected an offset"},
                      Refused{".entry k() {\nmov.b64 {{%r1}}, 1;\n}", 2, "simple operand"},
                      Refused{".entry k() {\nmov.u32 %x, -%tid.x;\n}", 2, "neither a number nor a register"},
                      Refused{".entry k() {\nld.u32 %r1, [[%r2]];\n}", 2, "expected an address"},
                      Refused{"\x01", 1, "expected"}));

TEST(Parser, ANulEndsTheText) {
  const std::string text = std::string(".entry k() { ret; }\n") + '\0' + "garbage";
  EXPECT_FALSE(parse(text).error);
}

}  // namespace
}  // namespace softgpu::ptx
