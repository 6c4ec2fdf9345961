#include "softgpu/ptx/text/scopes.h"

#include <gtest/gtest.h>

#include "softgpu/ptx/text/labels.h"

namespace softgpu::ptx {
namespace {

using Kind = LocalName::Kind;

int register_of(const Scopes& scopes, std::string_view name) {
  int index = -1;
  return scopes.find_register(name, index) ? index : -1;
}

TEST(ScopeNames, AnInnerDeclarationHidesTheOuterOneUntilItsScopeEnds) {
  Scopes scopes;
  ASSERT_TRUE(scopes.open());
  scopes.declare("%a", {Kind::kRegister, 1});
  ASSERT_TRUE(scopes.open());
  EXPECT_EQ(register_of(scopes, "%a"), 1);
  scopes.declare("%a", {Kind::kRegister, 2});
  scopes.declare("%b", {Kind::kRegister, 3});
  scopes.declare("%a", {Kind::kRegister, 4});
  EXPECT_EQ(register_of(scopes, "%a"), 4) << "the later of two in one scope";
  scopes.close();
  EXPECT_EQ(register_of(scopes, "%a"), 1);
  EXPECT_EQ(scopes.find("%b"), nullptr);
  scopes.close();
  EXPECT_FALSE(scopes.any_open());
  EXPECT_EQ(scopes.find("%a"), nullptr);
}

TEST(ScopeNames, MembersOfAFamily) {
  Scopes scopes;
  ASSERT_TRUE(scopes.open());
  scopes.declare("%r", {Kind::kFamily, 100, 20});
  scopes.declare("%r1", {Kind::kFamily, 200, 5});
  EXPECT_EQ(register_of(scopes, "%r19"), 119);
  EXPECT_EQ(register_of(scopes, "%r12"), 112) << "of two families the longer name is tried last";
  EXPECT_EQ(register_of(scopes, "%r10"), 110);
  EXPECT_EQ(register_of(scopes, "%r0"), 100);
  EXPECT_EQ(register_of(scopes, "%r01"), -1) << "a zero in front";
  EXPECT_EQ(register_of(scopes, "%r20"), -1) << "behind the last, and %r2 is no family";
  EXPECT_EQ(register_of(scopes, "%r"), -1) << "the family is no register";
  EXPECT_EQ(register_of(scopes, "%r99999999999999999999"), -1);
}

TEST(ScopeNames, WhicheverWasDeclaredLastIsMeant) {
  Scopes scopes;
  ASSERT_TRUE(scopes.open());
  scopes.declare("%r", {Kind::kFamily, 10, 8});
  ASSERT_TRUE(scopes.open());
  scopes.declare("%r3", {Kind::kRegister, 99});
  EXPECT_EQ(register_of(scopes, "%r3"), 99);
  EXPECT_EQ(register_of(scopes, "%r4"), 14);
  ASSERT_TRUE(scopes.open());
  scopes.declare("%r", {Kind::kFamily, 40, 4});
  EXPECT_EQ(register_of(scopes, "%r3"), 43);
  scopes.close();
  EXPECT_EQ(register_of(scopes, "%r3"), 99);
  scopes.declare("%r3", {Kind::kVariable, 7});
  EXPECT_EQ(register_of(scopes, "%r3"), -1) << "a variable hides the member";
}

TEST(ScopeNames, DepthHasABound) {
  Scopes scopes;
  for (std::size_t i = 0; i < Scopes::kDeepest; ++i) ASSERT_TRUE(scopes.open());
  EXPECT_FALSE(scopes.open());
  scopes.close();
  EXPECT_TRUE(scopes.open()) << "scopes beside one another are not nested";
}

TEST(ScopeNames, EachScopeKnowsTheOneAroundIt) {
  Scopes scopes;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(scopes.open());
  scopes.close();
  ASSERT_TRUE(scopes.open());
  EXPECT_EQ(scopes.current(), 2);
  EXPECT_EQ(scopes.parents(), (std::vector<int>{-1, 0, 0}));
  scopes.clear();
  ASSERT_TRUE(scopes.open());
  EXPECT_EQ(scopes.current(), 0);
}

// ---- labels

// A function of labels and branches, made scope by scope.
class LabelsTest : public ::testing::Test {
 protected:
  void label(std::string_view name, int scope) {
    ast::Instruction mark;
    mark.label = name;
    add(mark, scope);
    labels.define(name, scope, static_cast<int>(function.instructions.size()));
  }
  void branch(std::string_view name, int scope) {
    ast::Instruction jump;
    jump.opcode = "bra";
    jump.first_operand = static_cast<std::uint32_t>(function.operands.size());
    jump.operand_count = 1;
    ast::Operand target;
    target.kind = ast::Operand::Kind::kSymbol;
    target.name = name;
    function.operands.push_back(target);
    add(jump, scope);
  }
  void add(const ast::Instruction& instruction, int scope) {
    function.instructions.push_back(instruction);
    labels.note_instruction(scope);
  }
  bool resolve(const std::vector<int>& parents) { return labels.resolve(reader, parents, names, function); }
  std::string_view target(std::size_t branch) const { return function.operands[branch].name; }

