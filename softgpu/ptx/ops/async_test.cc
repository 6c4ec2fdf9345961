// cp.async and mbarrier.
#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

// Each thread copies from its 16 bytes of the input to its 16 bytes of shared memory, which held ones, and reports them.
std::vector<u8> run_copy(const std::string& instruction, std::string_view opcode) {
  const std::string text = header() +
                           ".visible .entry k(.param .u64 in, .param .u64 out) {\n.shared .align 16 .b8 "
                           "tile[512];\n.reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<2>;\n"
                           "mov.u32 %r0, %tid.x;\nmul.wide.u32 %d0, %r0, 16;\nld.param.u64 %d1, [in];\nadd.u64 %d1, "
                           "%d1, %d0;\nld.param.u64 %d2, [out];\nadd.u64 %d2, %d2, %d0;\n"
                           "mov.u64 %d3, tile;\nadd.u64 %d3, %d3, %d0;\nmov.u32 %r1, -1;\nst.shared.v4.u32 [%d3], "
                           "{%r1,%r1,%r1,%r1};\nand.b32 %r2, %r0, 15;\nsetp.eq.u32 %p0, %r2, 3;\nmov.u64 %d4, 0;\n" +
                           instruction +
                           "\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nld.shared.v4.u32 "
                           "{%r3,%r4,%r5,%r6}, [%d3];\nst.global.v4.u32 [%d2], {%r3,%r4,%r5,%r6};\nret;\n}\n";
  TestDevice device;
  const auto module = load_or_fail(covers(text, {opcode, "cp.async.commit_group", "cp.async.wait_group"}), device);
  if (module == nullptr) return {};
  std::vector<u8> bytes(512);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(i * 7 + 1);
  const u64 out = device.upload(std::vector<u8>(512));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, device.upload(bytes), out);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<u8>(out, 512);
}

// `read(lane)`: how many bytes come from the source; the rest of `size` is zero, what lies behind it stays.
template <class F>
void expect_copy(const std::string& opcode, const std::string& options, std::size_t size, const F& read) {
  const auto bytes = run_copy(opcode + " [%d3], [%d1], " + options + ";", opcode);
  ASSERT_FALSE(bytes.empty());
  for (std::size_t i = 0; i < 512; ++i) {
    const std::size_t at = i % 16, lane = i / 16;
    const u8 expected = at >= size ? 255 : at < read(lane) ? static_cast<u8>(i * 7 + 1) : 0;
    ASSERT_EQ(bytes[i], expected) << opcode << " " << options << " lane " << lane << " byte " << at;
  }
}

TEST(CpAsync, CopiesAndFillsWithZeros) {
  for (const std::size_t size : {4u, 8u, 16u}) {
    const std::string n = std::to_string(size);
    for (const std::string level : {"ca", "cg"}) {
      if (level == "cg" && size != 16) continue;
      for (const std::string hint : {"", ".L2::128B"}) {
        const std::string opcode = "cp.async." + level + ".shared.global" + hint;
        expect_copy(opcode, n, size, [=](std::size_t) { return size; });
        expect_copy(opcode, n + ", %r2", size, [=](std::size_t lane) { return std::min(lane & 15, size); });
        expect_copy(opcode, n + ", %p0", size, [=](std::size_t lane) { return (lane & 15) == 3 ? 0 : size; });
      }
      expect_copy("cp.async." + level + ".shared.global.L2::cache_hint", n + ", %d4", size,
                  [=](std::size_t) { return size; });
      expect_copy("cp.async." + level + ".shared::cta.global", n, size, [=](std::size_t) { return size; });
    }
  }
}

TEST(CpAsync, AccessesAreChecked) {
  TestDevice device;
  const std::string text = header() +
                           ".visible .entry k(.param .u64 p) {\n.shared .align 16 .b8 tile[16];\n.reg .b64 %d<2>; .reg "
                           ".b32 %r;\nld.param.u64 %d0, [p];\nmov.u32 %r, tile;\n"
                           "cp.async.cg.shared.global [%r+16], [%d0], 16;\nret;\n}\n";
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {1}, device.upload(std::vector<u64>(2)));
  EXPECT_EQ(outcome.fault, FaultKind::kIllegalAddress) << "behind shared memory";
  EXPECT_NE(outcome.fault_detail.find("PTX line 9"), std::string::npos) << outcome.fault_detail;
}

TEST(CpAsync, BytesThatAreNotReadNeedNotExist) {
  TestDevice device;
  const std::string text =
      header() +
      ".visible .entry k(.param .u64 p, .param .u32 n) {\n.shared .align 16 .b8 tile[16];\n.reg .b64 %d; "
      ".reg .b32 %r<2>;\nld.param.u64 %d, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r0, tile;\n"
      "cp.async.cg.shared.global [%r0], [%d], 16, %r1;\nret;\n}\n";
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const u64 p = device.upload(std::vector<u8>(8));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {1}, p, 8u).fault, FaultKind::kNone);
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {1}, p, 9u).fault, FaultKind::kIllegalAddress);
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {1}, p + 4, 4u).fault, FaultKind::kMisalignedAddress);
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {1}, p + 4096, 0u).fault, FaultKind::kNone);
}

