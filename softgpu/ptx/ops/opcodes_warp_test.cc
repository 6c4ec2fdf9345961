// What lanes do together: votes, shuffles, matches, reductions and barriers, also with part of the lanes; branches,
// calls and hints; and the special registers.
#include <algorithm>
#include <functional>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

// Lane l's input; several lanes have the same.
u32 input(u32 lane) {
  return (lane * 0x9e3779b9u >> 7) % 11 * 3 + 1;
}

// `body` computes %out of %in0, with the lane in %r15; the listed opcodes are in it.
void expect_lanes(const std::string& body, std::initializer_list<std::string_view> opcodes,
                  const std::function<u32(u32)>& reference) {
  std::vector<u32> inputs(32);
  for (u32 i = 0; i < 32; ++i) inputs[i] = input(i);
  const auto results = evaluate<u32>("mov.u32 %r15, %laneid;\n" + covers(body, opcodes), inputs);
  for (u32 i = 0; i < 32; ++i) ASSERT_EQ(results[i], reference(i)) << body << " lane " << i;
}

// The instruction executed by the lanes of `members` alone; the others give 7777.
std::string by_members(u32 members, const std::string& instruction) {
  const std::string m = std::to_string(members);
  return "mov.u32 %out, 7777;\nmov.u32 %r14, " + m +
         ";\nshr.u32 %r13, %r14, %r15;\nand.b32 %r13, %r13, 1;\n"
         "setp.eq.u32 %p6, %r13, 0;\n@%p6 bra END;\n" +
         instruction + "\nEND:";
}

constexpr u32 kMembers[] = {~0u, 0x0000ffffu, 0x80000001u, 0x5a5a5a5au, 0x00000400u};

void expect_members(const std::string& instruction, std::initializer_list<std::string_view> opcodes,
                    const std::function<u32(u32 lane, u32 members)>& reference) {
  for (const u32 members : kMembers) {
    expect_lanes(by_members(members, instruction), opcodes,
                 [&](u32 lane) { return (members >> lane & 1) != 0 ? reference(lane, members) : 7777; });
  }
}

u32 ballot(u32 members, const std::function<bool(u32)>& holds) {
  u32 out = 0;
  for (u32 i = 0; i < 32; ++i) out |= (members >> i & 1) != 0 && holds(input(i)) ? 1u << i : 0;
  return out;
}

TEST(WarpOpcodes, Votes) {
  const auto high = [](u32 v) { return v > 10; };
  const std::string p = "setp.gt.u32 %p0, %in0, 10;\n", q = "setp.gt.u32 %p0, %in0, 0;\n";
  const std::string give = "\nselp.u32 %out, 1, 0, %p1;";
  expect_members(p + "vote.sync.ballot.b32 %out, %p0, %r14;", {"vote.sync.ballot.b32"},
                 [&](u32, u32 m) { return ballot(m, high); });
  expect_members(p + "vote.sync.any.pred %p1, %p0, %r14;" + give, {"vote.sync.any.pred"},
                 [&](u32, u32 m) { return ballot(m, high) != 0 ? 1u : 0u; });
  expect_members(p + "vote.sync.all.pred %p1, %p0, %r14;" + give, {"vote.sync.all.pred"},
                 [&](u32, u32 m) { return ballot(m, high) == m ? 1u : 0u; });
  expect_members(q + "vote.sync.all.pred %p1, %p0, %r14;" + give, {"vote.sync.all.pred"}, [&](u32, u32) { return 1u; });
  expect_members(p + "vote.sync.uni.pred %p1, %p0, %r14;" + give, {"vote.sync.uni.pred"}, [&](u32, u32 m) {
    const u32 yes = ballot(m, high);
    return yes == 0 || yes == m ? 1u : 0u;
  });
  expect_members("activemask.b32 %out;", {"activemask.b32"}, [](u32, u32 m) { return m; });
  expect_members("elect.sync %r0|%p1, %r14;\nselp.u32 %out, 100, 0, %p1;\nadd.u32 %out, %out, %r0;", {"elect.sync"},
                 [](u32 lane, u32 m) {
                   const u32 leader = static_cast<u32>(std::countr_zero(m));
                   return leader + (lane == leader ? 100 : 0);
                 });
}

