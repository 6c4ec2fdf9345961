// Instructions that read other lanes' registers: a shuffle gives what it gave where the lane is there, and 0 where it is not,
// which the software GPU makes of that itself; on hardware it is undefined. A matrix instruction in a warp that is not whole
// shows what others left, here too, and is ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/testing/leftover_checker.h"

namespace fairlead::fence {
namespace {

using ::testing::HasSubstr;
using testing::Neighbourhood;

std::string module_of(const std::string& body) {
  return ".version 7.8\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 own) {\n"
         ".reg .b64 %own, %a; .reg .b32 %i, %v, %b, %c, %m, %x, %y, %lane, %round; .reg .pred %p, %q; .reg .f32 "
         "%f<8>;\n"
         ".shared .align 16 .b8 tile[1024];\n"
         "ld.param.u64 %own, [own]; mov.u32 %i, %tid.x; mul.wide.u32 %a, %i, 8; add.u64 %own, %own, %a;\n"
         "mov.u32 %lane, %laneid; mad.lo.u32 %v, %i, 1000, 7; mov.u32 %round, 0;\n" +
         body + "\nret;\n}\n";
}

class LanesTest : public ::testing::Test {
 protected:
  std::vector<std::uint8_t> bytes_of(const std::string& ptx, unsigned threads) {
    memory_.fill(memory_.own(), 0, testing::kMiB);
    EXPECT_EQ(memory_.run(ptx, "k", {memory_.own()}, threads), CUDA_SUCCESS) << ptx;
    return memory_.read(memory_.own(), testing::kMiB);
  }
  std::string fenced(const std::string& ptx) {
    const Result<FencedModule> fenced = fence_ptx(ptx, {.base = memory_.own(), .bytes = Neighbourhood::kRange});
    EXPECT_TRUE(fenced) << fenced.error().message;
    EXPECT_EQ(testing::leftover_read(fenced->ptx), "") << fenced->ptx;
    return fenced->ptx;
  }

  Neighbourhood memory_;
};

// Each lane asks for another one in each round: by -5 to 58 lanes, in segments of all sizes, clamped or not.
TEST_F(LanesTest, AShuffleGivesWhatItGave) {
  const char* const kSegments[] = {"31", "0", "0x1c1f", "0x1f00", "0x101f", "0x1e1f", "%c"};
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const std::string segment : kSegments) {
      for (const std::string target : {"%x", "%x|%q", "%v|%q", "%b"}) {
        const std::string result = target.substr(0, 2);
        const std::string ptx = module_of(
            "NEXT: mad.lo.u32 %b, %lane, 3, %round; sub.u32 %b, %b, 5; mul.lo.u32 %c, %round, 0x107; setp.eq.u32 %q, "
            "0, 1;"
            "mov.u32 %m, -1; shfl.sync." +
            mode + ".b32 " + target + ", %v, %b, " + segment + ", " + (segment == "31" ? "%m" : "-1") +
            "; selp.u32 %y, 1, 0, %q;" + "st.global.v2.u32 [%own], {" + result +
            ", %y};"
            "add.u64 %own, %own, 1024; add.u32 %round, %round, 1; setp.lt.u32 %p, %round, 40; @%p bra NEXT;");
        const std::string bounded = fenced(ptx);
        for (const unsigned threads : {1u, 5u, 32u, 45u}) {
          EXPECT_TRUE(bytes_of(ptx, threads) == bytes_of(bounded, threads)) << threads << " threads: " << bounded;
        }
      }
    }
  }
}

