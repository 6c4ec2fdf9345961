// Plans are values: what is decided about an instruction is looked at before any text is written.
#include "gpu/fence/instruction_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {
namespace {

using Way = Confinement::Way;

// A function with registers and variables of all kinds, of which the statement is the last.
class InstructionPlanTest : public ::testing::Test {
 protected:
  Result<InstructionPlan> plan(const std::string& statement, const std::string& before = "") {
    text_ =
        ".version 8.4\n.target sm_90\n.address_size 64\n"
        ".global .align 4 .b32 placed[4];\n.const .align 4 .b32 table[4] = {1, 2, 3, 4};\n"
        ".func (.param .b32 r) f(.param .b32 a) {\nst.param.b32 [r], 0; ret;\n}\n"
        ".visible .entry k(.param .u64 in, .param .b32 n) {\n"
        ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
        ".shared .align 4 .b8 tile[64]; .local .align 8 .b8 mine[32];\n"
        "mov.u64 %rd7, f;\n" +
        before + "\nL:\n" + statement + "\n}\n";
    auto module = parse_ptx(text_);
    if (!module) return fail(module.error());
    module_ = std::move(*module);
    auto layout = lay_out(module_, options_);
    if (!layout) return fail(layout.error());
    layout_ = std::move(*layout);
    const Function& entry = module_.functions.back();
    facts_.emplace(facts_of(entry, layout_, options_));
    return plan_instruction(entry.items.back().instruction, *facts_);
  }

  template <class Kind>
  Kind plan_as(const std::string& statement, const std::string& before = "") {
    const auto planned = plan(statement, before);
    EXPECT_TRUE(planned) << statement << ": " << (planned ? "" : planned.error().message);
    if (!planned || !std::holds_alternative<Kind>(*planned)) {
      ADD_FAILURE() << statement << " has another kind of plan";
      return {};
    }
    return std::get<Kind>(*planned);
  }

  std::string refusal(const std::string& statement, const std::string& before = "") {
    const auto planned = plan(statement, before);
    return planned ? "" : planned.error().message;
  }