TEST(WarpOpcodes, MatchesAndReductions) {
  expect_members("match.any.sync.b32 %out, %in0, %r14;", {"match.any.sync.b32"},
                 [](u32 lane, u32 m) { return ballot(m, [&](u32 v) { return v == input(lane); }); });
  expect_members("cvt.u64.u32 %d0, %in0;\nmatch.any.sync.b64 %out, %d0, %r14;", {"match.any.sync.b64"},
                 [](u32 lane, u32 m) { return ballot(m, [&](u32 v) { return v == input(lane); }); });
  for (const std::string type : {"b32", "b64"}) {
    const std::string a = type == "b32" ? "%r0" : "%d0";
    const std::string opcode = "match.all.sync." + type;
    expect_members(
        "mov." + type + " " + a + ", 9;\n" + opcode + " %out|%p0, " + a + ", %r14;\n@!%p0 add.u32 %out, %out, 1;",
        {opcode}, [](u32, u32 m) { return m; });
  }
  expect_members("match.all.sync.b32 %out|%p0, %in0, %r14;\n@!%p0 add.u32 %out, %out, 5;", {"match.all.sync.b32"},
                 [](u32 lane, u32 m) { return ballot(m, [&](u32 v) { return v == input(lane); }) == m ? m : 5; });
  const auto fold = [](u32 m, u32 first, const std::function<u32(u32, u32)>& f) {
    for (u32 i = 0; i < 32; ++i) first = (m >> i & 1) != 0 ? f(first, input(i) - 9) : first;
    return first;
  };
  const auto expect = [&](const std::string& opcode, u32 first, const std::function<u32(u32, u32)>& f) {
    expect_members("sub.u32 %r0, %in0, 9;\n" + opcode + " %out, %r0, %r14;", {opcode},
                   [&](u32, u32 m) { return fold(m, first, f); });
  };
  const auto add = [](u32 a, u32 b) { return a + b; };
  expect("redux.sync.add.u32", 0, add);
  expect("redux.sync.add.s32", 0, add);
  expect("redux.sync.min.u32", ~0u, [](u32 a, u32 b) { return std::min(a, b); });
  expect("redux.sync.max.u32", 0, [](u32 a, u32 b) { return std::max(a, b); });
  expect("redux.sync.min.s32", 0x7fffffff,
         [](u32 a, u32 b) { return static_cast<u32>(std::min(static_cast<s32>(a), static_cast<s32>(b))); });
  expect("redux.sync.max.s32", 0x80000000,
         [](u32 a, u32 b) { return static_cast<u32>(std::max(static_cast<s32>(a), static_cast<s32>(b))); });
  expect("redux.sync.and.b32", ~0u, [](u32 a, u32 b) { return a & b; });
  expect("redux.sync.or.b32", 0, [](u32 a, u32 b) { return a | b; });
  expect("redux.sync.xor.b32", 0, [](u32 a, u32 b) { return a ^ b; });
}

TEST(WarpOpcodes, ShufflesInSegmentsOfEveryWidth) {
  for (const u32 width : {32u, 16u, 8u, 2u}) {
    for (const u32 by : {0u, 1u, 3u, 9u, 31u}) {
      const std::string segment = std::to_string((32 - width) << 8);
      const std::string clamp = std::to_string((32 - width) << 8 | 31), b = std::to_string(by);
      const auto expect = [&](const std::string& opcode, const std::string& c,
                              const std::function<s32(s32, s32)>& source) {
        expect_lanes(opcode + " %out|%p0, %in0, " + b + ", " + c + ", -1;\n@!%p0 add.u32 %out, %out, 1000;", {opcode},
                     [&](u32 lane) {
                       const s32 first = static_cast<s32>(lane / width * width),
                                 from = source(static_cast<s32>(lane), first);
                       const bool inside = from >= first && from < first + static_cast<s32>(width);
                       return inside ? input(static_cast<u32>(from)) : input(lane) + 1000;
                     });
      };
      const s32 n = static_cast<s32>(by), w = static_cast<s32>(width);
      expect("shfl.sync.up.b32", segment, [=](s32 lane, s32) { return lane - n; });
      expect("shfl.sync.down.b32", clamp, [=](s32 lane, s32) { return lane + n; });
      if (by < width) expect("shfl.sync.bfly.b32", clamp, [=](s32 lane, s32) { return lane ^ n; });
      expect("shfl.sync.idx.b32", clamp, [=](s32, s32 first) { return first + n % w; });
    }
  }
  // From the lowest member.
  expect_members("brev.b32 %r12, %r14;\nclz.b32 %r12, %r12;\nshfl.sync.idx.b32 %out, %in0, %r12, 31, %r14;",
                 {"shfl.sync.idx.b32"}, [](u32, u32 m) { return input(static_cast<u32>(std::countr_zero(m))); });
}

