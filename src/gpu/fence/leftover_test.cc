// Kernels that read what they have not written, after a kernel of somebody else has filled registers, shared and local
// memory with a secret: in one context, as in a device server of several tenants. The software GPU clears none of these
// between kernels. Each must find the secret as it is, which proves that the test can see it, and zeros when it is fenced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/testing/leftover_checker.h"
#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using ::testing::HasSubstr;
using testing::Neighbourhood;
using ::testing::Not;

constexpr std::uint8_t kSecret = 0x5e;
constexpr unsigned kDynamic = 16384;
constexpr std::uint64_t kMark = 0x10000;  // where a kernel says that it came to its end

std::string repeated(int times, const std::function<std::string(int)>& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text(i);
  return all;
}

// 200 registers of 64 bits that all live at once, 48 KiB of shared and 4 KiB of local memory: all hold the secret.
std::string victim() {
  return ".version 7.1\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 more[];\n"
         ".visible .entry fill(.param .u64 own, .param .u64 secret) {\n"
         ".reg .b64 %s<200>, %own, %at, %sum; .reg .b32 %a, %b; .reg .pred %p;\n"
         ".shared .align 16 .b8 all[32768]; .local .align 16 .b8 frame[4096];\n"
         "ld.param.u64 %own, [own]; ld.param.u64 %s0, [secret];\n" +
         repeated(199, [](int i) { return fmt::format("add.u64 %s{}, %s0, 0;\n", i + 1); }) +
         "mov.u32 %a, all; add.u32 %b, %a, 49152;\n"
         "SHARED: st.shared.u64 [%a], %s0; add.u32 %a, %a, 8; setp.lt.u32 %p, %a, %b; @%p bra SHARED;\n"
         "mov.u64 %at, frame; mov.u32 %b, 0;\n"
         "LOCAL: st.local.u64 [%at], %s0; add.u64 %at, %at, 8; add.u32 %b, %b, 8; setp.lt.u32 %p, %b, 4096;"
         "@%p bra LOCAL; mov.u64 %sum, 0;\n" +
         repeated(200, [](int i) { return fmt::format("add.u64 %sum, %sum, %s{};\n", i); }) +
         "st.global.u64 [%own], %sum; ret;\n}\n";
}

struct Leftover {
  const char* name;
  const char* body;           // %own: 16 bytes of this thread; %i: its number; %x: 94, a byte of the secret; %zero: 0
  const char* preamble = "";  // of the module
};

