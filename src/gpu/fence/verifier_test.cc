// The verifier against a fence with faults: text that the fence made is broken as a bug in it would break it, at every place
// where that can be done, and each of these mutants must be refused, by its line. All that is not broken must pass.
#include "gpu/fence/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>

#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using testing::fault_of;
using ::testing::HasSubstr;

constexpr FenceOptions kOptions{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};

// What the repository's kernels seldom or never do: arrays in .local of functions that call each other, calls by address,
// tables of branches, generic addresses, fragments, copies beside the computation.
constexpr char kEverything[] = R"(.version 7.8
.target sm_90
.address_size 64
.const .align 4 .b32 weights[4] = {1, 2, 3, 4};
.shared .align 16 .b8 tile[1024];
.func (.param .b32 r) leaf(.param .b64 p) {
  .reg .b64 %q<4>; .reg .b32 %v; .local .align 16 .b8 array[64];
  ld.param.u64 %q0, [p];
  mov.u64 %q1, array;
  add.u64 %q2, %q1, %q0;
  st.local.u32 [array+60], 1;
  ld.local.u32 %v, [%q2];
  st.param.b32 [r], %v;
  ret;
}
.func (.param .b32 r) middle(.param .b64 p) {
  .reg .b64 %q<4>; .reg .b32 %v; .local .align 16 .b8 array[32];
  ld.param.u64 %q0, [p];
  st.local.u32 [array+4], 1;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %q0; call (b), leaf, (a); ld.param.b32 %v, [b]; }
  st.param.b32 [r], %v;
  ret;
}
.visible .entry everything(.param .u64 out, .param .u32 n) {
  .reg .b64 %rd<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .pred %p<4>; .local .align 16 .b8 own[48];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u64 %rd2, middle;
  mov.u64 %rd2, leaf;
  P: .callprototype (.param .b32 _) _ (.param .b64 _);
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1; call (b), %rd2, (a), P; ld.param.b32 %r2, [b]; }
  st.local.u32 [own+44], %r2;
  T: .branchtargets A, B, C;
  brx.idx %r1, T;
A: ld.u32 %r3, [%rd1];
  mov.u64 %rd3, own;
  add.u64 %rd4, %rd3, %rd1;
  st.local.v4.u32 [%rd4], {%r2, %r2, %r2, %r2};
B: ld.const.u32 %r4, [weights+8];
  st.global.u32 [%rd1+16], %r4;
  st.global.u32 [%rd1+65536], %r4;
  cp.async.ca.shared.global [tile], [%rd1+32], 16;
  cp.async.wait_all;
C: wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12}, [%rd1], %r1;
  setp.lt.u32 %p1, %r1, 9;
  @%p1 bra B;
  red.global.add.u32 [%rd1], %r5;
  ret;
}
)";

// A companion that is set in the head and used in a loop, and one that is fenced where it is used.
constexpr char kLoops[] = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry loops(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
L: ld.global.u32 %r2, [%rd1+4];
  st.global.u32 [%rd1], %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 9;
  @%p bra L;
  add.u64 %rd2, %rd1, 8;
  @%p bra M;
  add.u64 %rd2, %rd2, 8;
M: st.global.u32 [%rd2], %r2;
  ret;
}
)";

std::string fenced(const std::string& ptx) {
  const Result<FencedModule> module = fence_ptx(ptx, kOptions);
  EXPECT_TRUE(module) << module.error().message;
  return module ? module->ptx : "";
}

struct Sample {
  std::string name, text;
};

// The fence's output for the modules above and for the kernels of the repository that can be fenced.
const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> found = {{"everything", fenced(kEverything)}, {"loops", fenced(kLoops)}};
    std::vector<std::filesystem::path> files = {FENCE_PTX_FILES};
    for (const auto& entry : std::filesystem::directory_iterator(FENCE_LIBRARY)) {
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
    }
    for (const auto& path : files) {
      std::ifstream file(path);
      found.push_back({path.string(), fenced({std::istreambuf_iterator<char>(file), {}})});
    }
    return found;
  }();
  return all;
}

