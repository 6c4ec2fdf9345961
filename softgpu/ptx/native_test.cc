// Native code against the interpreter: programs made at random, and the cases in which native code must hand over.
// Memory, counts and faults must be the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::header;
using testing::load_or_fail;
using testing::run_kernel;
using testing::TestDevice;

constexpr std::size_t kWords = 4096;
constexpr std::size_t kThreads = 96;

struct Result {
  Outcome outcome;
  std::vector<std::uint32_t> in, out;
};

// Two buffers of one device, so that addresses are the same from run to run.
struct Memory {
  TestDevice device;
  std::uint64_t in = device.allocate(kWords * 4), out = device.allocate(kWords * 64);
};

// Kernel k(in, out) on 2 blocks of `threads`.
Result run_on(std::string_view isa, const std::string& text, unsigned threads) {
  static Memory memory;
  const std::string before(instruction_set().name);
  EXPECT_TRUE(choose_instruction_set(isa));
  const auto module = load_or_fail(text, memory.device);
  choose_instruction_set(before);
  if (module == nullptr) return {};
  std::vector<std::uint32_t> words(kWords);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761u) >> 8;
  std::memcpy(reinterpret_cast<void*>(memory.in), words.data(), kWords * 4);
  std::memset(reinterpret_cast<void*>(memory.out), 0, kWords * 64);
  Result result;
  result.outcome = run_kernel(*module, memory.device, "k", {2}, {threads}, memory.in, memory.out);
  result.in = memory.device.download<std::uint32_t>(memory.in, kWords);
  result.out = memory.device.download<std::uint32_t>(memory.out, 16 * kWords);
  return result;
}

void expect_same(const std::string& text, unsigned threads) {
  const Result wanted = run_on("interpreter", text, threads);
  const Result found = run_on(instruction_set().name, text, threads);
  EXPECT_EQ(found.outcome.fault, wanted.outcome.fault);
  EXPECT_EQ(found.outcome.fault_address, wanted.outcome.fault_address);
  EXPECT_EQ(found.outcome.fault_detail, wanted.outcome.fault_detail);
  EXPECT_EQ(found.outcome.warp_instructions, wanted.outcome.warp_instructions);
  EXPECT_EQ(found.outcome.lane_instructions, wanted.outcome.lane_instructions);
  EXPECT_EQ(found.outcome.global_bytes, wanted.outcome.global_bytes);
  EXPECT_TRUE(found.in == wanted.in) << text;
  EXPECT_TRUE(found.out == wanted.out) << text;
}

std::string kernel(const std::string& body) {
  return header() +
         ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
         ".reg .b32 %r<16>, %i; .reg .f32 %f<8>; .reg .b64 %a<8>, %l<8>, %in, %out; .reg .f64 %d<4>; .reg .pred "
         "%p<4>;\n"
         ".shared .align 8 .b8 buffer[1024];\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\nmov.u32 %r0, %tid.x;\n" +
         body + "}\n";
}

// A random instruction over r0-r15, f0-f7, l0-l7, d0-d3 and addresses a0-a7, which stay in [in + 1 KiB, in + 8 KiB).
class Programs {
 public:
  explicit Programs(unsigned seed) : random_(seed) {}

  std::string program() {
    std::string text =
        "mov.u32 %i, 0;\nand.b32 %r6, %r0, 31;\nshl.b32 %r6, %r6, 2;\nmov.u32 %r7, buffer;\n"
        "add.s32 %r7, %r7, %r6;\n";
    for (int i = 0; i < 8; ++i) text += "st.shared.u32 [%r7+" + n(128 * i) + "], %i;\n";
    for (int i = 1; i < 16; ++i) text += "ld.global.u32 %r" + n(i) + ", [%in+" + n(4 * i) + "];\n";
    for (int i = 0; i < 8; ++i) {
      text += "cvt.rn.f32.s32 %f" + n(i) + ", %r" + n(i) + ";\n";
      text += "cvt.u64.u32 %l" + n(i) + ", %r" + n(i + 3) + ";\n";
      text += "add.s64 %a" + n(i) + ", %in, 4096;\n";
    }
    for (int i = 0; i < 4; ++i) text += "cvt.f64.f32 %d" + n(i) + ", %f" + n(i) + ";\n";
    for (int i = 0; i < 4; ++i) text += "setp.lt.u32 %p" + n(i) + ", %r0, " + n(8 * i) + ";\n";
    if (pick(3) == 0) text += "setp.gt.u32 %p0, %r0, " + n(pick(96)) + ";\n@%p0 bra END;\n";
    text += "LOOP:\n";
    const int length = 5 + pick(60);
    for (int i = 0; i < length; ++i) text += instruction() + "\n";
    if (pick(3) == 0) text += "setp.eq.u32 %p3, %i, " + n(pick(6)) + ";\n@%p3 bra DONE;\n" + instruction() + "\n";
    text += "add.u32 %i, %i, 1;\nsetp.lt.u32 %p3, %i, " + (pick(4) == 0 ? "%r0" : n(2 + pick(4))) +
            ";\n@%p3 bra LOOP;\nDONE:\n" + results() + "END:\nret;\n";
    return kernel(text);
  }