constexpr Leftover kLeftovers[] = {
    {"Registers", "st.global.u32 [%own], %u0; st.global.u32 [%own+4], %u1; st.global.u32 [%own+8], %u2;"},
    {"RegistersOf16Bits", ".reg .b16 %h<4>; st.global.v4.u16 [%own], {%h0, %h1, %h2, %h3};"},
    {"RegistersOf64Bits", ".reg .b64 %w<4>; st.global.v2.u64 [%own], {%w0, %w1}; st.global.v2.u64 [%own], {%w2, %w3};"},
    {"RegisterOf128Bits", ".reg .b128 %w; mov.b128 {%a, %b}, %w; st.global.v2.u64 [%own], {%a, %b};"},
    {"Floats", ".reg .f32 %f<4>; st.global.v4.f32 [%own], {%f0, %f1, %f2, %f3};"},
    {"Doubles", ".reg .f64 %f<4>; st.global.v2.f64 [%own], {%f0, %f1}; st.global.v2.f64 [%own], {%f2, %f3};"},
    {"Halves", ".reg .f16 %f<4>; st.global.v4.b16 [%own], {%f0, %f1, %f2, %f3};"},
    {"PairsOfHalves", ".reg .f16x2 %f<4>; st.global.v4.b32 [%own], {%f0, %f1, %f2, %f3};"},
    {"Vector", "st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};"},
    {"PartOfAVector", "mov.u32 %u0, 0; mov.u32 %u2, 0; st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};"},
    {"Predicate", ".reg .pred %q; selp.u32 %y, %x, 0, %q; st.global.u32 [%own], %y;"},
    {"Guard", ".reg .pred %q; @%q st.global.u32 [%own], %x;"},
    {"NegatedPredicate", ".reg .pred %q; not.pred %p, %q; selp.u32 %y, 0, %x, %p; st.global.u32 [%own], %y;"},
    {"Address", "and.b32 %y, %u0, 255; cvt.u64.u32 %a, %y; st.global.u64 [%own], %a;"},
    {"Unpacked",
     ".reg .b64 %w<3>; mov.b64 {%u0, %u1}, %w0; mov.b64 {%u2, %u3}, %w1; mov.b64 {%y, _}, %w2;"
     "st.global.v4.u32 [%own], {%u0, %u1, %u2, %y};"},
    {"WrittenUnderAPredicate", "setp.ne.u32 %p, %zero, 0; @%p mov.u32 %u0, 1; st.global.u32 [%own], %u0;"},
    {"WrittenOnOneWay", "setp.eq.u32 %p, %zero, 0; @%p bra ON; mov.u32 %u0, 1; ON: st.global.u32 [%own], %u0;"},
    {"WrittenBehindTheRead", "L: st.global.u32 [%own], %u0; setp.ne.u32 %p, %zero, 0; mov.u32 %u0, 1; @%p bra L;"},
    {"WrittenInALoopThatDoesNotRun",
     "L: setp.eq.u32 %p, %zero, 0; @%p bra ON; mov.u32 %u0, 1; bra L; ON: st.global.u32 [%own], %u0;"},
    {"WrittenOnOneWayOfATable",
     "T: .branchtargets A, B; brx.idx %zero, T; B: mov.u32 %u0, 1; A: st.global.u32 [%own], %u0;"},
    {"WrittenByACallThatIsNotMade",
     "{ .param .b32 r; setp.ne.u32 %p, %zero, 0; @!%p bra ON; call (r), one, (); ld.param.b32 %u0, [r]; } ON:"
     "st.global.u32 [%own], %u0;",
     ".func (.param .b32 r) one() { st.param.b32 [r], 1; ret; }"},
    {"InAScope", "{ .reg .b32 %u0; st.global.u32 [%own], %u0; } mov.u32 %u0, 0;"},
    {"InAScopeThatHidesAnother",
     "mov.u32 %u0, 0; { .reg .b32 %u0; st.global.u32 [%own], %u0; } st.global.u32 [%own+4], %u0;"},
    {"BehindAScopeThatHidesIt", "{ .reg .b64 %u0; mov.u64 %u0, 0; } st.global.u32 [%own], %u0;"},
    {"InAFunction", "{ .param .b64 p; st.param.b64 [p], %own; call poke, (p); }",
     ".func poke(.param .b64 p) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p]; st.global.u32 [%q], %v; ret; }"},
    {"InAFunctionByItsAddress",
     "mov.u64 %a, poke; { .param .b64 p; st.param.b64 [p], %own; P: .callprototype _ (.param .b64 _); call %a, (p), P; "
     "}",
     ".func poke(.param .b64 p) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p]; st.global.u32 [%q], %v; ret; }"},
    {"Result", "{ .param .b32 r; call (r), none, (); ld.param.b32 %y, [r]; } st.global.u32 [%own], %y;",
     ".func (.param .b32 r) none() { ret; }"},
    {"ResultOnOneWay",
     "{ .param .b32 r; .param .b32 z; st.param.b32 [z], %zero; call (r), none, (z); ld.param.b32 %y, [r]; }"
     "st.global.u32 [%own], %y;",
     ".func (.param .b32 r) none(.param .b32 z) { .reg .b32 %z; .reg .pred %p; ld.param.b32 %z, [z];"
     "setp.eq.u32 %p, %z, 0; @%p ret; st.param.b32 [r], 1; ret; }"},
    {"PartOfAResult", "{ .param .b64 r; call (r), half, (); ld.param.b64 %a, [r]; } st.global.u64 [%own], %a;",
     ".func (.param .b64 r) half() { st.param.b32 [r], 0; ret; }"},
    {"Argument", "{ .param .b64 p; .param .b32 v; st.param.b64 [p], %own; call poke, (p, v); }",
     ".func poke(.param .b64 p, .param .b32 v) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p];"
     "ld.param.b32 %v, [v]; st.global.u32 [%q], %v; ret; }"},
    {"PaddingOfAnArgument",
     "{ .param .b64 p; .param .align 8 .b8 v[16]; st.param.b64 [p], %own; st.param.b32 [v], 0; st.param.b64 [v+8], 0;"
     "call poke, (p, v); }",
     ".func poke(.param .b64 p, .param .align 8 .b8 v[16]) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p];"
     "ld.param.b32 %v, [v+4]; st.global.u32 [%q], %v; ret; }"},
    {"ArgumentThatIsOnlyRead", "{ .param .b32 v; ld.param.b32 %y, [v]; st.global.u32 [%own], %y; }"},
    {"Shared", "ld.shared.u32 %y, [tile]; st.global.u32 [%own], %y;"},
    {"SharedByRegister",
     "mov.u32 %y, tile; add.u32 %y, %y, 128; ld.shared.v4.u32 {%u0, %u1, %u2, %u3}, [%y];"
     "st.global.v4.u32 [%own], {%u0, %u1, %u2, %u3};"},
    {"SharedByGenericAddress", "mov.u64 %a, tile; cvta.shared.u64 %a, %a; ld.u32 %y, [%a]; st.u32 [%own], %y;"},
    {"SharedByAtomic", "atom.shared.or.b32 %y, [tile], 0; st.global.u32 [%own], %y;"},
    {"SharedByMatrix",
     "mov.u32 %y, tile; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%y}, [%y]; st.global.u32 [%own], %y;"},
    {"SharedByFragment",
     "mov.u32 %y, tile; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%u0, %u1, %u2, %u3, %u4, %u5, %u6, %u7}, "
     "[%y],"
     "16; st.global.u32 [%own], %u0;"},
    {"SharedBehindTheVariable", "ld.shared.u32 %y, [tile+4096]; st.global.u32 [%own], %y;"},
    {"SharedAtItsEnd", "mov.u32 %y, more; ld.shared.u32 %y, [%y+16380]; st.global.u32 [%own], %y;",
     ".extern .shared .align 16 .b8 more[];"},
    {"SharedOfTheModule", "ld.shared.u32 %y, [wide]; st.global.u32 [%own], %y;", ".shared .align 4 .b8 wide[1000];"},
    {"SharedOfAScope", "{ .shared .b32 tile; ld.shared.u32 %y, [tile]; st.global.u32 [%own], %y; }"},
    {"SharedInAFunction", "{ .param .b64 p; st.param.b64 [p], %own; call poke, (p); }",
     ".func poke(.param .b64 p) { .shared .b32 s; .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p];"
     "ld.shared.b32 %v, [s]; st.global.u32 [%q], %v; ret; }"},
    {"SharedByAnAddressOfNobody", "mov.u32 %y, 0; ld.shared.u32 %y, [%y]; st.global.u32 [%own], %y;"},
    {"Local", ".local .align 16 .b8 frame[256]; ld.local.u32 %y, [frame+128]; st.global.u32 [%own], %y;"},
    {"LocalByRegister",
     ".local .align 16 .b8 frame[2048]; mov.u64 %a, frame; add.u64 %a, %a, 1024;"
     "mul.wide.u32 %b, %zero, 4; add.u64 %a, %a, %b; ld.local.u32 %y, [%a]; st.global.u32 [%own], %y;"},
    {"LocalByGenericAddress",
     ".local .b32 frame; mov.u64 %a, frame; cvta.local.u64 %a, %a; ld.u32 %y, [%a];"
     "st.u32 [%own], %y;"},
    {"LocalInAFunction", "{ .param .b64 p; st.param.b64 [p], %own; call poke, (p); }",
     ".func poke(.param .b64 p) { .local .b32 s; .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p];"
     "ld.local.b32 %v, [s]; st.global.u32 [%q], %v; ret; }"},
};

