// Warp instructions whose lanes name different members: every lane gets the result of its own team, however the warp is
// divided into teams, whichever way the teams come, and whoever has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::header;
using testing::load_or_fail;
using testing::run_kernel;
using testing::TestDevice;
using u32 = std::uint32_t;

// A warp of one case: what each lane names and holds.
struct Case {
  u32 lanes = ~0u;  // of the block
  u32 live = ~0u;   // that have not ended before
  u32 mask[32] = {};
  u32 value[32] = {};
  u32 source[32] = {};  // the lane that shfl.idx reads: of the same team
  u32 side[32] = {};    // which copy of the instructions the lane executes; one for a team
};

// team[lane] -> the masks.
void name_teams(Case& c, const std::vector<u32>& team) {
  for (u32 i = 0; i < 32; ++i) {
    c.mask[i] = 0;
    for (u32 j = 0; j < 32; ++j) c.mask[i] |= team[i] == team[j] ? 1u << j : 0;
    c.mask[i] &= c.lanes;
  }
}

// What every lane computes: a name, the PTX that gives %x, and the reference. The mask is %m, the value %v and %w.
struct Result {
  const char* ptx;
  u32 (*reference)(const Case&, u32 lane, u32 members);
};

u32 select(const Case& c, u32 members, const std::function<bool(u32)>& holds) {
  u32 out = 0;
  for (u32 i = 0; i < 32; ++i) out |= (members >> i & 1) != 0 && holds(c.value[i]) ? 1u << i : 0;
  return out;
}
bool odd(u32 value) {
  return (value & 1) != 0;
}
u32 fold(const Case& c, u32 members, u32 first, u32 (*f)(u32, u32)) {
  for (u32 i = 0; i < 32; ++i) first = (members >> i & 1) != 0 ? f(first, c.value[i]) : first;
  return first;
}
u32 equal(const Case& c, u32 lane, u32 members) {
  return select(c, members, [&](u32 value) { return value == c.value[lane]; });
}

constexpr u32 kUndefined = 0xdeadbeef;
u32 shuffled(const Case& c, int from, bool inside, u32 lane, u32 members) {
  if (!inside) return c.value[lane];
  return (members >> from & 1) != 0 ? c.value[from] : kUndefined;
}