 private:
  static std::string n(int value) { return std::to_string(value); }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string any(const char* kind, int count) { return "%" + std::string(kind) + n(pick(count)); }
  std::string r() { return any("r", 16); }
  std::string target() { return "%r" + n(1 + pick(15)); }  // r0 stays the thread's index

  std::string predicate() { return pick(6) == 0 ? "_" : any("p", 3); }

  template <std::size_t N>
  std::string one_of(const char* const (&words)[N]) {
    return words[pick(static_cast<int>(N))];
  }

  // Keeps the register within the buffer whatever was added to it.
  std::string address() {
    const std::string a = any("a", 8), l = any("l", 8);
    switch (pick(5)) {
      case 0: return "mul.wide.u32 " + l + ", %r0, " + n(4 * pick(3)) + ";\nadd.s64 " + a + ", %in, " + l + ";";
      case 1: return "add.s64 " + a + ", %in, " + n(4 * (256 + pick(1000))) + ";";
      case 2:
        return "and.b32 %r5, " + r() + ", 2044;\nmul.wide.u32 " + l + ", %r5, 4;\nadd.s64 " + a + ", " + l + ", %in;";
      case 3:
        return "shl.b64 " + l + ", " + l + ", 2;\nand.b64 " + l + ", " + l + ", 4092;\nadd.s64 " + a + ", %in, " + l +
               ";";
      default: return "mov.u64 " + a + ", " + any("a", 8) + ";";
    }
  }

  std::string instruction() {
    const std::string l = any("l", 8), f = any("f", 8), d = any("d", 4);
    const std::string offset = "+" + n(8 * pick(8));
    switch (pick(20)) {
      case 0:
        return one_of({"add.s32", "sub.s32", "mul.lo.s32", "min.u32", "max.s32", "and.b32", "xor.b32", "or.b32"}) +
               " " + target() + ", " + r() + ", " + r() + ";";
      case 1: return "mad.lo.s32 " + target() + ", " + r() + ", " + r() + ", " + r() + ";";
      case 2: return one_of({"shl.b32", "shr.u32", "shr.s32"}) + " " + target() + ", " + r() + ", " + n(pick(40)) + ";";
      case 3:
        return one_of({"add.f32", "sub.f32", "mul.f32", "div.rn.f32"}) + " " + f + ", " + any("f", 8) + ", " +
               any("f", 8) + ";";
      case 4:
      case 5: return "fma.rn.f32 " + f + ", " + any("f", 8) + ", " + any("f", 8) + ", " + any("f", 8) + ";";
      case 6:
        return one_of({"add.s64", "sub.s64", "xor.b64", "and.b64"}) + " " + l + ", " + any("l", 8) + ", " +
               any("l", 8) + ";";
      case 7: return one_of({"mul.wide.s32 ", "mul.wide.u32 "}) + l + ", " + r() + ", " + r() + ";";
      case 8: return one_of({"cvt.s64.s32 ", "cvt.u64.u32 "}) + l + ", " + r() + ";";
      case 9: return "cvt.u32.u64 " + target() + ", " + l + ";";
      case 10:
        return one_of({"setp.lt.s32", "setp.ge.s32", "setp.eq.s32", "setp.ne.u32", "setp.lt.u32", "setp.le.u32",
                       "setp.gt.u32", "setp.ge.u32"}) +
               " " + predicate() + ", " + r() + ", " + r() + ";";
      case 11:
        return one_of({"setp.lt.f32", "setp.ge.f32", "setp.neu.f32", "setp.num.f32", "setp.leu.f32"}) + " " +
               predicate() + ", " + any("f", 8) + ", " + any("f", 8) + ";";
      case 12: return "selp.b32 " + target() + ", " + r() + ", " + r() + ", " + any("p", 3) + ";";
      case 13:
        return one_of({"fma.rn.f64 ", "fma.rn.f64 "}) + d + ", " + any("d", 4) + ", " + any("d", 4) + ", " +
               any("d", 4) + ";";
      case 14: return "ld.global.u32 " + target() + ", [" + any("a", 8) + offset + "];";
      case 15: return address();
      case 16:
        return "and.b32 %r6, %r0, 31;\nshl.b32 %r6, %r6, 2;\nmov.u32 %r7, buffer;\nadd.s32 %r7, %r7, "
               "%r6;\nst.shared.u32 [%r7+" +
               n(128 * pick(4)) + "], " + r() + ";\nld.shared.u32 " + target() + ", [%r7+" + n(128 * pick(4)) + "];";
      case 17: return one_of({"mov.b32 ", "mov.u32 "}) + target() + ", " + r() + ";";
      case 18: return "@" + any("p", 3) + " add.s32 " + target() + ", " + r() + ", 5;";
      default:
        return one_of({"and.pred ", "or.pred ", "xor.pred "}) + predicate() + ", " + any("p", 3) + ", " + any("p", 3) +
               ";";
    }
  }