TEST(WarpOpcodes, BarriersOfWarpsAndBlocks) {
  // Lane 31 - l's value after everybody has stored.
  for (const std::string wait : {"bar.sync 0;", "bar.sync 3, 32;", "barrier.sync 1;", "barrier.sync.aligned 2, 32;",
                                 "bar.cta.sync 0;", "barrier.cta.sync.aligned 0;", "bar.warp.sync -1;",
                                 "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
                                 "barrier.cluster.arrive;\nbarrier.cluster.wait;"}) {
    expect_lanes(
        ".shared .align 4 .b8 tile[128];\nmov.u32 %r0, tile;\nshl.b32 %r1, %r15, 2;\nadd.u32 %r2, %r0, "
        "%r1;\nst.shared.u32 [%r2], %in0;\n" +
            wait + "\nsub.u32 %r2, %r0, %r1;\nld.shared.u32 %out, [%r2+124];",
        {}, [](u32 lane) { return input(31 - lane); });
    covers(wait.substr(0, wait.find_first_of(" ;")));
    if (wait.find("wait") != std::string::npos)
      covers(wait.substr(wait.find('\n') + 1, wait.size() - wait.find('\n') - 2));
  }
  const std::string p = "setp.gt.u32 %p0, %in0, 10;\n";
  const u32 yes = ballot(~0u, [](u32 v) { return v > 10; });
  for (const std::string base : {"bar", "barrier", "barrier.cta"}) {
    expect_lanes(p + base + ".red.popc.u32 %out, 0, %p0;", {base + ".red.popc.u32"},
                 [=](u32) { return static_cast<u32>(std::popcount(yes)); });
    expect_lanes(p + base + ".red.and.pred %p1, 0, 32, %p0;\nselp.u32 %out, 1, 0, %p1;", {base + ".red.and.pred"},
                 [=](u32) { return yes == ~0u ? 1u : 0u; });
    expect_lanes(p + base + ".red.or.pred %p1, 0, !%p0;\nselp.u32 %out, 1, 0, %p1;", {base + ".red.or.pred"},
                 [=](u32) { return ~yes != 0 ? 1u : 0u; });
  }
}

// ---- control

TEST(ControlOpcodes, BranchesReturnsAndSleeps) {
  expect_lanes(
      "mov.u32 %out, %in0;\nsetp.gt.u32 %p0, %r15, 9;\n@%p0 bra HIGH;\nadd.u32 %out, %out, 100;\nbra.uni "
      "END;\nHIGH:\nadd.u32 %out, %out, 200;\nEND:",
      {"bra", "bra.uni"}, [](u32 lane) { return input(lane) + (lane > 9 ? 200 : 100); });
  for (const std::string brx : {"brx.idx", "brx.idx.uni"}) {
    const std::string index = brx == "brx.idx" ? "and.b32 %r0, %r15, 3;\n" : "mov.u32 %r0, 2;\n";
    expect_lanes(
        index + "table: .branchtargets A, B, C, A;\n" + brx +
            " %r0, table;\nA: mov.u32 %out, 1;\nbra END;\nB: mov.u32 %out, 2;\nbra END;\nC: mov.u32 %out, 3;\nEND:",
        {brx}, [&](u32 lane) {
          constexpr u32 kTargets[] = {1, 2, 3, 1};
          return kTargets[brx == "brx.idx" ? lane & 3 : 2];
        });
  }
  for (const std::string word :
       {"nanosleep.u32 20", "membar.gl", "membar.cta", "membar.sys", "fence.sc.gpu", "fence.acq_rel.sys",
        "fence.acq_rel.cluster", "fence.proxy.alias", "fence.proxy.async", "pmevent 3", "pmevent.mask 7",
        "griddepcontrol.wait", "griddepcontrol.launch_dependents", "cp.async.commit_group", "cp.async.wait_group 0",
        "cp.async.wait_all"}) {
    expect_lanes(word + ";\nmov.u32 %out, %in0;", {std::string_view(word).substr(0, word.find(' '))}, input);
  }
}

