#include "softgpu/ptx/decode/operand_rows.h"

#include "softgpu/ptx/decode/decode_test.h"

namespace softgpu::ptx {
namespace {

using testing::OneFunction;

// Operand `i` of the only instruction of a kernel with parameters and registers of all widths.
class OperandRowsTest : public ::testing::Test {
 protected:
  const ast::Operand& operand(const std::string& text) {
    one = std::make_unique<OneFunction>(
        ".entry k(.param .u64 in, .param .u32 n) { .reg .pred %p, %q; .reg .b16 %h; .reg .b32 %r, %s; .reg .s32 %i;\n"
        ".reg .b64 %d; .reg .b128 %w; .local .b8 v[16]; .param .b32 argument;\nmov " +
        text + "; add.u64 %d, %d, %r; add.u64 %w, %w, %i; and.pred %p, %p, %q; mov %h, %s; }");
    one->symbols["device"] = {Symbol::Kind::kDevice, 0x1000};
    one->symbols["tile"] = {Symbol::Kind::kShared, 64};
    one->symbols["dynamic"] = {Symbol::Kind::kDynamicShared, 0};
    one->symbols["f"] = {Symbol::Kind::kFunction, 3};
    return one->begin(0)[0];
  }
  OperandRows& rows() { return one->decoder().rows; }
  std::size_t emitted() const { return one->code.instructions.size(); }
  std::int32_t read(const std::string& text, Type type) {
    const ast::Operand& what = operand(text);
    return rows().read(what, type);
  }
  // Whether the text is read as the constant `bits`.
  bool reads_constant(const std::string& text, Type type, std::uint64_t bits) {
    const std::int32_t row = read(text, type);
    return row == one->constants.value(bits, size_of(type));
  }