std::string module_of(const Leftover& leftover) {
  return std::string(".version 8.3\n.target sm_80\n.address_size 64\n") + leftover.preamble +
         "\n.visible .entry find(.param .u64 own) {\n"
         ".reg .b64 %own, %mark, %a, %b; .reg .b32 %i, %x, %y, %zero, %u<8>; .reg .pred %p;\n"
         ".shared .align 16 .b8 tile[1024];\n"
         "ld.param.u64 %own, [own]; add.u64 %mark, %own, 65536; mov.u32 %i, %tid.x; mul.wide.u32 %a, %i, 16;\n"
         "add.u64 %own, %own, %a; mov.u32 %x, 94; mov.u32 %zero, %ctaid.y;\n" +
         leftover.body +
         // All live to the end, so that what is not written has a place of its own.
         "\nst.global.u32 [%mark], 1; st.global.v2.u64 [%mark+16], {%own, %a};"
         "st.global.v4.u32 [%mark+32], {%i, %x, %zero, %zero}; ret;\n}\n";
}

// What a kernel has found: in the bytes that it writes to.
struct Found {
  bool is_secret = false, is_anything = false, came_to_its_end = false;
};

// A block, and its dynamic shared memory.
struct Shape {
  unsigned x = 32, y = 1, z = 1, shared = kDynamic;
};