TEST(ControlOpcodes, HintsChangeNothing) {
  for (const std::string hint : {"prefetch.global.L2", "prefetch.global.L1", "prefetch.global.L2::evict_last",
                                 "prefetch.global.L2::evict_normal", "prefetch.L2", "prefetchu.L1"}) {
    expect_lanes(hint + " [%address];\nmov.u32 %out, %in0;", {hint}, input);
  }
  for (const std::string hint : {"discard.global.L2", "applypriority.global.L2::evict_normal"}) {
    expect_lanes(hint + " [%address], 128;\nmov.u32 %out, %in0;", {hint}, input);
  }
  expect_lanes("createpolicy.fractional.L2::evict_first.b64 %d0, 0f3F000000;\nmov.u32 %out, %in0;",
               {"createpolicy.fractional.L2::evict_first.b64"}, input);
  expect_lanes("createpolicy.range.global.L2::evict_last.b64 %d0, [%address], 128, 256;\nmov.u32 %out, %in0;",
               {"createpolicy.range.global.L2::evict_last.b64"}, input);
}

TEST(ControlOpcodes, ExitAndTrapEndThreads) {
  for (const std::string end : {"exit", "ret"}) {
    const auto results = evaluate<u32>(
        covers("setp.lt.u32 %p0, %lane32, 4;\n@%p0 " + end + ";\nmov.u32 %out, 5;", {end}), std::vector<u32>{1});
    for (u32 i = 4; i < 32; ++i) EXPECT_EQ(results[i], 5u);
    EXPECT_NE(results[0], 5u) << "the thread has ended before its store";
  }
  for (const std::string end : {"trap", "brkpt"}) {
    TestDevice device;
    const auto module = load_or_fail(covers(header() + ".entry k() {\n" + end + ";\n}\n", {end}), device);
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}).fault, FaultKind::kLaunchFailed);
  }
}

TEST(ControlOpcodes, AddressesGoFromSpaceToSpaceAndBack) {
  const std::string declare = ".local .align 8 .b8 own[8];\n.shared .align 8 .b8 tile[8];\n";
  const auto round_trip = [&](const std::string& space, const std::string& make) {
    expect_lanes(declare + make + "st." + space + ".u32 [%d0], 77;\ncvta." + space +
                     ".u64 %d1, %d0;\nld.u32 %r0, [%d1];\ncvta.to." + space +
                     ".u64 %d2, %d1;\nsetp.eq.u64 %p0, %d0, %d2;\nselp.u32 %out, %r0, 0, %p0;",
                 {"cvta." + space + ".u64", "cvta.to." + space + ".u64"}, [](u32) { return 77u; });
  };
  round_trip("local", "mov.u64 %d0, own;\n");
  round_trip("shared", "mov.u64 %d0, tile;\n");
  expect_lanes(
      "ld.param.u64 %d0, [input0];\ncvta.to.global.u64 %d1, %d0;\ncvta.global.u64 %d2, %d1;\nsetp.eq.u64 %p0, %d0, "
      "%d2;\nld.global.u32 %r0, [%d1];\nselp.u32 %out, %r0, 0, %p0;",
      {"cvta.global.u64", "cvta.to.global.u64"}, [](u32) { return input(0); });
  expect_lanes(
      "mov.u64 %d0, input0;\ncvta.param.u64 %d1, %d0;\ncvta.to.param.u64 %d2, %d1;\nsetp.eq.u64 %p0, %d0, %d2;\nld.u64 "
      "%d3, [%d1];\nld.u32 %r0, [%d3];\nselp.u32 %out, %r0, 0, %p0;",
      {"cvta.param.u64", "cvta.to.param.u64"}, [](u32) { return input(0); });
  for (const std::string space : {"shared", "local", "global", "param"}) {
    expect_lanes(declare +
                     "mov.u64 %d0, tile;\ncvta.shared.u64 %d0, %d0;\nmov.u64 %d1, own;\ncvta.local.u64 %d1, "
                     "%d1;\nmov.u64 %d3, input0;\ncvta.param.u64 %d3, %d3;\n"
                     "isspacep." +
                     space + " %p0, %d0;\nisspacep." + space + " %p1, %d1;\nisspacep." + space +
                     " %p2, %address;\nisspacep." + space +
                     " %p3, %d3;\n"
                     "selp.u32 %r0, 1, 0, %p0;\nselp.u32 %r1, 2, 0, %p1;\nselp.u32 %r2, 4, 0, %p2;\nselp.u32 %r3, 8, "
                     "0, %p3;\nor.b32 %out, %r0, %r1;\nor.b32 %out, %out, %r2;\nor.b32 %out, %out, %r3;",
                 {"isspacep." + space}, [&](u32) {
                   return space == "shared" ? 1u : space == "local" ? 2u : space == "global" ? 4u : 8u;
                 });
  }
  expect_lanes(
      ".shared .align 8 .b8 tile[8];\nmov.u64 %d0, tile;\nmapa.shared::cluster.u64 %d1, %d0, 0;\nsub.u64 %d1, %d1, "
      "%d0;\ngetctarank.shared::cluster.u32 %r0, %d0;\ncvt.u32.u64 %out, %d1;\nadd.u32 %out, %out, %r0;",
      {"mapa.shared::cluster.u64", "getctarank.shared::cluster.u32"}, [](u32) { return 0u; });
}