// Shuffles by the lane's own value modulo 8, in segments of 16.
const Result kResults[] = {
    {"vote.sync.ballot.b32 %x, %odd, %m;", [](const Case& c, u32, u32 m) { return select(c, m, odd); }},
    {"vote.sync.any.pred %q, %odd, %m; selp.u32 %x, 1, 0, %q;",
     [](const Case& c, u32, u32 m) { return select(c, m, odd) != 0 ? 1u : 0u; }},
    {"vote.sync.all.pred %q, %odd, %m; selp.u32 %x, 1, 0, %q;",
     [](const Case& c, u32, u32 m) { return select(c, m, odd) == m ? 1u : 0u; }},
    {"vote.sync.uni.pred %q, %odd, %m; selp.u32 %x, 1, 0, %q;",
     [](const Case& c, u32, u32 m) {
       const u32 yes = select(c, m, odd);
       return yes == m || yes == 0 ? 1u : 0u;
     }},
    {"match.any.sync.b32 %x, %v, %m;", [](const Case& c, u32 lane, u32 m) { return equal(c, lane, m); }},
    {"match.any.sync.b64 %x, %w, %m;", [](const Case& c, u32 lane, u32 m) { return equal(c, lane, m); }},
    {"match.all.sync.b32 %x|%q, %v, %m;",
     [](const Case& c, u32 lane, u32 m) { return equal(c, lane, m) == m ? m : 0; }},
    {"match.all.sync.b64 %x|%q, %w, %m; selp.u32 %x, 1, 0, %q;",
     [](const Case& c, u32 lane, u32 m) { return equal(c, lane, m) == m ? 1u : 0u; }},
    {"redux.sync.add.u32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) { return fold(c, m, 0, [](u32 a, u32 b) { return a + b; }); }},
    {"redux.sync.min.u32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) { return fold(c, m, ~0u, [](u32 a, u32 b) { return std::min(a, b); }); }},
    {"redux.sync.max.s32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) {
       return fold(c, m, 1u << 31, [](u32 a, u32 b) {
         return static_cast<u32>(std::max(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
       });
     }},
    {"redux.sync.and.b32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) { return fold(c, m, ~0u, [](u32 a, u32 b) { return a & b; }); }},
    {"redux.sync.or.b32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) { return fold(c, m, 0, [](u32 a, u32 b) { return a | b; }); }},
    {"redux.sync.xor.b32 %x, %v, %m;",
     [](const Case& c, u32, u32 m) { return fold(c, m, 0, [](u32 a, u32 b) { return a ^ b; }); }},
    {"elect.sync %x|%q, %m; selp.u32 %y, 100, 0, %q; add.u32 %x, %x, %y;",
     [](const Case&, u32 lane, u32 m) {
       const auto leader = static_cast<u32>(std::countr_zero(m));
       return leader + (lane == leader ? 100 : 0);
     }},
    {"shfl.sync.idx.b32 %x, %v, %s, 31, %m;", [](const Case& c, u32 lane, u32) { return c.value[c.source[lane]]; }},
    {"shfl.sync.bfly.b32 %x, %v, %o, 4127, %m;",
     [](const Case& c, u32 lane, u32 m) {
       const int from = static_cast<int>(lane ^ c.value[lane] % 8);
       return shuffled(c, from, true, lane, m);
     }},
    {"shfl.sync.up.b32 %x, %v, %o, 4096, %m;",
     [](const Case& c, u32 lane, u32 m) {
       const int from = static_cast<int>(lane) - static_cast<int>(c.value[lane] % 8);
       return shuffled(c, from, from >= static_cast<int>(lane & 16), lane, m);
     }},
    {"shfl.sync.down.b32 %x, %v, %o, 4127, %m;",
     [](const Case& c, u32 lane, u32 m) {
       const int from = static_cast<int>(lane + c.value[lane] % 8);
       return shuffled(c, from, from <= static_cast<int>(lane | 15), lane, m);
     }},
    {"shfl.sync.down.b32 %x|%q, %v, %o, 4127, %m; selp.u32 %x, 1, 0, %q;",
     [](const Case& c, u32 lane, u32) { return lane + c.value[lane] % 8 <= (lane | 15) ? 1u : 0u; }},
};
constexpr std::size_t kCount = std::size(kResults);

// Input words of a lane, in this order: mask, value, source, side, whether it goes on. A block is a case.
std::string kernel() {
  std::string all;
  for (std::size_t i = 0; i < kCount; ++i) {
    all += std::string(kResults[i].ptx) + "\nst.global.u32 [%out+" + std::to_string(128 * i) + "], %x;\n";
  }
  return ".version 8.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
         ".reg .u64 %in, %out, %w; .reg .u32 %m, %v, %s, %o, %x, %y, %side, %stays, %lane, %case;\n"
         ".reg .pred %q, %odd, %p;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %tid.x; mov.u32 %case, %ctaid.x;\n"
         "mad.wide.u32 %in, %case, 640, %in; mad.wide.u32 %in, %lane, 4, %in;\n"
         "mad.wide.u32 %out, %case, " +
         std::to_string(128 * kCount) +
         ", %out; mad.wide.u32 %out, %lane, 4, %out;\n"
         "ld.global.u32 %m, [%in]; ld.global.u32 %v, [%in+128]; ld.global.u32 %s, [%in+256];\n"
         "ld.global.u32 %side, [%in+384]; ld.global.u32 %stays, [%in+512];\n"
         "cvt.u64.u32 %w, %v; shl.b64 %w, %w, 20; and.b32 %o, %v, 7;\n"
         "and.b32 %x, %v, 1; setp.ne.u32 %odd, %x, 0;\n"
         "setp.eq.u32 %p, %stays, 0; @%p bra END;\n"
         "setp.ne.u32 %p, %side, 0; @%p bra OTHER;\n" +
         all + "bra END;\nOTHER:\n" + all + "END: ret;\n}\n";
}

class TeamRunner {
 public:
  TeamRunner() : module_(load_or_fail(kernel(), device_)) {}

  // Runs all cases in one launch of blocks of `lanes` threads. Returns the lane instructions.
  std::uint64_t expect_right(const std::vector<Case>& cases, unsigned lanes = 32) {
    if (module_ == nullptr) return 0;
    std::vector<u32> in;
    for (const Case& c : cases) {
      for (const u32* words : {c.mask, c.value, c.source, c.side}) in.insert(in.end(), words, words + 32);
      for (u32 lane = 0; lane < 32; ++lane) in.push_back(c.live >> lane & 1);
    }
    const auto input = device_.upload(in), output = device_.upload(std::vector<u32>(cases.size() * kCount * 32));
    const Outcome outcome =
        run_kernel(*module_, device_, "k", {static_cast<unsigned>(cases.size())}, {lanes}, input, output);
    EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
    const auto words = device_.download<u32>(output, cases.size() * kCount * 32);
    for (std::size_t i = 0; i < cases.size() && !::testing::Test::HasFailure(); ++i) {
      expect_case(cases[i], words.data() + i * kCount * 32);
    }
    device_.release(input);
    device_.release(output);
    return outcome.lane_instructions;
  }

 private:
  static void expect_case(const Case& c, const u32* words) {
    for (u32 lane = 0; lane < 32; ++lane) {
      if (((c.live & c.lanes) >> lane & 1) == 0) continue;
      for (std::size_t k = 0; k < kCount; ++k) {
        const u32 expected = kResults[k].reference(c, lane, c.mask[lane] & c.live & c.lanes);
        if (expected == kUndefined) continue;
        EXPECT_EQ(words[k * 32 + lane], expected)
            << kResults[k].ptx << " lane " << lane << " mask " << std::hex << c.mask[lane] << " live " << c.live;
      }
    }
  }

  TestDevice device_;
  std::unique_ptr<Module> module_;
};

// Values of which several are equal; a source in the team for each lane.
void fill(Case& c, std::mt19937& random) {
  const u32 kinds = 1 + random() % 6;
  for (u32& value : c.value) value = random() % kinds * 0x10000003u + 5;
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 members = c.mask[lane] & c.live & c.lanes;
    u32 from = lane;
    if (members != 0) {
      do {
        from = random() % 32;
      } while ((members >> from & 1) == 0);
    }
    c.source[lane] = from;
  }
}

std::vector<u32> random_teams(std::mt19937& random, u32 most) {
  std::vector<u32> team(32);
  for (u32& t : team) t = random() % most;
  return team;
}

TEST(Teams, HalvesQuartersAndEighthsOfAConvergedWarp) {
  std::mt19937 random(1);
  std::vector<Case> cases;
  for (u32 size = 1; size <= 32; size *= 2) {
    for (const bool interleaved : {false, true}) {
      std::vector<u32> team(32);
      for (u32 i = 0; i < 32; ++i) team[i] = interleaved ? i % (32 / size) : i / size;
      for (int i = 0; i < 40; ++i) {
        name_teams(cases.emplace_back(), team);
        fill(cases.back(), random);
      }
    }
  }
  TeamRunner().expect_right(cases);
}

TEST(Teams, RandomPartitionsOfAConvergedWarp) {
  std::mt19937 random(2);
  std::vector<Case> cases(1200);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    name_teams(cases[i], random_teams(random, 1 + static_cast<u32>(i) % 32));
    fill(cases[i], random);
  }
  TeamRunner().expect_right(cases);
}

// All 877 partitions of seven lanes, in a warp of seven and, four times over, in a whole one.
TEST(Teams, EveryPartitionOfSevenLanes) {
  std::mt19937 random(3);
  std::vector<Case> few, many;
  std::vector<u32> team(7);
  const std::function<void(u32, u32)> enumerate = [&](u32 lane, u32 teams) {
    if (lane < 7) {
      for (team[lane] = 0; team[lane] <= teams; ++team[lane]) enumerate(lane + 1, std::max(teams, team[lane] + 1));
      return;
    }
    std::vector<u32> all(32);
    for (u32 i = 0; i < 32; ++i) all[i] = i < 28 ? team[i % 7] : 7;
    name_teams(many.emplace_back(), all);
    fill(many.back(), random);
    few.emplace_back().lanes = 0x7f;
    std::copy(team.begin(), team.end(), all.begin());
    name_teams(few.back(), all);
    fill(few.back(), random);
  };
  enumerate(0, 0);
  EXPECT_EQ(few.size(), 877u);
  TeamRunner runner;
  runner.expect_right(few, 7);
  runner.expect_right(many);
}

// Teams on two ways through the code; each lane executes its instructions once, and is counted once.
TEST(Teams, OfADividedWarp) {
  std::mt19937 random(4);
  std::vector<Case> cases(400), alone;
  for (Case& c : cases) {
    const auto team = random_teams(random, 2 + random() % 8);
    name_teams(c, team);
    const u32 sides = random();
    for (u32 i = 0; i < 32; ++i) c.side[i] = sides >> team[i] & 1;
    fill(c, random);
    alone.push_back(c);
    for (u32 i = 0; i < 32; ++i) {
      alone.back().mask[i] = 1u << i;
      alone.back().source[i] = i;
    }
  }
  TeamRunner runner;
  const auto together = runner.expect_right(cases), apart = runner.expect_right(alone);
  EXPECT_EQ(together, apart);
}

TEST(Teams, OfAWarpOfWhichLanesHaveEnded) {
  std::mt19937 random(5);
  std::vector<Case> cases(400);
  for (Case& c : cases) {
    c.live = random() | random() % 2 << 31;
    const auto team = random_teams(random, 1 + random() % 8);
    name_teams(c, team);
    for (u32 i = 0; i < 32; ++i) c.side[i] = team[i] & 1;
    fill(c, random);
  }
  TeamRunner().expect_right(cases);
}

// ---- waiting

constexpr const char* kDeclare =
    ".visible .entry k(.param .u64 p) {\n.reg .u64 %a, %b, %c; .reg .u32 %r<8>, %lane; .reg .pred %q<4>;\n"
    "ld.param.u64 %a, [p]; mov.u32 %lane, %tid.x; mad.wide.u32 %b, %lane, 4, %a;\n";

// out[thread] of a kernel in one block; its words are `first` before.
std::vector<u32> run_block(const std::string& body, u32 threads = 32, std::vector<u32> first = {}) {
  TestDevice device;
  const auto module = load_or_fail(header() + kDeclare + body + "\n}\n", device);
  first.resize(std::max<std::size_t>(threads, first.size()));
  const auto words = device.upload(first);
  if (module == nullptr) return first;
  const Kernel* kernel = module->kernel("k");
  const auto arguments = testing::pack_arguments(kernel->info(), words);
  Launch launch;
  launch.block = {threads};
  launch.parameters = arguments;
  const std::atomic<std::uint64_t> deadline = testing::now_ns() + 10'000'000'000;
  launch.deadline_ns = &deadline;
  const Outcome outcome = kernel->run(device, launch);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<u32>(words, first.size());
}

// Odd lanes come 5,000 branches after even ones, and everybody reads what a neighbour of its quarter has written.
TEST(Teams, WaitForTheirLateMembersAtAWarpBarrier) {
  const auto words = run_block(
      ".shared .align 4 .b8 tile[128];\n.reg .u32 %m, %s;\n"
      "and.b32 %r0, %lane, 24; mov.u32 %m, 255; shl.b32 %m, %m, %r0;\n"
      "mov.u32 %s, tile; mad.lo.u32 %s, %lane, 4, %s;\n"
      "and.b32 %r1, %lane, 1; mul.lo.u32 %r1, %r1, 5000; setp.eq.u32 %q0, %r1, 0; @%q0 bra STORE;\n"
      "LATE: sub.u32 %r1, %r1, 1; setp.ne.u32 %q0, %r1, 0; @%q0 bra LATE;\n"
      "STORE: add.u32 %r2, %lane, 100; st.volatile.shared.u32 [%s], %r2; bar.warp.sync %m;\n"
      "xor.b32 %r3, %lane, 5; mov.u32 %s, tile; mad.lo.u32 %s, %r3, 4, %s; ld.volatile.shared.u32 %r4, [%s];\n"
      "st.global.u32 [%b], %r4; ret;");
  for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], 100 + (lane ^ 5)) << lane;
}

// The first half does not wait for the second one, which waits for a word that the first writes behind its vote.
TEST(Teams, DoNotWaitForEachOther) {
  const auto words = run_block(
      "setp.lt.u32 %q0, %lane, 16; selp.u32 %r0, 0xffff, 0xffff0000, %q0;\n"
      "and.b32 %r1, %lane, 1; setp.ne.u32 %q1, %r1, 0;\n"
      "setp.ne.u32 %q2, %lane, 31; @%q2 bra VOTE;\n"
      "WAIT: ld.volatile.global.u32 %r2, [%a]; setp.eq.u32 %q3, %r2, 0; @%q3 bra WAIT;\n"
      "VOTE: vote.sync.ballot.b32 %r3, %q1, %r0;\nst.volatile.global.u32 [%b], %r3; ret;");
  for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], lane < 16 ? 0xaaaau : 0xaaaa0000u) << lane;
}