TEST(Verifier, WhatTheFenceMakesPasses) {
  ASSERT_GE(samples().size(), 30u);
  for (const Sample& sample : samples()) EXPECT_EQ(fault_of(sample.text, kOptions), "") << sample.name;
}

// A place that `pattern` finds becomes `with`, a format of std::regex.
struct Fault {
  const char* name;
  const char* pattern;
  const char* with;
  std::size_t at_least = 1;  // so many places in all samples, or the fault shows nothing
};

// %1 the register of a pair, and so on. A temporary's pair is behind nothing that would make up for it.
constexpr Fault kFaults[] = {
    {"MaskDropped", R"(\nand\.b64 (%__fence_t1), \S+, 0xffffffff;)", ""},
    {"BaseDropped", R"(\nor\.b64 (%__fence_t1), \S+, 0x700000000000;)", ""},
    {"PairDropped", R"(\nand\.b64 (%__fence_t1), .*\nor\.b64 .*;)", ""},
    {"MaskOfALargerRange", R"((\nand\.b64 %__fence_[at]\d+, \S+, 0x)ffffffff;)", "$011ffffffff;", 100},
    {"MaskOfTheWrongWord", R"((\nand\.b64 %__fence_[at]\d+, \S+, 0x)ffffffff;)", "$01ffffffff00000000;", 100},
    {"BaseOfANeighbour", R"((\nor\.b64 %__fence_[at]\d+, \S+, 0x)700000000000;)", "$01700100000000;", 100},
    {"BaseOfHalfARange", R"((\nor\.b64 %__fence_[at]\d+, \S+, 0x)700000000000;)", "$01700080000000;", 100},
    {"ConstantOfANeighbour", R"(mov\.b64 (%__fence_\w+), 0x70000000(\w+);)", "mov.b64 $1, 0x70010000$2;"},
    {"MaskUnderAPredicate", R"(\n(and\.b64 %__fence_[at]\d+, .*;\nor\.b64 .*;))", "\nsetp.eq.u32 %p1, 0, 1;\n@%p1 $1",
     100},
    {"BaseUnderAPredicate", R"((\nand\.b64 %__fence_[at]\d+, .*;\n)(or\.b64 .*;))", "$1@%p1 $2", 100},
    {"LabelWithinAPair", R"((\nand\.b64 %__fence_[at]\d+, .*;\n)(or\.b64 .*;))", "$01__fence_within:\n$2", 100},
    {"JumpOverAPair", R"(\n(and\.b64 %__fence_t1, .*;\nor\.b64 .*;))", "\nbra __fence_over;\n$1\n__fence_over:"},
    {"LabelBehindAPair", R"(\n(and\.b64 %__fence_t1, .*;\nor\.b64 .*;))", "\n$1\n__fence_behind:"},
    {"SourceInPlaceOfThePair", R"(\nand\.b64 (%__fence_\w+), (%\w+), .*;\nor\.b64 .*;)", "\nmov.b64 $1, $2;", 100},
    {"CompanionStepped", R"(\n(and\.b64 (%__fence_[at]\d+), .*;\nor\.b64 .*;))", "\n$1\nadd.s64 $2, $2, 4;", 100},
    {"CompanionLoaded", R"(\n(and\.b64 (%__fence_[at]\d+), .*;\nor\.b64 .*;))", "\n$1\nld.global.b64 $2, [$2];", 100},
    {"CompanionSwapped", R"(\n(and\.b64 (%__fence_[at]\d+), .*;\nor\.b64 .*;))",
     "\n$1\nshfl.sync.bfly.b32 $2, %r1, 1, 31, -1;", 100},
    {"CompanionUnpacked", R"(\n(and\.b64 (%__fence_[at]\d+), .*;\nor\.b64 .*;))", "\n$1\nmov.b128 {%rd1, $2}, %r1;",
     100},
    {"OffsetBeyondTheGuard", R"((\n(?:@\S+ )?(?:ld|st|red|atom)\.global[^\[]*\[%__fence_\w+)(?:\+\d+)?\])", "$1+65536]",
     100},
    {"OffsetFarBelow", R"((\n(?:@\S+ )?(?:ld|st|red|atom)\.global[^\[]*\[%__fence_\w+)(?:\+\d+)?\])", "$1+-65537]",
     100},
    {"OffsetToTheEndOfAddresses", R"((\n(?:@\S+ )?(?:ld|st|red|atom)\.global[^\[]*\[%__fence_\w+)(?:\+\d+)?\])",
     "$1+9223372036854775807]", 100},
    {"AddressAsItWas", R"((\nor\.b64 %__fence_[at]\d+, .*;\n.*\[)%__fence_[at]\d+)", "$1%rd1", 50},
    {"AddressAsANumber", R"((\nor\.b64 %__fence_[at]\d+, .*;\n.*\[)%__fence_[at]\d+)", "$01123456789", 50},
    {"SpaceLeftOut", R"(((?:ld|st)\.)shared(\.\S+ .*\[%\w+))", "$1global$2"},
    {"SharedTestDropped", R"(\nisspacep\.shared .*;)", ""},
    {"SharedTestOfAnotherSpace", R"(isspacep\.shared)", "isspacep.global"},
    {"SharedTestOfTheCluster", R"(isspacep\.shared)", "isspacep.shared::cluster"},
    {"SharedTestOfAnotherAddress", R"((isspacep\.shared %__fence_p0, )%__fence_t0)", "$1%__fence_t1"},
    {"SharedTestBeforeTheAddressChanges", R"((isspacep\.shared %__fence_p0, %__fence_t0;))",
     "$1\nadd.s64 %__fence_t0, %__fence_t0, 8;"},
    {"ChoiceTurnedRound", R"(selp\.b64 %__fence_t1, %__fence_t0, %__fence_t1)",
     "selp.b64 %__fence_t1, %__fence_t1, %__fence_t0"},
    {"ChoiceUnderAPredicate", R"(\n(selp\.b64 %__fence_t1, .*;))", "\n@%p1 $1"},
    {"OffsetOfAGenericAddress", R"((\nselp\.b64 %__fence_t1, .*;\nld\..*\[%__fence_t1)\])", "$1+8]"},
    {"LocalMaskDropped", R"(\nand\.b64 (%__fence_t0), %__fence_t0, 0x[0-9a-f]+;)", ""},
    {"LocalMaskLarger", R"((and\.b64 %\w+, %\w+, 0x)(7f|3f);)", "$01ff;"},
    {"LocalBaseDropped", R"(\nadd\.s64 %__fence_t0, %__fence_t0, %__fence_(generic_)?arena;)", ""},
    {"LocalByTheGenericArena", R"(\nadd\.s64 %__fence_t0, %__fence_t0, %__fence_arena;)",
     "\nadd.s64 %__fence_t0, %__fence_t0, %__fence_generic_arena;"},
    {"GenericByTheLocalArena", R"(\nadd\.s64 %__fence_t0, %__fence_t0, %__fence_generic_arena;)",
     "\nadd.s64 %__fence_t0, %__fence_t0, %__fence_arena;"},
    {"LocalOfTheTenant", R"((\.local\.\w+ .*\[)%__fence_t0\])", "$1%rd1]"},
    {"LocalBesideTheArena", R"((\.local\.\S+ .*\[__fence_arena\+)\d+\])", "$011141]"},
    {"LocalBelowTheArena", R"((\.local\.\S+ .*\[__fence_arena\+)\d+\])", "$01-4]"},
    {"LocalBesideTheFrame", R"((\.local\.\S+ .*\[%__fence_frame\+)\d+\])", "$011141]"},
    {"ArenaSmaller", R"((__fence_arena\[)(272|528)\])", "$0196]"},
    {"AnotherVariableInLocal", R"(\n(\.local .*;))", "\n$1\n.local .align 16 .b8 other[64];"},
    {"ArenaOverwritten", R"(\n((?:mov|ld\.param)\.b64 %__fence_(?:arena|frame), .*;))",
     "\n$1\nadd.s64 %__fence_arena, %__fence_arena, 64;\nadd.s64 %__fence_frame, %__fence_frame, %rd1;"},
    {"FrameFartherThanTheArena",
     R"((add\.s64 %__fence_t0, %__fence_frame, )\d+;(\n.*\n.*\ncall \(\w+\), (?:leaf|middle),))", "$014096;$2"},
    {"FrameBelowTheArena", R"((add\.s64 %__fence_t0, %__fence_frame, )\d+;(\n.*\n.*\ncall \(\w+\), (?:leaf|middle),))",
     "$01-16;$2"},
    {"FrameHandedOverForTheArena", R"((\[__fence_arena_out\], )%__fence_arena)", "$1%__fence_t0"},
    {"ArenaNotHandedOver", R"(\nst\.param\.b64 \[__fence_arena_out\], %__fence_arena;)", ""},
    {"HalfTheArenaHandedOver", R"(\n(st\.param\.b64 \[__fence_arena_out\], %__fence_arena;))",
     "\n$1\nst.param.b32 [__fence_arena_out], %r1;"},
    {"ArenaAndFrameTurnedRound", R"(__fence_arena_out, __fence_frame_out\))", "__fence_frame_out, __fence_arena_out)"},
    {"OwnArenaStored", R"(\n(ld\.param\.b64 %__fence_arena, .*;))", "\nst.param.b64 [__fence_arena], %q0;\n$1"},
    {"CallThroughARegister", R"((call \(\w+\), )(leaf|middle),)", "$1%rd2,"},
    {"CallOfNobody", R"((call \(\w+\), )(leaf|middle),)", "$1malloc,"},
    {"CallOfAKernel", R"((call \(\w+\), )(leaf|middle),)", "$1everything,"},
    {"CallWithTooLittle", R"((call \(\w+\), (?:leaf|middle), \(\w+), __fence_arena_out)", "$1"},
    {"CallWithWhatAnotherUsedUp", R"(\n(call \(\w+\), (?:leaf|middle), .*;))", "\n$1\n$1"},
    {"CallByAPrototype", R"((call .*\));)", "$1, P;"},
    {"AddressOfAFunction", R"(mov\.b64 %rd2, 0x10;)", "mov.b64 %rd2, middle;"},
    {"ClampDropped", R"(\nmin\.u32 %__fence_w0, %r1, 2;)", ""},
    {"ClampOneTooFar", R"(\nmin\.u32 %__fence_w0, %r1, 2;)", "\nmin.u32 %__fence_w0, %r1, 3;"},
    {"ClampSigned", R"(\nmin\.u32 (%__fence_w0, %r1, 2;))", "\nmin.s32 $1"},
    {"ClampOfAnother", R"(brx\.idx %__fence_w0)", "brx.idx %r1"},
    {"TableShorter", R"(\.branchtargets A, B, C;)", ".branchtargets A, B;"},
    {"TableLeadsAway", R"(\.branchtargets A, B, C;)", ".branchtargets A, B, leaf;"},
    {"TwoTables", R"(\n(T: \.branchtargets A, B, C;))", "\n$1\n{\nT: .branchtargets A;\n}"},
    {"BranchToAFunction", R"(bra B;)", "bra leaf;"},
    {"StrideNotBounded", R"(\nmin\.u32 %__fence_w0, %r1, 0x7fffffff;)", "\nmov.u32 %__fence_w0, %r1;"},
    {"StrideOfFewerRows", R"(mul\.wide\.u32 %__fence_t0, %__fence_w0, 30;)",
     "mul.wide.u32 %__fence_t0, %__fence_w0, 28;"},
    {"StrideNotCompared", R"(\nsetp\.ge\.u64 %__fence_p0, .*;)", ""},
    {"StrideComparedWithMore", R"((setp\.ge\.u64 %__fence_p0, %__fence_t0, 0x)700100000000)", "$01700200000000"},
    {"StrideNotChosen", R"(\nselp\.b32 %__fence_w0, .*;)", ""},
    {"StrideChangedBehind", R"(\n(selp\.b32 %__fence_w0, .*;))", "\n$1\nadd.u32 %__fence_w0, %__fence_w0, 1;"},
    {"StrideChangedBeforeTheChoice", R"(\n(setp\.ge\.u64 %__fence_p0, .*;))", "\n$1\nmov.u32 %__fence_w0, %r1;"},
    {"StrideOfAnotherAddress", R"(\n(selp\.b32 %__fence_w0, .*;))", "\n$1\nmov.b64 %__fence_t1, 0x7000fffffff0;"},
    {"ParameterReadBehindItsEnd", R"((ld\.param\.\w+ .*, \[(?:out|n))\])", "$1+8]"},
    {"ConstantReadBehindItsEnd", R"(\[weights\+8\])", "[weights+16]"},
    {"ConstantWritten", R"(ld\.const\.u32 %r4, \[weights\+8\];)", "st.const.u32 [weights+8], %r4;"},
    {"VariableLeftInTheModule", R"(\n(\.shared .*;))", "\n$1\n.global .align 4 .b32 left;"},
    {"ConstantHoldsAnAddress", R"(\n(\.shared .*;))", "\n$1\n.const .align 8 .b64 held = tile;"},
    {"FunctionOfSomebodyElse", R"(\n(\.func))", "\n.func other ();\n$1"},
    {"FunctionTwice", R"(\n(\.func .* leaf ))", "\n.func leaf ()\n{\nret;\n}\n$1"},
    {"AliasThatHides", R"(\n$)", "\n.alias leaf, middle;\n"},
    {"ReturnDropped", R"((ret;\n)+\}\n$)", "}\n", 20},
    {"ReturnUnderAPredicate", R"((ret;\n)+\}\n$)", "@%p1 ret;\n}\n", 20},
    // What the parser skips, or reads in its own way.
    {"Comment", R"(\nret;)", "\n/* ret */ ret;", 20},
    {"CommentAtTheEnd", R"(\nret;)", "\nret; // ld.global.u32 %r1, [%rd1];", 20},
    {"DebugInformation", R"(\nret;)", "\n.loc 1 2 3\nret;", 20},
    {"Section", R"($)", ".section .debug_info { }\n", 20},
    {"Pragma", R"(\nret;)", "\n.pragma \"enable_smem_spilling\";\nret;", 20},
    {"NothingBehindTheText", R"($)", "\n", 20},
    {"Octal", R"((and\.b64 %__fence_[at]\d+, \S+, )0xffffffff;)", "$01037777777777;", 20},
    {"Unsigned", R"((and\.b64 %__fence_[at]\d+, \S+, )0xffffffff;)", "$010xffffffffU;", 20},
    {"Coordinates", R"((\n(?:@\S+ )?ld\.global[^\[]*\[%__fence_\w+(?:\+\d+)?)\])", "$1, 0]", 20},
    {"TwoOffsets", R"((\n(?:@\S+ )?ld\.global[^\[]*\[%__fence_\w+(?:\+\d+)?)\])", "$1+65536+-65536]", 20},
};

