// Kernels that reach for a neighbour's memory, on the software GPU. Each must succeed as it is, which proves that the
// test can see it, and fail when it is fenced: the neighbour's bytes are compared one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"

namespace fairlead::fence {
namespace {

using testing::Neighbourhood;

constexpr std::uint8_t kSecret = 0x5e;

struct Attack {
  const char* name;
  const char* body;           // %own: the tenant's range; %target: in the victim's memory above; %x: 1094795585
  const char* preamble = "";  // of the module
};

constexpr Attack kAttacks[] = {
    {"Store", "st.global.u32 [%target], %x;"},
    {"GenericStore", "st.u32 [%target], %x;"},
    {"Load", "ld.global.u32 %x, [%target]; st.global.u32 [%own], %x;"},
    {"GenericLoad", "ld.u32 %x, [%target]; st.u32 [%own], %x;"},
    {"ReadOnlyLoad", "ld.global.nc.u32 %x, [%target]; st.global.u32 [%own], %x;"},
    {"UniformLoad", "ldu.global.u32 %x, [%target]; st.global.u32 [%own], %x;"},
    {"VolatileLoad", "ld.volatile.global.u32 %x, [%target]; st.volatile.global.u32 [%own], %x;"},
    {"AcquireLoad", "ld.acquire.gpu.global.u32 %x, [%target]; st.release.gpu.global.u32 [%own], %x;"},
    {"ByteStore", "st.global.u8 [%target+3], %x;"},
    {"VectorStore", "st.global.v4.u32 [%target+16], {%x, %x, %x, %x};"},
    {"VectorLoad", "ld.global.v2.u32 {%x, %y}, [%target+8]; st.global.v2.u32 [%own+8], {%x, %y};"},
    {"Atomic", "atom.global.add.u32 %y, [%target], %x;"},
    {"GenericAtomic", "atom.exch.b32 %y, [%target], %x;"},
    {"AtomicRead", "atom.global.or.b32 %x, [%target], 0; st.global.u32 [%own], %x;"},
    {"Reduction", "red.global.or.b32 [%target], %x;"},
    {"GenericReduction", "red.add.u32 [%target], %x;"},
    {"CompareAndSwap", "mov.b64 %a, 0x5e5e5e5e5e5e5e5e; atom.global.cas.b64 %b, [%target], %a, %own;"},
    {"AsynchronousCopy",
     "mov.u32 %y, tile; cp.async.ca.shared.global [%y], [%target], 16; cp.async.wait_all; ld.shared.u32 %x, [tile];"
     "st.global.u32 [%own], %x;"},
    {"NegativeOffset", "st.global.u32 [%own+-4194304], %x;"},
    {"PositiveOffset", "st.global.u32 [%own+6291456], %x;"},
    {"GenericOffset", "st.u32 [%own+6291456], %x;"},
    {"OffsetFromOutside", "add.s64 %a, %target, 65536; st.global.u32 [%a+-65536], %x;"},
    {"ForgedFromHalves", "mov.b64 {%y, %z}, %target; mov.b64 %a, {%y, %z}; st.global.u32 [%a], %x;"},
    {"ForgedByArithmetic", "xor.b64 %a, %target, %own; xor.b64 %a, %a, %own; st.global.u32 [%a], %x;"},
    {"Walk",
     "mov.b64 %a, %own; LOOP: add.s64 %a, %a, 2097152; setp.lt.u64 %p, %a, %target; @%p bra LOOP;"
     "st.global.u32 [%a], %x;"},
    {"WalkInLoop",
     "mov.b64 %a, %target; mov.u32 %y, 0; LOOP: st.global.u32 [%a], %x; st.global.u32 [%a+4], %x; add.s64 %a, %a, 8;"
     "add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 4; @%p bra LOOP;"},
    {"DefinedBeforeLoop",
     "mov.b64 %a, %target; mov.u32 %y, 0; LOOP: st.global.u32 [%a], %x; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 4;"
     "@%p bra LOOP;"},
    {"DefinedUnderPredicate",
     "mov.b64 %a, %own; setp.ne.u64 %p, %own, 0; @%p mov.b64 %a, %target; st.global.u32 [%a], %x;"},
    {"DefinitionSkipped",
     "mov.b64 %a, %target; setp.ne.u64 %p, %own, 0; @%p bra SKIP; mov.b64 %a, %own; st.global.u32 [%a], %x; SKIP:"
     "st.global.u32 [%a], %x;"},
    {"Shadowed",
     "mov.b64 %a, %target; { .reg .b64 %a; mov.b64 %a, %own; st.global.u32 [%a], %x; } st.global.u32 [%a], %x;"},
    {"LoadedPointer", "st.global.u64 [%own+64], %target; ld.global.u64 %a, [%own+64]; st.global.u32 [%a], %x;"},
    {"PointerThroughShared", "st.shared.u64 [tile], %target; ld.shared.u64 %a, [tile]; st.global.u32 [%a], %x;"},
    {"ConvertedPointer", "cvta.to.global.u64 %a, %target; cvta.global.u64 %a, %a; st.u32 [%a], %x;"},
    {"FromVariable", "mov.u64 %a, table; sub.s64 %b, %target, %a; add.s64 %a, %a, %b; st.global.u32 [%a], %x;",
     ".global .align 4 .u32 table[4] = {1, 2, 3, 4};"},
    {"FromInitialValue", "ld.global.u64 %a, [where]; sub.s64 %b, %target, %a; add.s64 %a, %a, %b; st.u32 [%a], %x;",
     ".global .align 4 .u32 table[4]; .global .u64 where = table;"},
    {"FromConstant",
     "mov.u64 %a, weights; cvta.const.u64 %a, %a; sub.s64 %b, %target, %a; add.s64 %a, %a, %b; ld.u32 %x, [%a];"
     "st.global.u32 [%own], %x;",
     ".const .align 4 .u32 weights[4] = {1, 2, 3, 4};"},
    {"InFunction", "{ .param .b64 given; st.param.b64 [given], %target; call.uni poke, (given); }",
     ".func poke(.param .b64 p) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p]; mov.u32 %v, 7; st.u32 [%q], %v; "
     "ret; }"},
    {"ThroughFunctionPointer",
     "mov.u64 %a, poke; { .param .b64 given; st.param.b64 [given], %target;"
     "PROTO: .callprototype _ (.param .b64 _); call %a, (given), PROTO; }",
     ".func poke(.param .b64 p) { .reg .b64 %q; .reg .b32 %v; ld.param.b64 %q, [p]; mov.u32 %v, 7; st.u32 [%q], %v; "
     "ret; }"},
    {"MatrixLoad",
     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%target], 16;"
     "st.global.v4.u32 [%own], {%r0, %r1, %r2, %r3};"},
    {"MatrixStride",
     "mov.u32 %y, 1572864; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%own], {%f0, %f1, %f2, %f3, %f4, %f5,"
     "%f6, %f7}, %y;"},
    {"MatrixStore",
     "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%target], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};"},
};

std::string module_of(const Attack& attack) {
  return std::string(".version 7.1\n.target sm_80\n.address_size 64\n") + attack.preamble +
         "\n.visible .entry attack(.param .u64 own, .param .u64 target) {\n"
         ".reg .b64 %own, %target, %a, %b; .reg .b32 %x, %y, %z, %r<8>; .reg .f32 %f<8>; .reg .pred %p;\n"
         ".shared .align 16 .b8 tile[256];\n"
         "mov.u32 %x, 1094795585; mov.f32 %f0, 0f3F800000; ld.param.u64 %own, [own]; ld.param.u64 %target, [target];\n"
         // All set: what a register held before may look like the secret.
         "mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0;\n"
         "mov.f32 %f7, %f0; mov.u32 %y, %tid.x; setp.gt.u32 %p, %y, 63; @%p bra END;\n" +
         attack.body + "\nEND: ret;\n}\n";
}

class AttackTest : public ::testing::TestWithParam<Attack> {
 protected:
  void prepare() {
    memory_.fill(memory_.own(), 0, Neighbourhood::kRange);
    memory_.fill(memory_.victim_below(), kSecret, Neighbourhood::kVictimBytes);
    memory_.fill(memory_.victim_above(), kSecret, Neighbourhood::kVictimBytes);
  }
  // The negative offset leads from `own` to the victim below: its first byte is 4 MiB away.
  bool reached_victim() {
    const auto is_secret = [](std::uint8_t byte) { return byte == kSecret; };
    const auto own = memory_.read(memory_.own(), Neighbourhood::kRange);
    if (std::ranges::any_of(own, is_secret)) return true;
    for (const std::uint64_t victim : {memory_.victim_below(), memory_.victim_above()}) {
      if (!std::ranges::all_of(memory_.read(victim, Neighbourhood::kVictimBytes), is_secret)) return true;
    }
    return false;
  }
  FenceOptions options() const {
    return {.base = memory_.own(),
            .bytes = Neighbourhood::kRange,
            .variables_address = memory_.own() + Neighbourhood::kRange / 2};
  }

  Neighbourhood memory_;
};

TEST_P(AttackTest, SucceedsAsItIsAndFailsWhenFenced) {
  const std::string ptx = module_of(GetParam());
  prepare();
  memory_.run(ptx, "attack", {memory_.own(), memory_.victim_above()});  // some fault once they have done their harm
  ASSERT_TRUE(reached_victim()) << "the attack is harmless, so it shows nothing: " << ptx;

  const Result<FencedModule> fenced = fence_ptx(ptx, options());
  ASSERT_TRUE(fenced) << fenced.error().message;
  prepare();
  memory_.write(options().variables_address, fenced->variables.data(), fenced->variables.size());
  EXPECT_EQ(memory_.run(fenced->ptx, "attack", {memory_.own(), memory_.victim_above()}), CUDA_SUCCESS) << fenced->ptx;
  EXPECT_FALSE(reached_victim()) << fenced->ptx;
}

INSTANTIATE_TEST_SUITE_P(Fence, AttackTest, ::testing::ValuesIn(kAttacks),
                         [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace fairlead::fence