  std::unique_ptr<OneFunction> one;
};

TEST_F(OperandRowsTest, ARegisterOfTheWidthIsReadWhereItIs) {
  const ast::Operand& r = operand("%r");
  EXPECT_EQ(rows().read(r, Type::kF32), one->decoder().frame.register_row(r.index));
  EXPECT_EQ(rows().write(r, Type::kS32), one->decoder().frame.register_row(r.index));
  rows().finish();
  EXPECT_EQ(emitted(), 0u);
}

TEST_F(OperandRowsTest, AnotherWidthIsReadThroughAScratchRow) {
  const std::int32_t row = read("%r", Type::kS64);
  ASSERT_EQ(emitted(), 1u);
  EXPECT_EQ(one->last().dst, row);
  EXPECT_EQ(one->last().run, instruction_set().resize(8, 4, true));
  read("%r", Type::kU64);
  EXPECT_EQ(one->last().run, instruction_set().resize(8, 4, false));
}

TEST_F(OperandRowsTest, AnotherWidthIsWrittenBehindTheInstruction) {
  const ast::Operand& d = operand("%d");
  const std::int32_t row = rows().write(d, Type::kU32);
  EXPECT_EQ(emitted(), 0u);
  rows().finish();
  ASSERT_EQ(emitted(), 1u);
  EXPECT_EQ(one->last().a, row);
  EXPECT_EQ(one->last().dst, one->decoder().frame.register_row(d.index));
  rows().finish();
  EXPECT_EQ(emitted(), 1u) << "once";
}

TEST_F(OperandRowsTest, ConstantsOfOneValueAndWidthShareARow) {
  const std::int32_t row = read("5", Type::kU32);
  EXPECT_LT(row, 0) << "counted back from the end of the pool";
  EXPECT_EQ(one->constants.value(5, 4), row);
  EXPECT_NE(one->constants.value(5, 8), row);
  EXPECT_TRUE(reads_constant("1.5", Type::kF32, 0x3fc00000));
  EXPECT_TRUE(reads_constant("0f3FC00000", Type::kF64, 0x3ff8000000000000));
  const std::int32_t predicate = read("1", Type::kPred);
  EXPECT_EQ(predicate, one->constants.predicate(true));
  read("1.5", Type::kF16);
  EXPECT_EQ(one->error(), "instruction mov: a floating-point constant for a type narrower than 32 bits");
}

TEST_F(OperandRowsTest, NamesOfTheModule) {
  EXPECT_TRUE(reads_constant("device+8", Type::kU64, 0x1008));
  EXPECT_TRUE(reads_constant("f", Type::kU64, kCodeWindow + 48));
  const std::int32_t row = read("dynamic+4", Type::kU32);
  ASSERT_EQ(emitted(), 2u) << "computed, then narrowed";
  EXPECT_EQ(one->code.instructions[0].immediate, 4);
  EXPECT_EQ(one->last().dst, row);
  read("nowhere", Type::kU64);
  EXPECT_EQ(one->error(), "instruction mov: 'nowhere' is not defined");
}

TEST_F(OperandRowsTest, VariablesOfTheFunction) {
  EXPECT_TRUE(reads_constant("n+2", Type::kU64, 10)) << "in the launch's parameters";
  read("v+3", Type::kU64);
  EXPECT_EQ(one->last().run, instruction_set().local_address);
  EXPECT_EQ(one->last().immediate, 3);
  read("argument", Type::kU64);
  EXPECT_EQ(one->error(), "instruction mov: an argument of a call has no address");
}

TEST_F(OperandRowsTest, AddressesKnowTheirSpace) {
  const auto address = [&](const std::string& text, Space space) {
    const ast::Operand& what = operand(text);
    return rows().address(what, space);
  };
  EXPECT_EQ(address("[%d+16]", Space::kGlobal).offset, 16);
  EXPECT_FALSE(address("[%r]", Space::kShared).is_wide);
  EXPECT_EQ(emitted(), 0u);
  EXPECT_TRUE(address("[%r]", Space::kGlobal).is_wide) << "widened";
  EXPECT_EQ(emitted(), 1u);
  EXPECT_EQ(address("[tile]", Space::kGeneric).offset, static_cast<std::int64_t>(kSharedWindow));
  EXPECT_EQ(address("[tile]", Space::kShared).offset, 0);
  EXPECT_EQ(address("[v]", Space::kGeneric).offset, static_cast<std::int64_t>(kLocalWindow));
  address("[%h]", Space::kGlobal);
  EXPECT_EQ(one->error(), "instruction mov: an address register is not 32 or 64 bits wide");
  address("%d", Space::kGlobal);
  EXPECT_EQ(one->error(), "instruction mov: an address in brackets is missing");
}

TEST_F(OperandRowsTest, Predicates) {
  const ast::Operand& negated = operand("!%p");
  const std::int32_t row = rows().read_predicate(negated);
  EXPECT_EQ(one->last().run, instruction_set().not_predicate);
  EXPECT_EQ(one->last().dst, row);
  const ast::Operand& pair = operand("%p|%q");
  EXPECT_EQ(rows().second_predicate(pair), one->decoder().frame.register_row(pair.second));
  const ast::Operand& single = operand("%p");
  EXPECT_EQ(rows().second_predicate(single), kNoRow);
  const ast::Operand& mixed = operand("%p|%r");
  rows().second_predicate(mixed);
  EXPECT_EQ(one->error(), "instruction mov: the second destination is not a predicate register");
  const ast::Operand& other = operand("%r");
  rows().write_predicate(other);
  EXPECT_EQ(one->error(), "instruction mov: the destination is not a predicate register");
}

TEST_F(OperandRowsTest, WhatDoesNotFitIsRefused) {
  struct Case {
    const char* text;
    Type type;
    const char* error;
  };
  for (const Case& c :
       {Case{"-%r", Type::kU32, "a sign on an operand"}, Case{"%r.b0", Type::kU32, "a selector on an operand"},
        Case{"%p", Type::kU32, "an operand does not fit"}, Case{"%w", Type::kU64, "an operand does not fit"},
        Case{"%nothing", Type::kU32, "special register %nothing is not supported"},
        Case{"%r", Type::kPred, "a predicate operand is not a predicate register"}}) {
    read(c.text, c.type);
    EXPECT_EQ(one->error(), std::string("instruction mov: ") + c.error);
  }
  const ast::Operand& constant = operand("5");
  rows().write(constant, Type::kU32);
  EXPECT_EQ(one->error(), "instruction mov: the destination is not a register of the type");
  const ast::Operand& narrow = operand("%d");
  rows().wide_row(narrow);
  EXPECT_EQ(one->error(), "instruction mov: an operand is not a 128-bit register");
}

}  // namespace
}  // namespace softgpu::ptx