TEST(CpAsync, SizesThatDoNotExistAndBulkCopiesAreRefused) {
  for (const char* instruction :
       {"cp.async.cg.shared.global [%d0], [%d1], 8;", "cp.async.ca.shared.global [%d0], [%d1], 12;",
        "cp.async.ca.global.shared [%d0], [%d1], 4;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%d0], [%d1], 16, [%d0];"}) {
    const LoadError error = load_error(header() + ".entry k() {\n.reg .b64 %d<2>;\n" + instruction + "\n}\n");
    EXPECT_EQ(error.line, 6);
    EXPECT_NE(error.message.find("cp.async"), std::string::npos) << error.message;
  }
}

// Threads of four warps wait until all have arrived, twice; then each sees what every other has stored.
TEST(Mbarrier, PhasesFollowOneAnother) {
  const std::string text = covers(
      header() +
          ".visible .entry k(.param .u64 out) {\n.shared .align 8 .b8 bar[8];\n.shared .align 4 .b8 sum[8];\n.reg .b64 "
          "%d<8>; .reg .b32 %r<8>; .reg .pred %p<4>;\n"
          "mov.u32 %r0, %tid.x;\nmov.u64 %d0, bar;\nmov.u64 %d1, sum;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra "
          "READY;\nmbarrier.init.shared.b64 [%d0], 128;\nst.shared.u32 [%d1], 0;\nst.shared.u32 [%d1+4], "
          "0;\nREADY:\nbar.sync 0;\n"
          "red.shared.add.u32 [%d1], 1;\nmbarrier.arrive.shared.b64 %d2, [%d0];\nWAIT:\nmbarrier.test_wait.shared.b64 "
          "%p1, [%d0], %d2;\n@!%p1 bra WAIT;\nld.shared.u32 %r1, [%d1];\n"
          "red.shared.add.u32 [%d1+4], %r1;\nmbarrier.arrive.shared.b64 _, "
          "[%d0];\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 %p1, [%d0], 1;\n@!%p1 bra AGAIN;\nld.shared.u32 %r2, "
          "[%d1+4];\n"
          "bar.sync 0;\n@!%p0 mbarrier.inval.shared.b64 [%d0];\nld.param.u64 %d3, [out];\nmul.wide.u32 %d4, %r0, "
          "4;\nadd.u64 %d3, %d3, %d4;\nst.global.u32 [%d3], %r2;\nret;\n}\n",
      {"mbarrier.init.shared.b64", "mbarrier.arrive.shared.b64", "mbarrier.test_wait.shared.b64",
       "mbarrier.try_wait.parity.shared.b64", "mbarrier.inval.shared.b64"});
  TestDevice device;
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const u64 out = device.upload(std::vector<u32>(128));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {128}, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  for (const u32 value : device.download<u32>(out, 128)) EXPECT_EQ(value, 128u * 128);
}

TEST(Mbarrier, CountsDropsAndStates) {
  const auto results = evaluate<u64>(
      covers(".shared .align 8 .b8 bar[8];\nmov.u64 %d0, bar;\nmov.u64 %out, 0;\nsetp.ne.u32 %p0, %lane32, 0;\n@%p0 "
             "bra END;\nmbarrier.init.shared::cta.b64 [%d0], 5;\nmbarrier.arrive.noComplete.shared.b64 %d1, [%d0], 2;\n"
             "mbarrier.pending_count.b64 %r0, %d1;\nmbarrier.arrive_drop.shared.b64 %d2, "
             "[%d0];\nmbarrier.pending_count.b64 %r1, %d2;\ncp.async.mbarrier.arrive.shared.b64 "
             "[%d0];\ncp.async.mbarrier.arrive.noinc.shared.b64 [%d0];\n"
             "mbarrier.arrive.shared.b64 %d3, [%d0];\nmbarrier.pending_count.b64 %r2, %d3;\nmbarrier.arrive.shared.b64 "
             "%d4, [%d0];\nmbarrier.pending_count.b64 %r3, %d4;\n"
             "mbarrier.test_wait.shared.b64 %p1, [%d0], %d3;\nselp.u32 %r4, 1, 0, "
             "%p1;\nmbarrier.test_wait.parity.shared.b64 %p1, [%d0], 1;\nselp.u32 %r5, 1, 0, "
             "%p1;\nmbarrier.try_wait.shared.b64 %p1, [%d0], %d4, 1000;\nselp.u32 %r6, 1, 0, %p1;\n"
             "mov.u32 %r7, 0;\nmad.lo.u32 %r7, %r7, 10, %r0;\nmad.lo.u32 %r7, %r7, 10, %r1;\nmad.lo.u32 %r7, %r7, 10, "
             "%r2;\nmad.lo.u32 %r7, %r7, 10, %r3;\nmad.lo.u32 %r7, %r7, 10, %r4;\nmad.lo.u32 %r7, %r7, 10, "
             "%r5;\nmad.lo.u32 %r7, %r7, 10, %r6;\ncvt.u64.u32 %out, %r7;\nEND:",
             {"mbarrier.init.shared::cta.b64", "mbarrier.arrive.noComplete.shared.b64", "mbarrier.pending_count.b64",
              "mbarrier.arrive_drop.shared.b64", "cp.async.mbarrier.arrive.shared.b64",
              "cp.async.mbarrier.arrive.noinc.shared.b64", "mbarrier.test_wait.parity.shared.b64",
              "mbarrier.try_wait.shared.b64"}),
      std::vector<u32>{0});
  // Pending 5, after two arrivals 3, after the drop and the copy's arrival 1, then the next phase of 4 with one arrived.
  EXPECT_EQ(results[0], 5314100u);
}

}  // namespace
}  // namespace softgpu::ptx