// The declarations that a fenced function has, and lines that are safe, each of which leaves out what the attacks below try.
std::string handwritten(const std::string& lines, const std::string& module = "") {
  return ".version 7.8\n.target sm_90\n.address_size 64\n" + module +
         ".visible .entry k (.param .align 8 .u64 p)\n{\n.reg .b64 %rd<8>;\n.reg .b32 %r<8>;\n.reg .pred %p<4>;\n"
         ".reg .b64 %__fence_a<2>;\n.reg .b64 %__fence_t<3>;\n.reg .b32 %__fence_w<2>;\n.reg .pred %__fence_p<3>;\n" +
         lines + "ret;\n}\n";
}

const std::string kPair = "and.b64 %__fence_a0, %rd1, 0xffffffff;\nor.b64 %__fence_a0, %__fence_a0, 0x700000000000;\n";
const std::string kSecondPair =
    "and.b64 %__fence_a1, %rd1, 0xffffffff;\nor.b64 %__fence_a1, %__fence_a1, 0x700000000000;\n";
const std::string kLoad = "ld.global.b32 %r1, [%__fence_a0];\n";

TEST(Verifier, BelievesWhatTheLinesBeforeProve) {
  EXPECT_EQ(fault_of(handwritten(kPair + kLoad), kOptions), "");
  EXPECT_EQ(fault_of(handwritten(kPair + "L:\n" + kLoad + "bra L;\n"), kOptions), "") << "of the head";
  EXPECT_EQ(fault_of(handwritten("mov.b64 %__fence_a0, 0x700000000000;\nL:\n" + kLoad + kPair + "bra L;\n"), kOptions),
            "")
      << "written by pairs alone";
  EXPECT_EQ(fault_of(handwritten("L:\n" + kPair + "bra M;\n" + kLoad + "M:\n" + kPair + kLoad), kOptions), "");
}