class SharedTest : public ::testing::Test {
 protected:
  static constexpr int kAttempts = 50;
  static constexpr std::uint64_t kPlain = 0, kFenced = Neighbourhood::kRange / 4,
                                 kElsewhere = Neighbourhood::kRange / 2;

  Found found_at(std::uint64_t offset) {
    const auto seen = memory_.read(memory_.own() + offset, kMark + 1);
    const auto end = seen.begin() + kMark;
    return {.is_secret = std::find(seen.begin(), end, kSecret) != end,
            .is_anything = std::any_of(seen.begin(), end, [](std::uint8_t byte) { return byte != 0; }),
            .came_to_its_end = seen[kMark] == 1};
  }

  // The victim, the kernel as it is and the kernel as it is fenced, one behind the other. Where the victim ran on another
  // of the software GPU's threads neither finds anything, so that it does not count.
  CUresult find(const std::string& plain, const std::string& fenced, const Shape& shape = {}) {
    CUresult result = CUDA_SUCCESS;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      memory_.fill(memory_.own(), 0, kElsewhere);
      std::vector<Neighbourhood::Run> runs = {
          {.ptx = victim(), .kernel = "fill", .parameters = {memory_.own() + kElsewhere, 0x5e5e5e5e5e5e5e5e}},
          {.ptx = plain, .kernel = "find", .parameters = {memory_.own() + kPlain}},
          {.ptx = fenced, .kernel = "find", .parameters = {memory_.own() + kFenced}}};
      for (Neighbourhood::Run& run : runs) {
        run.x = shape.x, run.y = shape.y, run.z = shape.z, run.shared = shape.shared;
      }
      runs[0].x = 32, runs[0].y = runs[0].z = 1, runs[0].shared = kDynamic;
      result = memory_.run(runs);
      if (found_at(kPlain).is_secret) break;
    }
    return result;
  }
  FenceOptions options() const { return {.base = memory_.own(), .bytes = Neighbourhood::kRange}; }

  Neighbourhood memory_;
};

class LeftoverTest : public SharedTest, public ::testing::WithParamInterface<Leftover> {};

TEST_P(LeftoverTest, IsTheSecretAsItIsAndZeroWhenFenced) {
  const std::string ptx = module_of(GetParam());
  const Result<FencedModule> fenced = fence_ptx(ptx, options());
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(testing::leftover_read(fenced->ptx), "") << fenced->ptx;
  EXPECT_EQ(testing::fault_of(fenced->ptx, options()), "") << fenced->ptx;
  ASSERT_EQ(find(ptx, fenced->ptx), CUDA_SUCCESS) << fenced->ptx;
  ASSERT_TRUE(found_at(kPlain).is_secret) << "the attack finds nothing, so it shows nothing: " << ptx;
  EXPECT_TRUE(found_at(kFenced).came_to_its_end) << fenced->ptx;
  EXPECT_FALSE(found_at(kFenced).is_anything) << fenced->ptx;
}

INSTANTIATE_TEST_SUITE_P(Fence, LeftoverTest, ::testing::ValuesIn(kLeftovers),
                         [](const auto& leftover) { return leftover.param.name; });

// At these the loop that clears it begins and ends otherwise.
// Thread 0 puts together every byte of the block's shared memory.
constexpr char kSum[] = R"(.version 7.1
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry find(.param .u64 own) {
  .reg .b64 %own; .reg .b32 %x, %y, %at, %end, %byte, %sum; .reg .pred %p;
  .shared .align 4 .b8 tile[1004];
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; or.b32 %x, %x, %y; mov.u32 %y, %tid.z; or.b32 %x, %x, %y;
  setp.ne.u32 %p, %x, 0; @%p ret;
  ld.param.u64 %own, [own]; mov.u32 %at, tile; mov.u32 %end, more; mov.u32 %x, %dynamic_smem_size;
  add.u32 %end, %end, %x; mov.u32 %sum, 0;
NEXT:
  ld.shared.u8 %byte, [%at]; or.b32 %sum, %sum, %byte; add.u32 %at, %at, 1; setp.lt.u32 %p, %at, %end; @%p bra NEXT;
  st.global.u32 [%own], %sum; st.global.u8 [%own+65536], 1;
  ret;
})";