  TokenReader reader{""};
  ParseResult result;
  ModuleNames names{result};
  ast::Function function;
  Labels labels;
};

TEST_F(LabelsTest, ThoseOfOneScopeKeepTheirNames) {
  label("L", 1);
  branch("L", 0);
  branch("elsewhere", 0);
  ASSERT_TRUE(resolve({-1, 0}));
  EXPECT_EQ(target(0), "L");
  EXPECT_TRUE(result.names.empty());
}

TEST_F(LabelsTest, AUseMeansTheInnermostScopeThatDefinesIt) {
  branch("L", 2);
  label("L", 0);
  label("L", 1);
  branch("L", 0);
  branch("L", 3);
  ASSERT_TRUE(resolve({-1, 0, 1, 0}));
  EXPECT_EQ(target(0), "L.1");
  EXPECT_EQ(target(1), "L.0");
  EXPECT_EQ(target(2), "L.0") << "a scope beside the inner one";
  EXPECT_EQ(function.instructions[1].label, "L.0");
  EXPECT_EQ(function.instructions[2].label, "L.1");
}

TEST_F(LabelsTest, TablesAreNamedWithTheirLabels) {
  label("L", 0);
  label("L", 1);
  label("T", 0);
  function.branch_tables.push_back({"T", {"L", "L"}});
  labels.define("T", 1, 9);
  labels.note_table(1);
  ASSERT_TRUE(resolve({-1, 0}));
  EXPECT_EQ(function.branch_tables[0].name, "T.1");
  EXPECT_EQ(function.branch_tables[0].labels, (std::vector<std::string_view>{"L.1", "L.1"}));
}

TEST_F(LabelsTest, OneScopeDefinesALabelOnce) {
  label("L", 0);
  label("L", 0);
  EXPECT_FALSE(resolve({-1}));
  ASSERT_TRUE(reader.error());
  EXPECT_EQ(reader.error()->message, "label 'L' is defined twice");
  EXPECT_EQ(reader.error()->line, 2);
}

TEST(ModuleNames, AVariableOfABodyHasANameThatNoTextCanSpell) {
  ParseResult result;
  ModuleNames names(result);
  ast::Variable tile;
  tile.name = "tile";
  names.add(tile);
  tile.bytes = 16;
  EXPECT_EQ(names.add_scoped("k", tile), "k.tile.1");
  EXPECT_EQ(names.add_scoped("k", tile), "k.tile.2");
  ASSERT_NE(names.find("k.tile.1"), nullptr);
  EXPECT_EQ(names.find("k.tile.1")->bytes, 16u);
  EXPECT_EQ(names.find("tile")->bytes, 0u);
  EXPECT_EQ(names.find("k.tile.0"), nullptr);
  EXPECT_EQ(result.module.variables.size(), 3u);
}

}  // namespace
}  // namespace softgpu::ptx