  FenceOptions options_{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32, .variables_address = 0x700000000000};
  std::string text_;
  Module module_;
  Layout layout_;
  std::optional<FunctionFacts> facts_;
};

TEST_F(InstructionPlanTest, RegistersAndNumbersStayAsTheyAre) {
  plan_as<AsWritten>("add.s32 %r1, %r2, -1;");
  plan_as<AsWritten>("mov.u32 %r1, %tid.x;");
  EXPECT_EQ(refusal("add.s32 %r1, %r2, placed;"), "'placed' is no register, and only mov and cvta may take an address");
  EXPECT_EQ(refusal("mov.u32 %r1, %envreg1;"),
            "the driver's workspace for cooperative launches lies outside the tenant's memory");
}

TEST_F(InstructionPlanTest, AnAddressWithinTheGuardHasACompanionAndOneBeyondIsSummed) {
  const Access near = plan_as<Access>("ld.global.u32 %r1, [%rd1+16];");
  EXPECT_EQ(near.operand, 1u);
  EXPECT_EQ(near.confinement.way, Way::kCompanion);
  EXPECT_EQ(plan_as<Access>("ld.global.u32 %r1, [%rd1+70000];").confinement.way, Way::kSum);
  EXPECT_EQ(plan_as<Access>("st.global.u32 [%r2], %r1;").confinement.way, Way::kSum);
  EXPECT_EQ(refusal("ld.global.u32 %r1, [%h1];"), "'%h1' is no register of 32 or 64 bits");
}

TEST_F(InstructionPlanTest, PlacedVariablesAreConstants) {
  const Access access = plan_as<Access>("ld.global.u32 %r1, [placed+8];");
  EXPECT_EQ(access.confinement.way, Way::kConstant);
  EXPECT_EQ(access.confinement.place, layout_.placed.at("placed").address + 8);
  EXPECT_EQ(refusal("ld.global.u32 %r1, [tile];"), "'tile' is no variable in global memory");
}

TEST_F(InstructionPlanTest, AGenericAddressMayBeWhatTheModuleHasVariablesIn) {
  const Access access = plan_as<Access>("ld.u32 %r1, [%rd1];");
  EXPECT_EQ(access.confinement.way, Way::kGeneric);
  EXPECT_TRUE(access.confinement.may_be_shared);
  EXPECT_TRUE(access.confinement.may_be_local);
  EXPECT_EQ(refusal("ld.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r0}, [%rd1];"),
            "it may reach local memory, of which one access takes at most 16 bytes");
  EXPECT_EQ(plan_as<Access>("prefetch.L2 [%rd1];").confinement.way, Way::kCompanion);  // nothing is read by a hint
}

TEST_F(InstructionPlanTest, AKnownPlaceOfLocalMemoryIsOneOfTheFrame) {
  const std::string step = "mov.u64 %rd1, mine;\nadd.s64 %rd2, %rd1, 8;";
  const Access access = plan_as<Access>("st.local.u32 [%rd2+4], %r1;", step);
  EXPECT_EQ(access.confinement.way, Way::kFrame);
  EXPECT_EQ(access.confinement.place, layout_.frames.at("k").offsets.begin()->second + 12);
  EXPECT_EQ(refusal("st.local.u32 [%rd2+24], %r1;", step), "offset 32 is outside variable 'mine' of 32 bytes");
  EXPECT_EQ(refusal("st.local.u32 [%rd2+-12], %r1;", step), "offset -4 is outside variable 'mine' of 32 bytes");
  // A second definition, and what %rd2 points to is not known any more.
  EXPECT_EQ(plan_as<Access>("st.local.u32 [%rd2+24], %r1;", step + "\nmov.u64 %rd2, %rd3;").confinement.way,
            Way::kArena);
}

TEST_F(InstructionPlanTest, AParameterIsReadInsideOfItself) {
  plan_as<AsWritten>("ld.param.u64 %rd1, [in];");
  plan_as<AsWritten>("ld.param.u32 %r1, [in+4];");
  EXPECT_EQ(refusal("ld.param.u64 %rd1, [in+4];"), "8 bytes at offset 4 are not inside parameter 'in' of 8 bytes");
  EXPECT_EQ(refusal("st.param.u32 [%rd1], %r1;"),
            "parameters are written by name, and read by name but for those of an entry");
}

TEST_F(InstructionPlanTest, ZerosThatWereThrownAwayAreNotLaidBare) {
  plan_as<LeftOut>("discard.global.L2 [%rd1], 128;");
}

TEST_F(InstructionPlanTest, ACopyIsConfinedAtItsSource) {
  EXPECT_EQ(plan_as<Access>("cp.async.ca.shared.global [tile], [%rd1], 16;").operand, 1u);
  EXPECT_EQ(refusal("cp.async.ca.shared.global [placed], [%rd1], 16;"), "its destination is not in shared memory");
  EXPECT_EQ(refusal("cp.async.ca.shared.global [%rd1], 16;"), "it must have two addresses");
}

TEST_F(InstructionPlanTest, AMatrixReachesAsFarAsItsLastRow) {
  const std::string fragment = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r0}";
  const MatrixAccess access =
      plan_as<MatrixAccess>("wmma.load.a.sync.aligned.m16n16k16.global.row.f16 " + fragment + ", [%rd1], %r2;");
  EXPECT_EQ(access.reach_bytes, 15u * 2);
  EXPECT_EQ(plan_as<MatrixAccess>("wmma.load.a.sync.aligned.m32n8k16.global.row.f16 " + fragment + ", [%rd1], %r2;")
                .reach_bytes,
            31u * 2);
  EXPECT_EQ(refusal("wmma.load.a.sync.aligned.m16n16k16.row.f16 " + fragment + ", [%rd1], %r2;"),
            "write .global or .shared: rows from a generic address may be in both");
}

// Where a modifier is added there must be one to stand before.
TEST_F(InstructionPlanTest, AnInstructionOfSharedMemoryNamesItsType) {
  EXPECT_TRUE(plan_as<SharedAccess>("ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1];").is_register);
  EXPECT_EQ(refusal("ldmatrix {%r1}, [%rd1];"), "it names no type");
  EXPECT_EQ(refusal("mbarrier [tile];"), "it names no type");
  EXPECT_EQ(refusal("ld.global.u32 %r1, [%rd1], [%rd2, %r1];"), "an address where none is known to stand");
}