// Lanes 16 to 31 end while the others wait for them; the next vote waits for its lanes as the first did.
TEST(Teams, ThatWaitedForLanesWhichEndedWaitAgainNextTime) {
  const auto words = run_block(
      "setp.ge.u32 %q0, %lane, 16; @%q0 bra END;\n"
      "vote.sync.ballot.b32 %r0, 1, -1;\n"
      "setp.ge.u32 %q1, %lane, 8; @%q1 bra HIGH;\n"
      "BOTH: vote.sync.ballot.b32 %r1, 1, -1;\nst.global.u32 [%b], %r1;\nEND: ret;\n"
      "HIGH: add.u32 %r0, %r0, 1; bra BOTH;");
  for (u32 lane = 0; lane < 16; ++lane) EXPECT_EQ(words[lane], 0xffffu) << lane;
}

// Lane 16 ends, and lane 31 waits for a word that lane 0 writes when it knows so.
TEST(Teams, GoOnWhenTheLastMissingMemberEnds) {
  const auto words = run_block(
      "setp.eq.u32 %q0, %lane, 16; @%q0 bra END;\nsetp.gt.u32 %q0, %lane, 16; @%q0 bra WAIT;\n"
      "vote.sync.ballot.b32 %r1, 1, 0x1ffff;\nst.volatile.global.u32 [%b], %r1; ret;\nEND: ret;\n"
      "WAIT: ld.volatile.global.u32 %r2, [%a]; setp.eq.u32 %q3, %r2, 0; @%q3 bra WAIT;\n"
      "st.global.u32 [%b], 5; ret;");
  for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], lane < 16 ? 0xffffu : lane == 16 ? 0u : 5u) << lane;
}

