#include "softgpu/ptx/text/variable_reader.h"

#include <gtest/gtest.h>

namespace softgpu::ptx {
namespace {

// What stands behind a state space.
struct Read {
  explicit Read(const std::string& source, Space space = Space::kGlobal) : text(source) {
    ok = read_variables(reader, scopes, names, space, false,
                        [this](ast::Variable variable) { variables.push_back(std::move(variable)); });
  }
  std::string error() const { return reader.error() ? reader.error()->message : "none"; }

  std::string text;
  TokenReader reader{text};
  Scopes scopes;
  ParseResult result;
  ModuleNames names{result};
  std::vector<ast::Variable> variables;
  bool ok = false;
};

TEST(VariableReader, VariablesOfOneDeclarationShareTheirType) {
  const Read read(".align 8 .v2 .f32 a[4][2], b;");
  ASSERT_TRUE(read.ok) << read.error();
  ASSERT_EQ(read.variables.size(), 2u);
  EXPECT_EQ(read.variables[0].bytes, 64u);
  EXPECT_EQ(read.variables[0].element_bytes, 8u);
  EXPECT_EQ(read.variables[1].name, "b");
  EXPECT_EQ(read.variables[1].bytes, 8u);
  EXPECT_EQ(read.variables[1].alignment, 8u);
}

TEST(VariableReader, AFamilyIsItsMembers) {
  const Read read(".u32 p<3>, q;", Space::kParam);
  ASSERT_TRUE(read.ok) << read.error();
  ASSERT_EQ(read.variables.size(), 4u);
  EXPECT_EQ(read.variables[0].name, "p0");
  EXPECT_EQ(read.variables[2].name, "p2");
  EXPECT_EQ(read.variables[3].name, "q");
  EXPECT_EQ(Read(".u32 p<4097>;").error(), "more than 4,096 variables in a declaration");
}

TEST(VariableReader, AnUnsizedArrayIsAsLongAsItsValues) {
  const Read read(".u16 a[] = {1, 2, {3, 4}};");
  ASSERT_TRUE(read.ok) << read.error();
  EXPECT_EQ(read.variables[0].bytes, 8u);
  EXPECT_EQ(Read(".u16 a[2] = {1, 2, 3};").error(), "more initial values than variable 'a' has room for");
}

TEST(VariableReader, FloatsTakeTheWidthOfTheirVariable) {
  const Read single(".f32 a[3] = {0f3F800000, 2.5, -0.5};"), wide(".f64 a = -0.5;");
  ASSERT_TRUE(single.ok && wide.ok);
  EXPECT_EQ(single.variables[0].initialisers[0].bits, 0x3f800000u);
  EXPECT_EQ(single.variables[0].initialisers[1].bits, 0x40200000u);
  EXPECT_EQ(single.variables[0].initialisers[2].bits, 0xbf000000u);
  EXPECT_EQ(wide.variables[0].initialisers[0].bits, 0xbfe0000000000000u);
}

TEST(VariableReader, ValuesMayBeAddresses) {
  const Read read(".u64 a[3] = {b, generic(c)+8, d-2};");
  ASSERT_TRUE(read.ok) << read.error();
  const auto& values = read.variables[0].initialisers;
  EXPECT_EQ(values[0].symbol, "b");
  EXPECT_TRUE(values[1].generic);
  EXPECT_EQ(values[1].bits, 8u);
  EXPECT_EQ(values[2].bits, ~std::uint64_t{1});
  EXPECT_EQ(Read(".u64 a = mask(b);").error(), "operator in an initial value is not supported");
}

TEST(VariableReader, AnAddressIsThatOfTheScopesVariable) {
  const std::string text = ".u64 a = tile;";
  TokenReader reader(text);
  Scopes scopes;
  scopes.open();
  LocalName local{LocalName::Kind::kModuleVariable};
  local.module_name = "k.tile.3";
  scopes.declare("tile", local);
  ParseResult result;
  ModuleNames names(result);
  std::string_view symbol;
  ASSERT_TRUE(read_variables(reader, scopes, names, Space::kGlobal, false,
                             [&](ast::Variable variable) { symbol = variable.initialisers.at(0).symbol; }));
  EXPECT_EQ(symbol, "k.tile.3");
}

TEST(VariableReader, ListsOfValuesHaveABoundThatTheNextListDoesNotFeel) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '{') + "1" + std::string(depth, '}'); };
  EXPECT_TRUE(Read(".u32 a = " + nested(16) + ", b = " + nested(16) + ";").ok);
  EXPECT_EQ(Read(".u32 a = " + nested(17) + ";").error(), "initialiser nested more than 16 deep");
  std::string beside = ".u32 a[20] = {{1}";
  for (int i = 0; i < 19; ++i) beside += ", {1}";
  EXPECT_TRUE(Read(beside + "};").ok);
}

TEST(VariableReader, SizesHaveABound) {
  EXPECT_TRUE(Read(".b8 a[1024][1024][1024][1024];").ok);
  EXPECT_EQ(Read(".b8 a[1024][1024][1024][1024][2];").error(), "variable larger than 2^40 bytes");
  EXPECT_EQ(Read(".b8 a[-1];").error(), "an array extent of more than 2^40");
  EXPECT_EQ(Read(".align 8192 .b8 a;").error(), "alignment 8192 is not a power of two up to 4096");
}

TEST(VariableReader, WhatAPointerPointsToIsNotTheParametersOwn) {
  const std::string text = "(.param .u64 .ptr .global .align 256 a, .param .align 16 .b8 b[32])";
  TokenReader reader(text);
  std::vector<ast::Variable> out;
  ASSERT_TRUE(read_parameters(reader, Scopes(), out));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].alignment, 8u);
  EXPECT_EQ(out[1].alignment, 16u);
  EXPECT_TRUE(reader.is_end());
}

TEST(VariableReader, RefusesParametersThatAreNone) {
  const auto error_of = [](const char* text) {
    TokenReader reader(text);
    std::vector<ast::Variable> out;
    EXPECT_FALSE(read_parameters(reader, Scopes(), out)) << text;
    return reader.error() ? reader.error()->message : "none";
  };
  EXPECT_EQ(error_of("(.reg .u64 a)"), "parameter in .reg space is not supported");
  EXPECT_EQ(error_of("(.param .u64 a<2>)"), "several parameters in one declaration are not supported");
  EXPECT_EQ(error_of("(.param .u64 a"), "expected ')' before ''");
  EXPECT_EQ(error_of("(.param .pred a)"), "type .pred of a variable is not supported");
}

}  // namespace
}  // namespace softgpu::ptx