  // Everything to out + 256 bytes per thread, by the linear index in the grid.
  static std::string results() {
    std::string text =
        "mov.u32 %i, %ctaid.x;\nmad.lo.u32 %i, %i, 96, %r0;\nmul.wide.u32 %a0, %i, 4;\nadd.s64 %a0, %out, %a0;\n";
    int row = 0;
    const auto next = [&] { return "[%a0+" + n(192 * 4 * row++) + "], "; };
    for (int i = 0; i < 16; ++i) text += "st.global.u32 " + next() + "%r" + n(i) + ";\n";
    for (int i = 0; i < 8; ++i) {
      text += "cvt.u32.u64 %r1, %l" + n(i) + ";\nst.global.u32 " + next() + "%r1;\nshr.u64 %l0, %l" + n(i) +
              ", 32;\ncvt.u32.u64 %r1, %l0;\nst.global.u32 " + next() + "%r1;\n";
      // NaNs have no defined payload.
      text += "setp.num.f32 %p0, %f" + n(i) + ", %f" + n(i) + ";\nmov.b32 %r1, %f" + n(i) +
              ";\nselp.b32 %r1, %r1, 1, %p0;\nst.global.u32 " + next() + "%r1;\n";
    }
    for (int i = 0; i < 4; ++i) {
      text += "cvt.rn.f32.f64 %f0, %d" + n(i) +
              ";\nsetp.num.f32 %p0, %f0, %f0;\nmov.b32 %r1, %f0;\n"
              "selp.b32 %r1, %r1, 1, %p0;\nst.global.u32 " +
              next() + "%r1;\n";
    }
    return text;
  }

  std::mt19937 random_;
};

TEST(Native, AgreesWithTheInterpreterOnRandomPrograms) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    expect_same(Programs(seed).program(), seed % 3 == 0 ? kThreads : 37 + seed % 50);
  }
}

// The middle of a segment faults in one lane; what was stored before stays.
TEST(Native, FaultsAsTheInterpreterDoes) {
  const std::string start = "mul.wide.u32 %a0, %r0, 4;\nadd.s64 %a1, %in, %a0;\nadd.s64 %a2, %out, %a0;\n";
  for (const char* access : {"ld.global.u32 %r1, [%a1+16000];", "st.global.u32 [%a1+-64], %r0;",
                             "ld.global.u32 %r1, [%a1+2];", "ld.shared.u32 %r1, [%r0+1000];", "ld.u64 %l0, [%a1];"}) {
    SCOPED_TRACE(access);
    expect_same(kernel(start + "st.global.u32 [%a2], %r0;\n" + access + "\nst.global.u32 [%a2+4096], %r1;\nret;\n"),
                96);
  }
}

// A loop of 100,000 rounds yields in between and must find its state again; lanes may wait behind it for their end.
TEST(Native, LoopsAreSuspendedAndResumed) {
  const std::string loop =
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nmul.wide.u32 %a0, %r0, 4;\nadd.s64 %a1, %in, %a0;\n"
      "add.s64 %a2, %out, %a0;\nLOOP:\nld.global.u32 %r3, [%a1];\nadd.s32 %r2, %r2, %r3;\n"
      "add.s32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, 100000;\n@%p0 bra LOOP;\nst.global.u32 [%a2], %r2;\n"
      "END:\nret;\n";
  expect_same(kernel(loop), 64);
  expect_same(kernel("setp.gt.u32 %p1, %r0, 40;\n@%p1 bra END;\n" + loop), 64);
}

// Lanes that leave a loop early keep their own values.
TEST(Native, LoopsWithAnExitForSomeLanes) {
  expect_same(kernel("mov.u32 %r1, 0;\nmov.u32 %r2, 7;\nLOOP:\nadd.s32 %r2, %r2, %r1;\nsetp.gt.u32 %p0, %r1, %r0;\n"
                     "@%p0 bra OUT;\nxor.b32 %r2, %r2, 5;\nadd.s32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 40;\n"
                     "@%p1 bra LOOP;\nOUT:\nmul.wide.u32 %a0, %r0, 4;\nadd.s64 %a1, %out, %a0;\n"
                     "st.global.u32 [%a1], %r2;\nret;\n"),
              64);
}

}  // namespace
}  // namespace softgpu::ptx