// Two groups of lanes, each with a mask of its own, at the same instruction and at different ones.
TEST_F(LanesTest, AShuffleAmongSomeLanesGivesWhatItGave) {
  for (const std::string guard : {"", "@%p ", "@!%p "}) {
    const std::string ptx = module_of(
        "setp.lt.u32 %p, %lane, 10; mov.u32 %x, 1; mov.u32 %y, 2; selp.b32 %m, 0x3ff, 0xfffffc00, %p;"
        "selp.b32 %b, 3, 20, %p;" +
        guard + "shfl.sync.bfly.b32 %x, %v, 1, 31, %m; " + guard +
        "shfl.sync.idx.b32 %y, %v, %b, 31, %m;"
        "@%p bra LOW; shfl.sync.bfly.b32 %c, %v, 1, 31, 0xfffffc00; bra DONE;"
        "LOW: shfl.sync.up.b32 %c, %v, 2, 0, 0x3ff; DONE: add.u32 %y, %y, %c; st.global.v2.u32 [%own], {%x, %y};");
    const std::string bounded = fenced(ptx);
    for (const unsigned threads : {1u, 12u, 32u, 45u}) {
      EXPECT_TRUE(bytes_of(ptx, threads) == bytes_of(bounded, threads)) << threads << " threads: " << bounded;
    }
  }
}

TEST_F(LanesTest, ShufflesBehindEachOtherAskOnceForTheLanes) {
  const std::string text = fenced(module_of(
      "shfl.sync.down.b32 %x, %v, 4, 31, -1; shfl.sync.down.b32 %x, %x, 2, 31, -1; st.global.u32 [%own], %x;"));
  const std::size_t first = text.find("vote.sync.ballot.b32");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("vote.sync.ballot.b32", first + 1), std::string::npos) << text;
}

constexpr char kFragmentStore[] =
    "ld.param.u64 %own, [own]; add.u64 %a, %own, 0x10000; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a]; "
    "ld.global.v4.f32 {%f4, %f5, %f6, %f7}, "
    "[%a];"
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%own], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;";

TEST_F(LanesTest, AMatrixInstructionNeedsItsWholeWarp) {
  const char* const kInstructions[] = {
      kFragmentStore, "movmatrix.sync.aligned.m8n8.trans.b16 %x, %v;",
      "mov.u32 %y, tile; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x}, [%y];",
      "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%x, %y}, {%v}, {%v}, {%v, %v};"};
  for (const std::string instruction : kInstructions) {
    const std::string text = fenced(module_of(instruction));
    EXPECT_EQ(memory_.run(text, "k", {memory_.own()}, 32), CUDA_SUCCESS) << text;
    EXPECT_EQ(memory_.run(text, "k", {memory_.own()}, 64), CUDA_SUCCESS) << text;
    for (const unsigned threads : {1u, 31u, 33u}) {
      EXPECT_NE(memory_.run(text, "k", {memory_.own()}, threads), CUDA_SUCCESS) << text;
    }
    const std::string never =
        fenced(module_of("setp.gt.u32 %p, %i, 1000; @%p bra END; setp.eq.u32 %p, %i, 1000; @%p " +
                         instruction.substr(instruction.rfind(';', instruction.size() - 2) + 1) + " END:"));
    EXPECT_EQ(memory_.run(never, "k", {memory_.own()}, 1), CUDA_SUCCESS) << never;
  }
}

TEST_F(LanesTest, LanesThatHaveEndedAreMissedAgain) {
  const std::string move = "movmatrix.sync.aligned.m8n8.trans.b16 %x, %v;";
  const std::string text = fenced(module_of(move + " setp.gt.u32 %p, %i, 20; @%p exit; " + move));
  EXPECT_NE(memory_.run(text, "k", {memory_.own()}, 32), CUDA_SUCCESS) << text;
  const std::string loop = fenced(module_of("NEXT: " + move +
                                            " setp.gt.u32 %p, %i, 20; @%p bra END; add.u32 %round, %round, 1;"
                                            "setp.lt.u32 %p, %round, 2; @%p bra NEXT; END:"));
  EXPECT_NE(memory_.run(loop, "k", {memory_.own()}, 32), CUDA_SUCCESS) << loop;
}

}  // namespace
}  // namespace fairlead::fence