// Undefined in PTX; here a lane that does not take part reads as zero, also one that has ended.
TEST(Teams, ShufflesFromLanesThatAreNotThereGiveZero) {
  const auto words = run_block(
      "add.u32 %r0, %lane, 100; setp.ge.u32 %q0, %lane, 8; @%q0 bra END;\n"
      "shfl.sync.down.b32 %r1, %r0, 4, 31, 255;\nst.global.u32 [%b], %r1;\nEND: ret;");
  for (u32 lane = 0; lane < 8; ++lane) EXPECT_EQ(words[lane], lane < 4 ? 104 + lane : 0u) << lane;
}

// Undefined in PTX; here a lane that does not name itself gets the result of those it names.
TEST(Teams, OfWhichALaneIsNoMemberItselfAnswerIt) {
  const auto words = run_block(
      "and.b32 %r1, %lane, 3; setp.eq.u32 %q1, %r1, 0;\nvote.sync.ballot.b32 %r3, %q1, 0xf0;\n"
      "redux.sync.add.u32 %r4, %lane, 0xf0; add.u32 %r3, %r3, %r4;\nst.global.u32 [%b], %r3; ret;");
  for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], 0x10u + 4 + 5 + 6 + 7) << lane;
}

// The halves of two warps meet at two barriers, whose numbers lie in a register.
TEST(Barriers, OfTheHalvesOfWarps) {
  const auto words = run_block(
      ".shared .align 4 .b8 tile[256];\n.reg .u32 %s;\n"
      "shr.u32 %r0, %lane, 4; and.b32 %r0, %r0, 1; add.u32 %r0, %r0, 1;\n"
      "mov.u32 %s, tile; mad.lo.u32 %s, %lane, 4, %s; add.u32 %r2, %lane, 100; st.volatile.shared.u32 [%s], %r2;\n"
      "barrier.sync %r0, 32;\n"
      "xor.b32 %r3, %lane, 32; mov.u32 %s, tile; mad.lo.u32 %s, %r3, 4, %s; ld.volatile.shared.u32 %r4, [%s];\n"
      "st.global.u32 [%b], %r4; ret;",
      64);
  for (u32 lane = 0; lane < 64; ++lane) EXPECT_EQ(words[lane], 100 + (lane ^ 32)) << lane;
}

}  // namespace
}  // namespace softgpu::ptx