TEST_F(SharedTest, AllOfItIsClearedWhateverTheBlock) {
  constexpr Shape kShapes[] = {{1, 1, 1, 0},     {1, 1, 1, 1},     {1, 1, 1, 15000},  {32, 1, 1, 4099},
                               {33, 1, 1, 16},   {7, 5, 3, 1000},  {1024, 1, 1, 100}, {8, 8, 16, 9999},
                               {1, 1, 64, 4096}, {2, 31, 1, 16384}};
  const Result<FencedModule> fenced = fence_ptx(kSum, options());
  ASSERT_TRUE(fenced) << fenced.error().message;
  for (const Shape& shape : kShapes) {
    ASSERT_EQ(find(kSum, fenced->ptx, shape), CUDA_SUCCESS);
    const std::string where = fmt::format("{} x {} x {}, {}", shape.x, shape.y, shape.z, shape.shared);
    EXPECT_TRUE(found_at(kPlain).is_secret) << where;
    EXPECT_TRUE(found_at(kFenced).came_to_its_end) << where;
    EXPECT_FALSE(found_at(kFenced).is_anything) << where;
  }
}

// The registers of 31 lanes that are not there.
TEST_F(SharedTest, AMatrixInstructionShowsNoLaneThatIsNotThere) {
  const std::string ptx = module_of(
      {"",
       "add.u64 %b, %mark, 4096; ld.global.v4.u32 {%u0, %u1, %u2, %u3}, [%b]; ld.global.v4.u32 {%u4, %u5, %u6, %u7}, "
       "[%b];"
       ".reg .f32 %f<8>; mov.b32 %f0, %u0; mov.b32 %f1, %u1; mov.b32 %f2, %u2; mov.b32 %f3, %u3; mov.b32 %f4, %u4;"
       "mov.b32 %f5, %u5; mov.b32 %f6, %u6; mov.b32 %f7, %u7; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 "
       "[%own],"
       "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;"});
  const Result<FencedModule> fenced = fence_ptx(ptx, options());
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_NE(find(ptx, fenced->ptx, {.x = 1}), CUDA_SUCCESS);
  ASSERT_TRUE(found_at(kPlain).is_secret);
  EXPECT_FALSE(found_at(kFenced).is_anything);
}

// What must compute the same although shared memory is cleared before: %own is 16 bytes of this thread, %i its number.
constexpr Leftover kHonest[] = {
    {"ALoopThroughSharedMemory",
     "shl.b32 %y, %i, 2; mov.u32 %u0, tile; add.u32 %u0, %u0, %y; st.shared.u32 [%u0], %i; NEXT: ld.shared.u32 %u1, "
     "[%u0];"
     "add.u32 %u1, %u1, 3; st.shared.u32 [%u0], %u1; setp.lt.u32 %p, %u1, 200; @%p bra NEXT; st.global.u32 [%own], "
     "%u1;"},
    {"BarriersOfSomeThreads",
     "mov.u32 %u0, tile; shl.b32 %y, %i, 2; add.u32 %u0, %u0, %y; setp.lt.u32 %p, %i, 32; @!%p bra REST;"
     "st.shared.u32 [%u0], %i; bar.sync 0, 32; bar.arrive 3, 64; st.global.u32 [%own], %i; bra DONE;"
     "REST: setp.ge.u32 %p, %i, 64; @%p bra DONE; bar.sync 3, 64; sub.u32 %u0, %u0, 128; ld.shared.u32 %u1, [%u0];"
     "st.global.u32 [%own], %u1; DONE:"},
    {"ThreadsThatEndFirst",
     "and.b32 %y, %i, 1; setp.eq.u32 %p, %y, 0; @%p exit; mov.u32 %u0, tile; shl.b32 %y, %i, 2; add.u32 %u0, %u0, %y;"
     "st.shared.u32 [%u0], %i; bar.sync 0; xor.b32 %u1, %u0, 8; ld.shared.u32 %u1, [%u1]; st.global.u32 [%own], %u1;"},
    {"AScopeThatIsEnteredAgain",
     "mov.u32 %y, 0; NEXT: { .reg .b32 %kept; setp.eq.u32 %p, %y, 0; @%p mov.u32 %kept, 7; add.u32 %kept, %kept, 2;"
     "st.global.u32 [%own], %kept; } add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 9; @%p bra NEXT;"},
    {"DivergentFromTheFirstInstruction",
     "setp.lt.u32 %p, %i, 17; @%p bra LOW; mov.u32 %u0, 5; bra BOTH; LOW: mov.u32 %u0, 6; BOTH:"
     "shl.b32 %y, %i, 2; mov.u32 %u1, tile; add.u32 %u1, %u1, %y; st.shared.u32 [%u1], %u0; bar.sync 0;"
     "xor.b32 %u1, %u1, 64; ld.shared.u32 %u1, [%u1]; st.global.v2.u32 [%own], {%u0, %u1};"},
    {"AnAtomicInFreshMemory",
     "setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [tile], %zero; bar.sync 0; atom.shared.add.u32 %y, [tile], 1; bar.sync "
     "0;"
     "ld.shared.u32 %y, [tile]; st.global.u32 [%own], %y;"},
    {"MoreSharedMemoryThanTheLaunchHas",
     "ld.shared.u32 %y, [tile]; mov.u32 %y, %dynamic_smem_size;"
     "st.global.u32 [%own], %y;"},
    {"ClustersOfOne",
     "mapa.shared::cluster.u32 %y, %zero, %zero; mov.u32 %u0, tile; st.shared.u32 [%u0], %i; bar.sync 0;"
     "ld.shared::cluster.u32 %y, [%u0]; setp.ge.u32 %p, %y, 128; selp.u32 %y, 1, 0, %p;"
     "st.global.u32 [%own], %y;"},
};