TEST(Verifier, SaysFunctionLineInstructionAndReason) {
  EXPECT_EQ(
      fault_of(handwritten(kLoad), kOptions),
      "the fence's output is not proved safe, which is a fault of the fence and not of the module: function 'k', line "
      "13: 'ld.global.b32 %r1, [%__fence_a0];': nothing holds '[%__fence_a0]' in the tenant's range");
  EXPECT_EQ(verify_fenced(handwritten(kLoad), kOptions).error().code, Errc::kInternal);
  EXPECT_LE(fault_of(handwritten("x" + std::string(100'000, 'y') + " %r1;\n"), kOptions).size(), 1200u);
}

// What somebody tried who wanted a module that is accepted and leaves its range.
TEST(Verifier, IsNotTalkedInto) {
  const std::string kTwoWays = "setp.eq.u64 %p1, %rd1, 0;\n";
  const std::pair<const char*, std::string> kAttacks[] = {
      {"a head that a branch leaves early", kTwoWays + "@%p1 bra L;\n" + kPair + "L:\n" + kLoad},
      {"a companion that a loop changes behind its use",
       kPair + "L:\n" + kLoad + "add.s64 %__fence_a0, %__fence_a0, 4096;\nbra L;\n"},
      {"half a pair at the end of a loop", kPair + "L:\n" + kLoad + "and.b64 %__fence_a0, %rd1, 0xffffffff;\nbra L;\n"},
      {"a pair with a way into its middle",
       kPair + "L:\n" + kLoad +
           "and.b64 %__fence_a0, %rd1, 0xffffffff;\n@%p1 bra L;\nor.b64 %__fence_a0, %__fence_a0, "
           "0x700000000000;\nbra L;\n"},
      {"a pair of two registers",
       "and.b64 %__fence_a1, %rd1, 0xffffffff;\nor.b64 %__fence_a0, %__fence_a1, "
       "0x700000000000;\nL:\n" +
           kLoad + "or.b64 %__fence_a0, %__fence_a0, 0x700000000000;\nbra L;\n"},
      {"a pair of one's own registers",
       "and.b64 %rd2, %rd1, 0xffffffff;\nor.b64 %rd2, %rd2, 0x700000000000;\nld.global.b32 %r1, [%rd2];\n"},
      {"a companion of another scope",
       kPair + "{\n.reg .b64 %__fence_a0;\nmov.b64 %__fence_a0, %rd1;\n" + kLoad + "}\n"},
      {"a companion of 32 bits", "{\n.reg .b32 %__fence_a0;\n" + kPair + kLoad + "}\n"},
      {"a mask that is 32 bits of another meaning",
       "and.b32 %__fence_a0, %rd1, 0xffffffff;\nor.b64 %__fence_a0, %__fence_a0, 0x700000000000;\n" + kLoad},
      {"a mask that is negative",
       "and.b64 %__fence_a0, %rd1, -1;\nor.b64 %__fence_a0, %__fence_a0, 0x700000000000;\n" + kLoad},
      {"a second result", kPair + "setp.eq.u32 %p1|%__fence_a0, %r1, 0;\n" + kLoad},
      {"one of several results", kPair + "ld.global.v2.b64 {%rd1, %__fence_a0}, [%__fence_a0];\n" + kLoad},
      {"a result of a call", kPair + "call (%__fence_a0), f, ();\n" + kLoad},
      {"a part of a result", kPair + "vadd.u32.u32.u32 %__fence_a0.b0, %r1, %r2;\n" + kLoad},
      {"shared memory asked about, and changed on another way",
       "mov.b64 %__fence_t0, %rd1;\nisspacep.shared %__fence_p0, %__fence_t0;\nL:\n" + kSecondPair +
           "selp.b64 %__fence_t1, %__fence_t0, %__fence_a1, %__fence_p0;\nld.b32 %r1, [%__fence_t1];\nadd.s64 "
           "%__fence_t0, "
           "%__fence_t0, 4096;\nbra L;\n"},
      {"shared memory asked about, and the answer turned round",
       "mov.b64 %__fence_t0, %rd1;\nisspacep.shared %__fence_p0, %__fence_t0;\nnot.pred %__fence_p0, %__fence_p0;\n" +
           kSecondPair + "selp.b64 %__fence_t1, %__fence_t0, %__fence_a1, %__fence_p0;\nld.b32 %r1, [%__fence_t1];\n"},
      {"shared memory taken for global",
       "mov.b64 %__fence_t0, %rd1;\nisspacep.shared %__fence_p0, %__fence_t0;\n" + kSecondPair +
           "selp.b64 %__fence_t1, %__fence_t0, %__fence_a1, %__fence_p0;\nld.global.b32 %r1, [%__fence_t1];\n"},
      {"a vector behind the mask of the arena",
       ".local .align 16 .b8 __fence_arena[32];\nmov.b64 %__fence_t1, __fence_arena;\nand.b64 %__fence_t0, %rd1, 0xf;\n"
       "add.s64 %__fence_t0, %__fence_t0, %__fence_t1;\nld.local.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
       "[%__fence_t0];\n"},
      {"an address of code", "mov.u64 %rd1, k;\n"},
      {"a branch to what a register holds", "bra %rd1;\n"},
      {"a branch to a table", "T: .branchtargets L;\nL:\nbra T;\n"},
      {"an index that is bounded on one way",
       "T: .branchtargets L, M;\nmin.u32 %__fence_w0, %r1, 1;\nL:\nM:\nbrx.idx "
       "%__fence_w0, T;\nadd.u32 %__fence_w0, %__fence_w0, 1;\nbra L;\n"},
      {"a copy whose source is not fenced", kPair + "cp.async.ca.shared.global [%__fence_a0], [%rd1], 16;\n"},
      {"a copy in bulk", kPair + "cp.async.bulk.global.shared::cta.bulk_group [%__fence_a0], [%r1], %r2;\n"},
      {"a store in bulk", kPair + "st.bulk.weak.global [%__fence_a0], %rd2, 0;\n"},
      {"zeros thrown away", kPair + "discard.global.L2 [%__fence_a0], 128;\n"},
      {"two addresses", kPair + "st.global.b32 [%__fence_a0], [%rd1];\n"},
      {"an address in a plain instruction", "add.u64 %rd2, [%rd1], 0;\n"},
      {"two spaces", kPair + "ld.shared.global.b32 %r1, [%rd1];\n"},
      {"a space of two words", "ld.shared::cta::global.b32 %r1, [%rd1];\nld.global::x.b32 %r1, [%rd1];\n"},
      {"the driver's memory", "mov.b32 %r1, %envreg3;\n"},
      {"memory of the multicast kind", kPair + "multimem.ld_reduce.global.add.u32 %r1, [%__fence_a0];\n"},
      {"a table that another scope has, too",
       "T: .branchtargets L;\n{\nT: .branchtargets L, L, L;\nmin.u32 %__fence_w0, %r1, 2;\nbrx.idx %__fence_w0, "
       "T;\n}\nL:\n"},
  };
  const std::string function = ".func (.param .align 8 .b64 r) f ()\n{\nst.param.b64 [r], 0;\nret;\n}\n";
  for (const auto& [name, lines] : kAttacks) EXPECT_NE(fault_of(handwritten(lines, function), kOptions), "") << name;
}

TEST(Verifier, WantsTheWholeTextAndARange) {
  const std::string text = handwritten(kPair + kLoad);
  EXPECT_THAT(fault_of(text + std::string(1, '\0') + "x", kOptions), HasSubstr("more than it reads as"));
  EXPECT_NE(fault_of("", kOptions), "");
  EXPECT_THAT(fault_of(text, {}), HasSubstr("the range is none"));
  EXPECT_THAT(fault_of(text, {.base = kOptions.base, .bytes = 3}), HasSubstr("the range is none"));
  FenceOptions other = kOptions;
  other.base += other.bytes;
  EXPECT_THAT(fault_of(text, other), HasSubstr("nothing holds")) << "of another tenant";
  other = kOptions;
  other.bytes /= 2;
  EXPECT_THAT(fault_of(text, other), HasSubstr("nothing holds")) << "of half the range";
}

TEST(Verifier, FramesOfACircleOfCallsAreBoundedOrRefused) {
  const auto circle = [](int step) {
    const std::string handed =
        "{\n.param .align 8 .b64 a;\n.param .align 8 .b64 b;\nadd.s64 %__fence_t0, %__fence_frame, " +
        std::to_string(step) +
        ";\nst.param.b64 [a], %__fence_arena;\nst.param.b64 [b], %__fence_t0;\ncall f, (a, b);\n}\n";
    const std::string head = ".reg .b64 %__fence_arena, %__fence_frame, %__fence_t<3>;\n";
    return ".version 7.8\n.target sm_90\n.address_size 64\n.func f (.param .align 8 .b64 __fence_arena, .param .align "
           "8 .b64 "
           "__fence_frame)\n{\n" +
           head +
           "ld.param.b64 %__fence_arena, [__fence_arena];\nld.param.b64 %__fence_frame, [__fence_frame];\n"
           "st.local.b32 [%__fence_frame+28], 0;\n" +
           handed + "ret;\n}\n.visible .entry k ()\n{\n.local .align 16 .b8 __fence_arena[32];\n" + head +
           "mov.b64 %__fence_arena, __fence_arena;\nmov.b64 %__fence_frame, %__fence_arena;\n" + handed + "ret;\n}\n";
  };
  EXPECT_EQ(fault_of(circle(0), kOptions), "");
  EXPECT_THAT(fault_of(circle(16), kOptions), HasSubstr("nothing bounds their frames"));
}

class VerifierFaults : public ::testing::TestWithParam<Fault> {};

// The places are spread over each sample, so that many kinds of surroundings are tried.
TEST_P(VerifierFaults, AreSeenWhereverTheyAre) {
  constexpr std::size_t kMostOfASample = 4;
  constexpr std::size_t kLargestBroken = 64 << 10;  // beyond that a file has the same kernel for many types
  const std::regex pattern(GetParam().pattern);
  std::size_t places = 0;
  for (const Sample& sample : samples()) {
    if (sample.text.size() > kLargestBroken) continue;
    std::vector<std::smatch> matches(std::sregex_iterator(sample.text.begin(), sample.text.end(), pattern), {});
    const std::size_t step = matches.size() / kMostOfASample + 1;
    places += matches.size();
    for (std::size_t i = 0; i < matches.size(); i += step) {
      const std::string broken =
          matches[i].prefix().str() + matches[i].format(GetParam().with) + matches[i].suffix().str();
      EXPECT_NE(fault_of(broken, kOptions), "")
          << sample.name << ": '" << matches[i].str() << "' became '" << matches[i].format(GetParam().with) << "'";
    }
  }
  EXPECT_GE(places, GetParam().at_least);
}

INSTANTIATE_TEST_SUITE_P(Fence, VerifierFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace fairlead::fence
