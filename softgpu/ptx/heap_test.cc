// malloc and free in kernels; functions by address, by alias and recursive; addresses of parameters.
#include "softgpu/ptx/heap.h"

#include <gtest/gtest.h>

#include <set>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

TEST(DeviceHeap, FillsItsRangeAndJoinsWhatIsFreed) {
  DeviceHeap heap(4096, 160);
  EXPECT_EQ(heap.allocate(0), 0u);
  EXPECT_EQ(heap.allocate(1), 4096u);
  EXPECT_EQ(heap.allocate(17), 4112u) << "aligned to 16 bytes";
  EXPECT_EQ(heap.allocate(112), 4144u);
  EXPECT_EQ(heap.allocate(1), 0u) << "full";
  EXPECT_EQ(heap.used_bytes(), 160u);
  EXPECT_FALSE(heap.release(4100)) << "no block begins there";
  EXPECT_TRUE(heap.release(4096));
  EXPECT_FALSE(heap.release(4096)) << "twice";
  EXPECT_TRUE(heap.release(4144));
  EXPECT_EQ(heap.allocate(128), 0u) << "two holes";
  EXPECT_TRUE(heap.release(4112));
  EXPECT_EQ(heap.allocate(160), 4096u) << "one hole again";
  EXPECT_TRUE(heap.release(0)) << "nothing";
  EXPECT_EQ(heap.allocate(~u64{0}), 0u);
}

constexpr const char* kMalloc =
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    ".visible .entry k(.param .u64 out, .param .u64 n, .param .u32 frees) {\n.reg .b64 %d<8>; .reg .b32 %r<4>; .reg "
    ".pred %p<2>;\nmov.u32 %r0, %tid.x;\nld.param.u64 %d0, [n];\n"
    "{\n.param .b64 given;\n.param .b64 result;\nst.param.b64 [given], %d0;\ncall.uni (result), malloc, "
    "(given);\nld.param.b64 %d1, [result];\n}\n"
    "setp.eq.u64 %p0, %d1, 0;\n@!%p0 st.u32 [%d1], %r0;\nld.param.u64 %d2, [out];\nmul.wide.u32 %d3, %r0, 8;\nadd.u64 "
    "%d2, %d2, %d3;\nst.global.u64 [%d2], %d1;\nbar.sync 0;\n"
    "ld.param.u32 %r1, [frees];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra END;\n{\n.param .b64 given;\nst.param.b64 [given], "
    "%d1;\ncall.uni free, (given);\n}\nEND:\nret;\n}\n";

TEST(KernelHeap, EachThreadGetsABlockOfDeviceMemory) {
  TestDevice device;
  const auto module = load_or_fail(header() + kMalloc, device);
  ASSERT_NE(module, nullptr);
  const u64 out = device.upload(std::vector<u64>(64));
  ASSERT_EQ(run_kernel(*module, device, "k", {1}, {64}, out, u64{24}, 0u).fault, FaultKind::kNone);
  const auto blocks = device.download<u64>(out, 64);
  EXPECT_EQ(std::set<u64>(blocks.begin(), blocks.end()).size(), 64u);
  for (u32 i = 0; i < 64; ++i) {
    EXPECT_EQ(*reinterpret_cast<const u32*>(blocks[i]), i) << "another launch may read it";
    EXPECT_NE(device.find(blocks[i]).end, 0u) << "inside an allocation of the device";
  }
}

TEST(KernelHeap, MayBeFull) {
  TestDevice device;
  device.set_heap_bytes(32 * 64);
  const auto module = load_or_fail(header() + kMalloc, device);
  ASSERT_NE(module, nullptr);
  const u64 out = device.upload(std::vector<u64>(64));
  for (const u32 frees : {1u, 0u}) {
    const auto arguments = pack_arguments(module->kernel("k")->info(), out, u64{60}, frees);
    Launch launch;
    launch.block = {48};
    launch.parameters = arguments;
    ASSERT_EQ(module->kernel("k")->run(device, launch).fault, FaultKind::kNone);
    const auto blocks = device.download<u64>(out, 48);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), 0u), 16) << "32 blocks of 64 bytes fit";
    EXPECT_EQ(device.kernel_heap()->used_bytes(), frees != 0 ? 0u : 32u * 64);
  }
}

TEST(KernelHeap, FreeingWhatIsNoBlockFaults) {
  TestDevice device;
  const auto module = load_or_fail(header() +
                                       ".extern .func free(.param .b64 p);\n.visible .entry k(.param .u64 a) {\n.reg "
                                       ".b64 %d;\nld.param.u64 %d, [a];\n{\n.param .b64 "
                                       "given;\nst.param.b64 [given], %d;\ncall.uni free, (given);\n}\nret;\n}\n",
                                   device);
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1}, u64{4096});
  EXPECT_EQ(outcome.fault, FaultKind::kIllegalAddress);
  EXPECT_EQ(outcome.fault_address, 4096u);
}

TEST(KernelHeap, AModuleThatAllocatesNeedsRoomForItsHeap) {
  TestDevice device;
  device.set_heap_bytes(1000);
  device.set_room(999);
  const LoadResult result = load_module(header() + kMalloc, device, nullptr);
  EXPECT_EQ(result.module, nullptr);
  EXPECT_EQ(result.error.kind, LoadError::Kind::kOutOfMemory);
  EXPECT_EQ(device.allocations(), 0u);
}

