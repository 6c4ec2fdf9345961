#include "softgpu/ptx/text/operand_reader.h"

#include <gtest/gtest.h>

namespace softgpu::ptx {
namespace {

using Kind = ast::Operand::Kind;

// A function with %r0 to %r3 of 32 bits, %d of 64, predicates %p and %q, a .local variable `frame` of eight words, and a
// .shared one, `tile`, that the module knows by another name.
class OperandReaderTest : public ::testing::Test {
 protected:
  OperandReaderTest() {
    function.registers = {Type::kU32, Type::kU32, Type::kS32, Type::kU32, Type::kU64, Type::kPred, Type::kPred};
    scopes.open();
    scopes.declare("%r", {LocalName::Kind::kFamily, 0, 4});
    scopes.declare("%d", {LocalName::Kind::kRegister, 4});
    scopes.declare("%p", {LocalName::Kind::kRegister, 5});
    scopes.declare("%q", {LocalName::Kind::kRegister, 6});
    ast::Variable frame;
    frame.element_bytes = 4;
    function.variables.push_back(frame);
    scopes.declare("frame", {LocalName::Kind::kVariable, 0});
    frame.name = "tile";
    LocalName tile{LocalName::Kind::kModuleVariable};
    tile.module_name = names.add_scoped("k", frame);
    scopes.declare("tile", tile);
  }

  // The operands of an instruction; the test ends when there are none.
  std::vector<ast::Operand> read(const std::string& text, std::string_view opcode = "mov") {
    function.operands.clear();
    texts.push_back(text + ";");
    TokenReader reader(texts.back());
    OperandReader operands(reader, scopes, names, function);
    const bool ok = operands.read(opcode);
    error = reader.error() ? reader.error()->message : "none";
    EXPECT_TRUE(!ok || reader.is(';')) << text;
    addresses = operands.take_element_addresses();
    EXPECT_TRUE(operands.take_element_addresses().empty());
    return ok ? function.operands : std::vector<ast::Operand>{};
  }
  ast::Operand one(const std::string& text, std::string_view opcode = "mov") {
    const auto all = read(text, opcode);
    EXPECT_EQ(all.size(), 1u) << text << ": " << error;
    return all.empty() ? ast::Operand{} : all.front();
  }
  std::string error_of(const std::string& text) {
    EXPECT_TRUE(read(text).empty()) << text;
    return error;
  }