// The first label of all is behind the clearing, so that a jump to it clears nothing.
TEST_F(SharedTest, ItIsClearedOnceWhereverAKernelJumps) {
  const std::string ptx =
      ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry find(.param .u64 own) {\n"
      "FIRST: .reg .b64 %own; .reg .b32 %x; .reg .pred %p; .shared .b32 tile; .local .b32 frame;\n"
      "ld.param.u64 %own, [own]; ld.global.u32 %x, [%own]; setp.ne.u32 %p, %x, 0; @%p bra AGAIN; mov.u32 %x, 77;\n"
      "st.shared.u32 [tile], %x; st.local.u32 [frame], %x; st.global.u32 [%own], %x; bra FIRST;\n"
      "AGAIN: ld.shared.u32 %x, [tile]; st.global.u32 [%own+4], %x; ld.local.u32 %x, [frame];\n"
      "st.global.u32 [%own+8], %x; ret;\n}\n";
  const Result<FencedModule> fenced = fence_ptx(ptx, options());
  ASSERT_TRUE(fenced) << fenced.error().message;
  memory_.fill(memory_.own(), 0, 64);
  EXPECT_EQ(memory_.run(fenced->ptx, "find", {memory_.own()}, 1), CUDA_SUCCESS) << fenced->ptx;
  EXPECT_THAT(memory_.read(memory_.own(), 12), ::testing::ElementsAre(77, 0, 0, 0, 77, 0, 0, 0, 77, 0, 0, 0));
}

class HonestTest : public SharedTest, public ::testing::WithParamInterface<Leftover> {};

TEST_P(HonestTest, ComputesTheSame) {
  const std::string ptx = module_of(GetParam());
  FenceOptions here = options();
  here.variables_address = memory_.own() + Neighbourhood::kRange / 2;
  const Result<FencedModule> fenced = fence_ptx(ptx, here);
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_EQ(testing::leftover_read(fenced->ptx), "") << fenced->ptx;
  for (const unsigned threads : {1u, 96u, 128u}) {
    for (const unsigned shared : {0u, 4096u}) {
      std::vector<std::uint8_t> seen[2];
      for (const bool is_fenced : {false, true}) {
        memory_.fill(memory_.own(), 0, 2 * kMark);
        // Its own shared memory is what it finds, or zeros: this one has none of another kernel.
        Neighbourhood::Run run{.ptx = is_fenced ? fenced->ptx : ptx,
                               .kernel = "find",
                               .parameters = {memory_.own()},
                               .x = threads,
                               .shared = shared};
        EXPECT_EQ(memory_.run({run}), CUDA_SUCCESS) << run.ptx;
        seen[is_fenced ? 1 : 0] = memory_.read(memory_.own(), kMark + 1);
      }
      EXPECT_TRUE(seen[0] == seen[1]) << threads << " threads: " << fenced->ptx;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fence, HonestTest, ::testing::ValuesIn(kHonest),
                         [](const auto& kernel) { return kernel.param.name; });

}  // namespace
}  // namespace fairlead::fence