TEST(SpecialRegisters, HaveTheLaunchsValues) {
  struct Known {
    const char* name;
    std::function<u32(u32)> value;
  };
  const auto constant = [](u32 value) { return [value](u32) { return value; }; };
  for (const Known& known : {Known{"%laneid", [](u32 lane) { return lane; }},
                             Known{"%lanemask_eq", [](u32 lane) { return 1u << lane; }},
                             Known{"%lanemask_lt", [](u32 lane) { return (1u << lane) - 1; }},
                             Known{"%lanemask_le", [](u32 lane) { return (2u << lane) - 1; }},
                             Known{"%lanemask_gt", [](u32 lane) { return ~((2u << lane) - 1); }},
                             Known{"%lanemask_ge", [](u32 lane) { return ~((1u << lane) - 1); }},
                             Known{"%tid.x", [](u32 lane) { return lane; }},
                             Known{"%tid.y", constant(0)},
                             Known{"%ntid.x", constant(32)},
                             Known{"%ntid.z", constant(1)},
                             Known{"%ctaid.x", constant(0)},
                             Known{"%nctaid.y", constant(1)},
                             Known{"%warpid", constant(0)},
                             Known{"%nwarpid", constant(1)},
                             Known{"%smid", constant(0)},
                             Known{"%nsmid", constant(1)},
                             Known{"%clusterid.x", constant(0)},
                             Known{"%nclusterid.x", constant(1)},
                             Known{"%cluster_ctaid.x", constant(0)},
                             Known{"%cluster_nctaid.x", constant(1)},
                             Known{"%cluster_ctarank", constant(0)},
                             Known{"%cluster_nctarank", constant(1)},
                             Known{"%pm0", constant(0)},
                             Known{"%pm7", constant(0)},
                             Known{"%envreg0", constant(0)},
                             Known{"%envreg31", constant(0)},
                             Known{"%dynamic_smem_size", constant(0)},
                             Known{"%total_smem_size", constant(0)},
                             Known{"WARP_SZ", constant(32)}}) {
    expect_lanes("mov.u32 %out, " + std::string(known.name) + ";", {}, known.value);
  }
  expect_lanes("mov.pred %p0, %is_explicit_cluster;\nselp.u32 %out, 1, 0, %p0;", {}, [](u32) { return 0u; });
  expect_lanes(
      "mov.u64 %d0, %clock64;\nmov.u64 %d1, %globaltimer;\nmov.u64 %d2, %clock64;\nsetp.ge.u64 %p0, %d2, "
      "%d0;\nsetp.gt.and.u64 %p0, %d1, 1000000000000, %p0;\nselp.u32 %out, 1, 0, %p0;",
      {}, [](u32) { return 1u; });
}

TEST(SpecialRegisters, BlocksGoRoundTheMultiprocessors) {
  const std::string text = header() +
                           ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<8>; .reg .b64 %d<4>;\nld.param.u64 %d0, "
                           "[p];\nmov.u32 %r0, %ctaid.x;\n"
                           "mul.wide.u32 %d1, %r0, 16;\nadd.u64 %d0, %d0, %d1;\nmov.u32 %r1, %smid;\nmov.u32 %r2, "
                           "%nsmid;\nmov.u64 %d2, %gridid;\n"
                           "st.global.v2.u32 [%d0], {%r1, %r2};\nst.global.u64 [%d0+8], %d2;\nret;\n}\n";
  TestDevice device;
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const u64 p = device.upload(std::vector<u64>(14));
  const auto arguments = pack_arguments(module->kernel("k")->info(), p);
  Launch launch;
  launch.grid = {7};
  launch.parameters = arguments;
  launch.multiprocessors = 3;
  launch.grid_id = 0x123456789;
  EXPECT_EQ(module->kernel("k")->run(device, launch).fault, FaultKind::kNone);
  const auto words = device.download<u64>(p, 14);
  for (u64 block = 0; block < 7; ++block) {
    EXPECT_EQ(words[2 * block], u64{3} << 32 | block % 3);
    EXPECT_EQ(words[2 * block + 1], 0x123456789u);
  }
}

}  // namespace
}  // namespace softgpu::ptx