  std::deque<std::string> texts;
  ParseResult result;
  ModuleNames names{result};
  Scopes scopes;
  ast::Function function;
  std::vector<ElementAddress> addresses;
  std::string error;
};

TEST_F(OperandReaderTest, Registers) {
  EXPECT_EQ(one("%r2").index, 2);
  EXPECT_EQ(one("%r2").kind, Kind::kRegister);
  EXPECT_TRUE(one("-%r2").negated);
  EXPECT_TRUE(one("!%p").negated);
  EXPECT_EQ(one("%p|%q").second, 6);
  EXPECT_EQ(one("%p|_").second, -1);
  EXPECT_EQ(one("_|%q").kind, Kind::kSink);
  EXPECT_EQ(one("_|%q").second, 6);
  EXPECT_EQ(one("%r1.b0").name, "b0");
}

TEST_F(OperandReaderTest, SignsBelongToWhatTheyFit) {
  EXPECT_EQ(error_of("!frame"), "'!' before something that is no register");
  EXPECT_EQ(error_of("-%p"), "'-' before something that is neither a number nor a register");
  EXPECT_EQ(error_of("-frame"), "'-' before something that is neither a number nor a register");
  EXPECT_EQ(error_of("!1.5"), "expected a predicate after '!'");
  EXPECT_EQ(error_of("%p|%s"), "register '%s' is not declared");
}

TEST_F(OperandReaderTest, Numbers) {
  EXPECT_EQ(one("-1").bits, ~std::uint64_t{0});
  EXPECT_EQ(one("(2 + 3) * 4").bits, 20u);
  EXPECT_EQ(one("-0f3F800000").bits, 0xbf800000u);
  EXPECT_EQ(one("-1.0").bits, 0xbff0000000000000u);
  EXPECT_EQ(one("-1.0").kind, Kind::kFloat64);
}

TEST_F(OperandReaderTest, Names) {
  EXPECT_EQ(one("%tid.x").name, "%tid.x");
  EXPECT_EQ(one("%laneid").kind, Kind::kSpecial);
  EXPECT_EQ(one("somewhere-8").offset, -8);
  EXPECT_EQ(one("frame+4").kind, Kind::kVariable);
  EXPECT_EQ(one("frame+4").offset, 4);
  EXPECT_EQ(one("tile").name, "k.tile.0");
}

TEST_F(OperandReaderTest, Addresses) {
  const ast::Operand sum = one("[%d+8-4*4+1]");
  EXPECT_TRUE(sum.memory);
  EXPECT_EQ(sum.offset, -7);
  EXPECT_TRUE(one("[1024]").memory);
  const auto texture = read("[%d, {%r0, %r1}], %r2");
  ASSERT_EQ(texture.size(), 3u) << "coordinates follow the texture";
  EXPECT_TRUE(texture[0].memory);
  EXPECT_EQ(texture[1].kind, Kind::kList);
  EXPECT_EQ(texture[2].index, 2);
  EXPECT_EQ(error_of("[[%d]]"), "expected an address");
  EXPECT_EQ(error_of("[%d+%r0]"), "expected an offset in an address");
  EXPECT_EQ(error_of("[%d, [%d]]"), "expected coordinates in an address");
}

TEST_F(OperandReaderTest, Lists) {
  const ast::Operand list = one("{%r0, 7, _}");
  ASSERT_EQ(list.kind, Kind::kList);
  ASSERT_EQ(list.count, 3);
  EXPECT_EQ(function.elements_of(list)[1].bits, 7u);
  EXPECT_EQ(one("{%r3}").kind, Kind::kRegister) << "a scalar";
  EXPECT_EQ(one("(%r3)", "call").kind, Kind::kList) << "arguments of a call stay a list";
  EXPECT_EQ(one("()", "call").count, 0);
  EXPECT_EQ(error_of("{{%r0}, %r1}"), "expected a simple operand in a list");
  std::string longest = "{1";
  for (int i = 1; i < 256; ++i) longest += ",1";
  EXPECT_EQ(one(longest + "}").count, 256);
  EXPECT_EQ(error_of(longest + ",1}"), "expected '}' before '1'");
}

TEST_F(OperandReaderTest, AnElementWithAConstantIndexIsAnOffset) {
  EXPECT_EQ(one("frame[3]").offset, 12);
  EXPECT_FALSE(one("frame[3]").memory) << "an address";
  EXPECT_TRUE(one("frame[3]", "ld").memory) << "what a load accesses";
  EXPECT_EQ(one("tile[1]").offset, 4);
  EXPECT_TRUE(addresses.empty());
}

TEST_F(OperandReaderTest, AnElementWithARegisterIndexHasAnAddressOfItsOwn) {
  const std::size_t registers = function.registers.size();
  const ast::Operand element = one("frame[%r2+1]", "ld");
  ASSERT_EQ(addresses.size(), 1u);
  EXPECT_EQ(element.kind, Kind::kRegister);
  EXPECT_EQ(element.index, static_cast<int>(registers));
  EXPECT_EQ(element.offset, 4);
  EXPECT_EQ(addresses[0].address.index, element.index);
  EXPECT_EQ(addresses[0].index.index, 2);
  EXPECT_EQ(addresses[0].size.bits, 4u);
  EXPECT_EQ(addresses[0].array.kind, Kind::kVariable);
  EXPECT_EQ(function.registers.back(), Type::kU64);
  EXPECT_EQ(error_of("frame[%p]"), "an index into an array is not 32 or 64 bits wide");
}

TEST_F(OperandReaderTest, AListOfOperandsEndsWithTheInstruction) {
  EXPECT_EQ(read("%r0, %r1, 2").size(), 3u);
  EXPECT_EQ(error_of("%r0 %r1"), "expected ',' or ';' before '%r1'");
  EXPECT_EQ(error_of("%r0,"), "expected an operand before ';'");
}

}  // namespace
}  // namespace softgpu::ptx