TEST_F(InstructionPlanTest, AnAddressOfASymbolIsANumberOnceItIsPlaced) {
  const SymbolMove placed = plan_as<SymbolMove>("mov.u64 %rd1, placed;");
  EXPECT_EQ(placed.address.kind, SymbolAddress::Kind::kNumber);
  EXPECT_EQ(placed.address.value, layout_.placed.at("placed").address);
  const SymbolMove numbered = plan_as<SymbolMove>("mov.u64 %rd1, f;");  // makes the layout anew
  EXPECT_EQ(numbered.address.value, layout_.function_ids.at("f"));
  EXPECT_EQ(plan_as<SymbolMove>("mov.u32 %r1, tile;").address.kind, SymbolAddress::Kind::kSymbol);
  EXPECT_EQ(plan_as<SymbolMove>("mov.u32 %r1, mine;").address.kind, SymbolAddress::Kind::kFrame);
  EXPECT_EQ(refusal("mov.u32 %r1, placed;"), "an address goes to a register of 64 bits");
  EXPECT_EQ(refusal("mov.u64 %rd1, f+16;"), "'f' is no variable and no function with a body");
}

TEST_F(InstructionPlanTest, BranchesStayAmongTheLabelsOfTheFunction) {
  plan_as<AsWritten>("bra L;");
  EXPECT_EQ(refusal("bra f;"), "its target is no label of this function");
  EXPECT_EQ(plan_as<TableBranch>("brx.idx %r1, t;", "t: .branchtargets L, L, L;").targets, 3u);
  EXPECT_EQ(refusal("brx.idx %r1, t;", "t: .branchtargets L, f;"), "'f' is no label of this function");
  EXPECT_EQ(refusal("brx.idx %rd1, t;", "t: .branchtargets L;"), "its index is no register of 32 bits");
}

TEST_F(InstructionPlanTest, ACallHandsOverWhatItsTargetTakes) {
  const std::string declared = ".param .b32 r; .param .b32 a; .param .b64 wide;";
  EXPECT_EQ(plan_as<DirectCall>("call (r), f, (a);", declared).callee->name, "f");
  EXPECT_EQ(refusal("call (r), f, (wide);", declared), "'wide' has 8 bytes, 'a' has 4");
  EXPECT_EQ(refusal("call (r), f;", declared), "0 parameters or results for 1");
  EXPECT_EQ(refusal("call missing;", declared), "its target is no function of this module");
  const IndirectCall indirect = plan_as<IndirectCall>("call (r), %rd7, (a), t;", declared + "t: .calltargets f;");
  EXPECT_EQ(indirect.table->possible_targets().size(), 1u);
  EXPECT_EQ(refusal("call (r), %r1, (a), t;", declared + "t: .calltargets f;"), "its target is no register of 64 bits");
}

TEST_F(InstructionPlanTest, AShuffleByIndexIsCheckedWithinItsSegment) {
  EXPECT_EQ(plan_as<Shuffle>("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;").source, Shuffle::Source::kIndex);
  EXPECT_EQ(plan_as<Shuffle>("shfl.sync.idx.b32 %r1, %r2, 0, 0x181f, -1;").source, Shuffle::Source::kIndexInSegment);
  EXPECT_EQ(plan_as<Shuffle>("shfl.sync.idx.b32 %r1, %r2, 0, %r3, -1;").source, Shuffle::Source::kIndexInSegment);
  EXPECT_EQ(plan_as<Shuffle>("shfl.sync.down.b32 %r1, %r2, 1, 31, -1;").source, Shuffle::Source::kDown);
  EXPECT_EQ(refusal("shfl.sync.b32 %r1, %r2, 1, 31, -1;"), "its direction is not known to the fence");
  options_.clears_leftovers = false;
  plan_as<AsWritten>("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;");
}

TEST_F(InstructionPlanTest, WhatIsNotKnownIsRefused) {
  EXPECT_EQ(refusal("frobnicate.u32 %r1, %r2;"), "it is not known to the fence");
  EXPECT_EQ(refusal("ld.global.u32 %r1, [%rd1], [%rd2];"), "it must have one address");
}

}  // namespace
}  // namespace fairlead::fence
