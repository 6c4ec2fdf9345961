#include "softgpu/ptx/text/body_parser.h"

#include <gtest/gtest.h>

namespace softgpu::ptx {
namespace {

// A function's body, read behind a header of that name.
struct Body {
  explicit Body(const std::string& source, std::vector<ast::Variable> parameters = {}) : text(source) {
    function.name = "k";
    function.parameters = std::move(parameters);
    ok = read_body(reader, scopes, names, function);
  }
  std::string error() const { return reader.error() ? reader.error()->message : "none"; }
  std::string_view opcode(std::size_t i) const { return function.instructions.at(i).opcode; }

  std::string text;
  TokenReader reader{text};
  Scopes scopes;
  ParseResult result;
  ModuleNames names{result};
  ast::Function function;
  bool ok = false;
};

TEST(BodyParser, ReadsToItsBrace) {
  const Body body("{ .reg .b32 %r<2>; add.s32 %r0, %r1, 1; ret; } more");
  ASSERT_TRUE(body.ok) << body.error();
  EXPECT_EQ(body.reader.token().text, "more");
  ASSERT_EQ(body.function.instructions.size(), 2u);
  EXPECT_EQ(body.function.operands_of(body.function.instructions[0]).size(), 3u);
  EXPECT_EQ(body.function.modifiers_of(body.function.instructions[0])[0], "s32");
  EXPECT_EQ(Body("{ ret;").error(), "end of text inside function 'k'");
}

TEST(BodyParser, ParametersAreVariablesOfTheBody) {
  ast::Variable parameter;
  parameter.name = "in";
  parameter.space = Space::kParam;
  const Body body("{ .reg .b64 %a; .local .b8 frame[8]; ld.param.u64 %a, [in]; }", {parameter});
  ASSERT_TRUE(body.ok) << body.error();
  ASSERT_EQ(body.function.variables.size(), 2u);
  EXPECT_EQ(body.function.variables[0].name, "in");
  EXPECT_EQ(body.function.operands[1].kind, ast::Operand::Kind::kVariable);
  EXPECT_EQ(body.function.operands[1].index, 0);
}

TEST(BodyParser, VariablesThatOutliveTheCallAreTheModules) {
  const Body body("{ .shared .b8 tile[8]; { .shared .b8 tile[16]; } .local .b8 frame[4]; }");
  ASSERT_TRUE(body.ok) << body.error();
  ASSERT_EQ(body.result.module.variables.size(), 2u);
  EXPECT_EQ(body.result.module.variables[1].name, "k.tile.1");
  EXPECT_EQ(body.function.variables.size(), 1u);
}

TEST(BodyParser, AGuardIsAPredicateOfTheScope) {
  const Body body("{ .reg .pred %p; .reg .b32 %r; @!%p mov.b32 %r, 1; }");
  ASSERT_TRUE(body.ok) << body.error();
  EXPECT_EQ(body.function.instructions[0].guard, 0);
  EXPECT_TRUE(body.function.instructions[0].guard_negated);
  EXPECT_EQ(Body("{ .reg .b32 %r; @%r ret; }").error(), "'%r' is not a predicate register");
  EXPECT_EQ(Body("{ { .reg .pred %p; } @%p ret; }").error(), "'%p' is not a predicate register");
}

TEST(BodyParser, AnElementsAddressIsComputedBeforeItsInstruction) {
  const Body body(
      "{ .reg .s32 %i; .reg .u64 %l; .local .b32 a[8]; L: ld.local.b32 %i, a[%i]; st.local.b32 a[%l], %i; }");
  ASSERT_TRUE(body.ok) << body.error();
  ASSERT_EQ(body.function.instructions.size(), 5u);
  EXPECT_EQ(body.opcode(1), "mad");
  EXPECT_EQ(body.opcode(2), "ld");
  EXPECT_EQ(body.opcode(3), "mad");
  const auto wide = body.function.modifiers_of(body.function.instructions[1]);
  EXPECT_EQ((std::vector<std::string_view>{wide.begin(), wide.end()}), (std::vector<std::string_view>{"wide", "s32"}));
  const auto low = body.function.modifiers_of(body.function.instructions[3]);
  EXPECT_EQ((std::vector<std::string_view>{low.begin(), low.end()}), (std::vector<std::string_view>{"lo", "u64"}));
}

TEST(BodyParser, DirectivesBehindALabel) {
  const Body body(
      "{ A: B: T: .branchtargets A, B; P: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; "
      "C: .calltargets f, g; ret; }");
  ASSERT_TRUE(body.ok) << body.error();
  ASSERT_EQ(body.function.branch_tables.size(), 1u);
  EXPECT_EQ(body.function.branch_tables[0].name, "T");
  EXPECT_EQ(body.function.branch_tables[0].labels, (std::vector<std::string_view>{"A", "B"}));
  EXPECT_EQ(body.function.instructions.size(), 3u) << "two labels and an instruction";
}

TEST(BodyParser, LabelsOfScopesAreToldApart) {
  const Body body("{ L: { L: bra L; } bra L; }");
  ASSERT_TRUE(body.ok) << body.error();
  EXPECT_EQ(body.function.operands[0].name, "L.1");
  EXPECT_EQ(body.function.operands[1].name, "L.0");
}

TEST(BodyParser, BoundsOfABody) {
  EXPECT_TRUE(Body("{ .reg .b32 %r<1048576>; }").ok);
  EXPECT_EQ(Body("{ .reg .b32 %r<1048576>, %s<1>; }").error(), "more than 2^20 registers in a function");
  EXPECT_TRUE(Body(std::string(1000, '{') + std::string(1000, '}')).ok);
  EXPECT_EQ(Body(std::string(1001, '{')).error(), "scopes nested more than 1,000 deep");
  EXPECT_EQ(Body("{ .tex .u64 t; }").error(), "directive .tex is not supported in a function");
  EXPECT_EQ(Body("{ .reg .b256 %r; }").error(), "registers of type .b256 are not supported");
}

}  // namespace
}  // namespace softgpu::ptx