// A function of one word, called with the lane: directly, by alias or through a table of addresses.
std::vector<u32> call_each(const std::string& functions, const std::string& call) {
  TestDevice device;
  const std::string text = header() + functions +
                           ".visible .entry k(.param .u64 out) {\n.reg .b64 %d<4>; .reg .b32 %r<4>;\nmov.u32 %r0, "
                           "%tid.x;\n{\n.param .b32 given;\n.param .b32 result;\nst.param.b32 [given], %r0;\n" +
                           call +
                           "\nld.param.b32 %r1, [result];\n}\nld.param.u64 %d0, [out];\nmul.wide.u32 %d1, %r0, "
                           "4;\nadd.u64 %d0, %d0, %d1;\nst.global.u32 [%d0], %r1;\nret;\n}\n";
  const auto module = load_or_fail(text, device);
  if (module == nullptr) return {};
  const u64 out = device.upload(std::vector<u32>(32));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, out);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<u32>(out, 32);
}

std::string adder(const std::string& name, int what) {
  return ".func (.param .b32 r) " + name + "(.param .b32 a) {\n.reg .b32 %x;\nld.param.b32 %x, [a];\nadd.u32 %x, %x, " +
         std::to_string(what) + ";\nst.param.b32 [r], %x;\nret;\n}\n";
}

TEST(Functions, AnAliasNamesTheSameFunction) {
  const auto results = call_each(adder("one", 1) + ".func (.param .b32 r) other(.param .b32 a);\n.alias other, one;\n",
                                 "call.uni (result), other, (given);");
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results[7], 8u);
  EXPECT_EQ(load_error(header() + ".alias other, missing;\n").kind, LoadError::Kind::kUnresolvedSymbol);
}

TEST(Functions, ATableOfAddressesAndADivergentCall) {
  const auto results = call_each(adder("one", 1) + adder("ten", 10) + ".global .align 8 .u64 table[2] = {one, ten};\n",
                                 ".reg .b64 %t<3>; .reg .b32 %i;\nand.b32 %i, %r0, 1;\nmov.u64 %t0, "
                                 "table;\nmul.wide.u32 %t1, %i, 8;\nadd.u64 %t0, %t0, %t1;\nld.global.u64 %t2, [%t0];\n"
                                 "targets: .calltargets one, ten;\ncall (result), %t2, (given), targets;");
  ASSERT_FALSE(results.empty());
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], i + (i % 2 == 0 ? 1 : 10));
}

TEST(Functions, RecursionKeepsEachCallsRegisters) {
  const auto results = call_each(
      ".func (.param .b32 r) sum(.param .b32 a) {\n.reg .b32 %x<3>; .reg .pred %p;\nld.param.b32 %x0, [a];\nmov.u32 "
      "%x1, 0;\nsetp.eq.u32 %p, %x0, 0;\n@%p bra END;\nsub.u32 %x2, %x0, 1;\n"
      "{\n.param .b32 g;\n.param .b32 s;\nst.param.b32 [g], %x2;\ncall (s), sum, (g);\nld.param.b32 %x1, "
      "[s];\n}\nEND:\nadd.u32 %x1, %x1, %x0;\nst.param.b32 [r], %x1;\nret;\n}\n",
      "call (result), sum, (given);");
  ASSERT_FALSE(results.empty());
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], i * (i + 1) / 2);
}

TEST(Functions, AParametersAddressLeadsToItsCopy) {
  const auto results = call_each(
      ".func (.param .b32 r) twice(.param .b32 a) {\n.reg .b64 %q<2>; .reg .b32 %x<3>;\nmov.b64 %q0, a;\nld.param.b32 "
      "%x0, [%q0];\ncvta.local.u64 %q1, %q0;\nld.u32 %x1, [%q1];\nadd.u32 %x0, %x0, %x1;\nst.param.b32 [r], "
      "%x0;\nret;\n}\n",
      "call.uni (result), twice, (given);");
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results[21], 42u);
}

TEST(Declarations, OneDirectiveMayDeclareSeveralVariables) {
  const auto results = evaluate<u32>(
      ".local .align 4 .b32 a[2], b;\n.shared .align 4 .u32 s, t[32];\nst.local.u32 [a+4], %in0;\nst.local.u32 [b], "
      "5;\nld.local.u32 %r0, [a+4];\nld.local.u32 %r1, [b];\nadd.u32 %out, %r0, %r1;",
      std::vector<u32>{37});
  EXPECT_EQ(results[0], 42u);
}

TEST(Declarations, AnUndefinedExternVariableIsNamed) {
  const LoadError error = load_error(
      header() + ".extern .global .u32 elsewhere;\n.entry k() {\n.reg .b64 %d;\nmov.u64 %d, elsewhere;\n}\n");
  EXPECT_EQ(error.kind, LoadError::Kind::kUnresolvedSymbol);
  EXPECT_NE(error.message.find("elsewhere"), std::string::npos);
}

TEST(Declarations, ClustersOfOneBlockAreAccepted) {
  TestDevice device;
  EXPECT_NE(load_or_fail(header() + ".entry k() .explicitcluster .reqnctapercluster 1, 1, 1 { ret; }\n", device),
            nullptr);
  EXPECT_NE(load_error(header() + ".entry k() .reqnctapercluster 2 { ret; }\n").message.find("cluster"),
            std::string::npos);
}

}  // namespace
}  // namespace softgpu::ptx
