// Loads, stores and atomics of every type, width and space, with every qualifier.
#include <algorithm>
#include <functional>
#include <numeric>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

constexpr int kBytesPerLane = 16;

std::vector<u8> pattern() {
  std::vector<u8> out(32 * kBytesPerLane);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<u8>(i * 37 + 11);
  return out;
}

struct MemoryType {
  const char* name;
  int bytes;
};
constexpr MemoryType kTypes[] = {{"b8", 1},  {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2}, {"b32", 4},
                                 {"u32", 4}, {"s32", 4}, {"f32", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}};

// A register that holds the type: 8 bits lie in 16.
std::string register_bits(const MemoryType& type) {
  return std::to_string(8 * std::max(type.bytes, 2));
}

// Kernel text around `body`. %p points to the lane's 16 bytes in the space under test, %g to those of the input and %o
// to 64 bytes of output.
std::string kernel(const std::string& space, const MemoryType& type, const std::string& body) {
  std::string bytes;
  for (const u8 byte : pattern()) bytes += (bytes.empty() ? "" : ",") + std::to_string(byte);
  std::string text = header();
  if (space == "const") text += ".const .align 16 .b8 bank[512] = {" + bytes + "};\n";
  text +=
      ".visible .entry k(.param .u64 in, .param .u64 out, .param .align 16 .b8 given[16]) {\n"
      ".shared .align 16 .b8 tile[512];\n.local .align 16 .b8 own[16];\n"
      ".reg .b64 %p, %g, %o, %w, %policy; .reg .b32 %t; .reg .b32 %m<4>; .reg .b" +
      register_bits(type) +
      " %x<4>;\nmov.u32 %t, %tid.x;\nld.param.u64 %g, [in];\nmul.wide.u32 %w, %t, 16;\nadd.u64 %g, %g, %w;\n"
      "ld.param.u64 %o, [out];\nmad.wide.u32 %o, %t, 64, %o;\nld.global.v4.u32 {%m0,%m1,%m2,%m3}, [%g];\n"
      "createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;\n";
  const std::string address = space == "shared"  ? "mov.u64 %p, tile;\nadd.u64 %p, %p, %w;\n"
                              : space == "const" ? "mov.u64 %p, bank;\nadd.u64 %p, %p, %w;\n"
                              : space == "local" ? "mov.u64 %p, own;\n"
                                                 : "mov.u64 %p, %g;\n";
  const bool copies = space == "shared" || space == "local";
  const std::string copy = copies ? "st." + space + ".v4.u32 [%p], {%m0,%m1,%m2,%m3};\n" : "";
  return text + address + copy + body + "ret;\n}\n";
}

std::vector<u8> run(const std::string& text) {
  TestDevice device;
  const auto module = load_or_fail(text, device);
  if (module == nullptr) return {};
  const u64 out = device.upload(std::vector<u8>(32 * 64));
  std::array<u8, kBytesPerLane> given;
  const auto bytes = pattern();
  std::copy_n(bytes.begin(), kBytesPerLane, given.begin());
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, device.upload(bytes), out, given);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail << "\n" << text;
  return device.download<u8>(out, 32 * 64);
}

std::string list(int count) {
  if (count == 1) return "%x0";
  std::string out = "{%x0";
  for (int i = 1; i < count; ++i) out += ", %x" + std::to_string(i);
  return out + "}";
}

// `ld<middle><vector>.<type>` loads the lane's first bytes; an 8-bit one is extended by its sign.
void expect_load(const std::string& middle, const std::string& space, const MemoryType& type, int count,
                 const std::string& base = "ld") {
  const std::string vector = count == 1 ? "" : ".v" + std::to_string(count);
  const std::string opcode = base + middle + vector + "." + type.name;
  covers(opcode);
  const std::string where = space == "param" ? "[given]" : "[%p]";
  const std::string policy = middle.find("cache_hint") != std::string::npos ? ", %policy" : "";
  std::string body = opcode + " " + list(count) + ", " + where + policy + ";\n";
  for (int i = 0; i < count; ++i) {
    body += "st.global.b" + register_bits(type) + " [%o+" + std::to_string(8 * i) + "], %x" + std::to_string(i) + ";\n";
  }
  const auto result = run(kernel(space, type, body));
  const auto bytes = pattern();
  if (result.empty()) return;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t from = space == "param" ? 0 : lane * kBytesPerLane;
    for (int i = 0; i < count; ++i) {
      u64 expected = 0, actual = 0;
      std::memcpy(&expected, &bytes[from + static_cast<std::size_t>(i * type.bytes)],
                  static_cast<std::size_t>(type.bytes));
      if (type.name == std::string("s8")) expected = static_cast<u16>(static_cast<s8>(expected));
      std::memcpy(&actual, &result[lane * 64 + static_cast<std::size_t>(8 * i)],
                  static_cast<std::size_t>(std::max(type.bytes, 2)));
      ASSERT_EQ(actual, expected) << opcode << " lane " << lane << " element " << i;
    }
  }
}

// `st<middle><vector>.<type>` over the lane's bytes, of which a copy then goes to the output.
void expect_store(const std::string& middle, const std::string& space, const MemoryType& type, int count) {
  const std::string vector = count == 1 ? "" : ".v" + std::to_string(count);
  const std::string opcode = "st" + middle + vector + "." + type.name;
  covers(opcode);
  std::string body;
  // The value is the complement of what lies there.
  for (int i = 0; i < count; ++i) {
    const std::string x = "%x" + std::to_string(i);
    body += "ld.global." + std::string(type.bytes == 1 ? "u8" : "b" + register_bits(type)) + " " + x + ", [%g+" +
            std::to_string(i * type.bytes) + "];\nnot.b" + register_bits(type) + " " + x + ", " + x + ";\n";
  }
  const std::string policy = middle.find("cache_hint") != std::string::npos ? ", %policy" : "";
  const std::string reader = space == "generic" ? "ld" : "ld." + space;
  body += opcode + " [%p], " + list(count) + policy + ";\n" + reader +
          ".v4.u32 {%m0,%m1,%m2,%m3}, [%p];\n"
          "st.global.v4.u32 [%o], {%m0,%m1,%m2,%m3};\n";
  const auto result = run(kernel(space, type, body));
  const auto bytes = pattern();
  if (result.empty()) return;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < kBytesPerLane; ++i) {
      const bool stored = i < static_cast<std::size_t>(type.bytes * count);
      const u8 before = bytes[lane * kBytesPerLane + i];
      ASSERT_EQ(result[lane * 64 + i], stored ? static_cast<u8>(~before) : before)
          << opcode << " lane " << lane << " byte " << i;
    }
  }
}

std::string dotted(const std::string& space) {
  return space == "generic" ? "" : "." + space;
}

void expect_everywhere(const MemoryType& type) {
  for (const int count : {1, 2, 4}) {
    if (count * type.bytes > kBytesPerLane) continue;
    for (const std::string space : {"global", "shared", "local", "const", "generic", "param"}) {
      expect_load(dotted(space), space, type, count);
      if (space != "const" && space != "param") expect_store(dotted(space), space, type, count);
    }
    expect_load(".global.nc", "global", type, count);
  }
}
TEST(MemoryOpcodes, EveryTypeWidthAndSpaceUpTo16Bits) {
  for (const MemoryType& type : kTypes) {
    if (type.bytes <= 2) expect_everywhere(type);
  }
}
TEST(MemoryOpcodes, EveryTypeWidthAndSpaceFrom32Bits) {
  for (const MemoryType& type : kTypes) {
    if (type.bytes > 2) expect_everywhere(type);
  }
}

TEST(MemoryOpcodes, QualifiersOfLoads) {
  constexpr MemoryType kWord{"u32", 4}, kBits{"b32", 4}, kFloat{"f32", 4};
  for (const MemoryType& type : {kWord, kBits, kFloat}) {
    for (const char* middle : {".global.ca",
                               ".global.cg",
                               ".global.cs",
                               ".global.lu",
                               ".global.cv",
                               ".volatile.global",
                               ".relaxed.gpu.global",
                               ".relaxed.sys.global",
                               ".relaxed.cta.global",
                               ".acquire.gpu.global",
                               ".acquire.sys.global",
                               ".acquire.cta.global",
                               ".weak.global",
                               ".mmio.relaxed.sys.global",
                               ".global.L1::evict_last",
                               ".global.L1::evict_first",
                               ".global.L1::no_allocate",
                               ".global.L2::128B",
                               ".global.nc.L1::no_allocate.L2::128B",
                               ".global.nc.L2::256B",
                               ".global.L2::cache_hint",
                               ".global.nc.L1::evict_first.L2::cache_hint"}) {
      expect_load(middle, "global", type, 1);
    }
    for (const char* middle : {".volatile", ".relaxed.gpu", ".acquire.gpu", ".acquire.sys", ".relaxed.cluster"}) {
      expect_load(middle, "generic", type, 1);
    }
    expect_load(".volatile.shared", "shared", type, 1);
    expect_load(".relaxed.cta.shared", "shared", type, 1);
    expect_load(".shared::cta", "shared", type, 1);
    expect_load(".shared::cluster", "shared", type, 1);
    expect_load(".global", "global", type, 1, "ldu");
  }
}
TEST(MemoryOpcodes, QualifiersOfStores) {
  constexpr MemoryType kWord{"u32", 4}, kBits{"b32", 4}, kFloat{"f32", 4};
  for (const MemoryType& type : {kWord, kBits, kFloat}) {
    for (const char* middle :
         {".global.wb", ".global.cg", ".global.cs", ".global.wt", ".volatile.global", ".relaxed.gpu.global",
          ".release.gpu.global", ".release.sys.global", ".release.cta.global", ".weak.global",
          ".mmio.relaxed.sys.global", ".global.L1::evict_last", ".global.L1::no_allocate", ".global.L2::cache_hint"}) {
      expect_store(middle, "global", type, 1);
    }
    for (const char* middle : {".volatile", ".relaxed.gpu", ".release.gpu", ".release.sys"}) {
      expect_store(middle, "generic", type, 1);
    }
    expect_store(".volatile.shared", "shared", type, 1);
    expect_store(".shared::cta", "shared", type, 1);
  }
}

TEST(MemoryOpcodes, A128BitValueIsLoadedAndStoredWhole) {
  expect_op<u64(u64)>(
      "ld.local.b128", [](u64 a) { return a * 3; },
      ".local .align 16 .b8 own[16];\nmov.u64 %d0, own;\nshl.b64 %d1, %in0, 1;\nst.local.v2.u64 [%d0], "
      "{%in0, %d1};\nld.local.b128 %q0, [%d0];\nmov.b128 {%d2, %d3}, %q0;\nadd.u64 %out, %d2, %d3;");
  expect_op<u64(u64)>(
      "st.local.b128", [](u64 a) { return a * 3; },
      ".local .align 16 .b8 own[16];\nmov.u64 %d0, own;\nshl.b64 %d1, %in0, 1;\nmov.b128 %q0, {%in0, %d1};\n"
      "st.local.b128 [%d0], %q0;\nld.local.v2.u64 {%d2, %d3}, [%d0];\nadd.u64 %out, %d2, %d3;");
}

// ---- through a function: st.param, call, ld.param, ret

TEST(MemoryOpcodes, ArgumentsAndResultsOfCalls) {
  for (const MemoryType& type : kTypes) {
    const std::string t = type.name, r = "b" + register_bits(type);
    for (const std::string call : {"call", "call.uni"}) {
      const std::string text = header() + ".func (.param ." + t + " r) same(.param ." + t + " a) {\n.reg ." + r +
                               " %v;\nld.param." + t + " %v, [a];\nst.param." + t +
                               " [r], %v;\nret;\n}\n.visible .entry k(.param .u64 in, .param .u64 out) {\n.reg ." + r +
                               " %x; .reg .b64 %d<4>; .reg .b32 %t;\nmov.u32 %t, %tid.x;\nmul.wide.u32 %d0, %t, "
                               "8;\nld.param.u64 %d1, [in];\n"
                               "add.u64 %d1, %d1, %d0;\nld.param.u64 %d2, [out];\nadd.u64 %d2, %d2, %d0;\nld.global." +
                               t + " %x, [%d1];\n{\n.param ." + t + " given;\n.param ." + t + " result;\nst.param." +
                               t + " [given], %x;\n" + call + " (result), same, (given);\nld.param." + t +
                               " %x, [result];\n}\nst.global." + t + " [%d2], %x;\nret;\n}\n";
      covers(text, {"ld.param." + t, "st.param." + t, call, "ret"});
      TestDevice device;
      const auto module = load_or_fail(text, device);
      ASSERT_NE(module, nullptr);
      std::vector<u64> input(32);
      std::iota(input.begin(), input.end(), 0x8182838485868700);
      const u64 out = device.upload(std::vector<u64>(32));
      EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, device.upload(input), out).fault, FaultKind::kNone);
      const auto result = device.download<u64>(out, 32);
      const u64 mask = type.bytes == 8 ? ~u64{0} : (u64{1} << 8 * type.bytes) - 1;
      for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], input[i] & mask) << t;
    }
  }
}

// ---- atomics: lanes follow one another, so a fold over them gives every old value

struct Atomic {
  std::string operation, type;
  int bytes;
  std::function<u64(u64, u64, u64)> apply;  // of the old value, the operand and, of cas, the third
};

template <class T>
Atomic typed(const std::string& operation, const std::string& type, const std::function<T(T, T, T)>& apply) {
  const auto bits = [](T value) {
    u64 out = 0;
    std::memcpy(&out, &value, sizeof value);
    return out;
  };
  const auto value = [](u64 from) {
    T out;
    std::memcpy(static_cast<void*>(&out), &from, sizeof out);
    return out;
  };
  return {operation, type, sizeof(T), [=](u64 a, u64 b, u64 c) { return bits(apply(value(a), value(b), value(c))); }};
}

template <class U>
void add_integers(std::vector<Atomic>& out) {
  using S = std::make_signed_t<U>;
  const std::string n = std::to_string(8 * sizeof(U));
  for (const std::string sign : {"u", "s"}) {
    out.push_back(typed<U>("add", sign + n, [](U a, U b, U) { return static_cast<U>(a + b); }));
  }
  out.push_back(typed<U>("min", "u" + n, [](U a, U b, U) { return std::min(a, b); }));
  out.push_back(typed<U>("max", "u" + n, [](U a, U b, U) { return std::max(a, b); }));
  out.push_back(typed<S>("min", "s" + n, [](S a, S b, S) { return std::min(a, b); }));
  out.push_back(typed<S>("max", "s" + n, [](S a, S b, S) { return std::max(a, b); }));
  out.push_back(typed<U>("and", "b" + n, [](U a, U b, U) { return a & b; }));
  out.push_back(typed<U>("or", "b" + n, [](U a, U b, U) { return a | b; }));
  out.push_back(typed<U>("xor", "b" + n, [](U a, U b, U) { return a ^ b; }));
  out.push_back(typed<U>("exch", "b" + n, [](U, U b, U) { return b; }));
  out.push_back(typed<U>("cas", "b" + n, [](U a, U b, U c) { return a == b ? c : a; }));
}

template <class Half>
Half sum(Half a, Half b) {
  return Half::from(a.value() + b.value());
}

std::vector<Atomic> atomics() {
  std::vector<Atomic> out;
  add_integers<u32>(out);
  add_integers<u64>(out);
  out.push_back(typed<u16>("cas", "b16", [](u16 a, u16 b, u16 c) { return a == b ? c : a; }));
  out.push_back(typed<u32>("inc", "u32", [](u32 a, u32 b, u32) { return a >= b ? 0 : a + 1; }));
  out.push_back(typed<u32>("dec", "u32", [](u32 a, u32 b, u32) { return a == 0 || a > b ? b : a - 1; }));
  out.push_back(typed<float>("add", "f32", [](float a, float b, float) { return a + b; }));
  out.push_back(typed<double>("add", "f64", [](double a, double b, double) { return a + b; }));
  out.push_back(typed<f16>("add.noftz", "f16", [](f16 a, f16 b, f16) { return sum(a, b); }));
  out.push_back(typed<bf16>("add.noftz", "bf16", [](bf16 a, bf16 b, bf16) { return sum(a, b); }));
  out.push_back(typed<f16x2>("add.noftz", "f16x2", [](f16x2 a, f16x2 b, f16x2) {
    return f16x2{sum(a.low, b.low), sum(a.high, b.high)};
  }));
  out.push_back(typed<bf16x2>("add.noftz", "bf16x2", [](bf16x2 a, bf16x2 b, bf16x2) {
    return bf16x2{sum(a.low, b.low), sum(a.high, b.high)};
  }));
  return out;
}

// Lane l applies operand l to one word; `shared` keeps the word in shared memory.
void expect_atomic(const Atomic& atomic, const std::string& opcode, bool returns, bool shared,
                   const std::string& policy = "") {
  covers(opcode);
  const std::string r = "b" + std::to_string(8 * atomic.bytes), bytes = std::to_string(atomic.bytes);
  const std::string third = atomic.operation == "cas" ? ", %y" : "";
  const std::string text =
      header() +
      ".visible .entry k(.param .u64 in, .param .u64 word, .param .u64 out) {\n.shared .align 8 .b8 cell[8];\n.reg ." +
      r +
      " %x, %y, %old, %w; .reg .b64 %d<8>; .reg .b32 %t; .reg .pred %p;\nmov.u32 %t, %tid.x;\nmul.wide.u32 %d0, %t, "
      "16;\n"
      "ld.param.u64 %d1, [in];\nadd.u64 %d1, %d1, %d0;\nld.global." +
      r + " %x, [%d1];\nld.global." + r +
      " %y, [%d1+8];\n"
      "ld.param.u64 %d2, [word];\nld.param.u64 %d3, [out];\nadd.u64 %d3, %d3, %d0;\nld.global." +
      r + " %w, [%d2];\nmov.u64 %d4, " + (shared ? "cell" : "%d2") + ";\nmov.b64 %d5, 0;\n" +
      (shared ? "st.shared." + r + " [%d4], %w;\n" : "") +
      (returns ? opcode + " %old, [%d4], %x" : opcode + " [%d4], %x") + third + policy + ";\n" +
      (returns ? "st.global." + r + " [%d3], %old;\n" : "") +
      (shared ? "bar.sync 0;\nld.shared." + r + " %w, [%d4];\nst.global." + r + " [%d2], %w;\n" : "") + "ret;\n}\n";
  TestDevice device;
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  // The bits of a small integer would be a subnormal float.
  std::vector<u64> input(64), word{atomic.type == "f32" ? std::bit_cast<u32>(5.0f) : u64{5}};
  for (u64 i = 0; i < 32; ++i) {
    // Small numbers in every format, and patterns for integers.
    const u64 half = f16::from(static_cast<double>(i) / 4).bits, brain = bf16::from(static_cast<double>(i)).bits;
    const bool is_cas = atomic.operation == "cas";
    input[2 * i] = is_cas                           ? i * 5
                   : atomic.type == "f32"           ? std::bit_cast<u32>(static_cast<float>(i))
                   : atomic.type == "f64"           ? std::bit_cast<u64>(0.25 * static_cast<double>(i))
                   : atomic.type.starts_with("bf")  ? brain << 16 | brain
                   : atomic.type.starts_with("f16") ? half << 16 | half
                                                    : i * 0x9e3779b97f4a7c15 >> (i % 48);
    input[2 * i + 1] = (i + 1) * 5;
  }
  const u64 cell = device.upload(word), out = device.upload(std::vector<u64>(64));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, device.upload(input), cell, out);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto old = device.download<u64>(out, 64);
  const u64 mask = atomic.bytes == 8 ? ~u64{0} : (u64{1} << 8 * atomic.bytes) - 1;
  u64 expected = word[0];
  for (std::size_t i = 0; i < 32; ++i) {
    if (returns) {
      ASSERT_EQ(old[2 * i], expected & mask) << opcode << " lane " << i;
    }
    expected = atomic.apply(expected & mask, input[2 * i] & mask, input[2 * i + 1] & mask) & mask;
  }
  EXPECT_EQ(device.download<u64>(cell, 1)[0] & mask, expected) << opcode;
}

TEST(AtomicOpcodes, EveryOperationTypeAndSpace) {
  for (const Atomic& atomic : atomics()) {
    for (const std::string space : {".global", ".shared", ""}) {
      const std::string rest = space + "." + atomic.operation + "." + atomic.type;
      expect_atomic(atomic, "atom" + rest, true, space == ".shared");
      if (atomic.operation != "exch" && atomic.operation != "cas")
        expect_atomic(atomic, "red" + rest, false, space == ".shared");
    }
  }
}

TEST(AtomicOpcodes, OrderScopeAndCacheHints) {
  const auto all = atomics();
  const auto find = [&](const std::string& operation, const std::string& type) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const Atomic& a) { return a.operation == operation && a.type == type; });
  };
  for (const char* middle :
       {".global.cta.", ".global.gpu.", ".global.sys.", ".global.relaxed.gpu.", ".relaxed.gpu.global.",
        ".acquire.gpu.global.", ".release.gpu.global.", ".acq_rel.sys.global."}) {
    expect_atomic(find("add", "u32"), "atom" + std::string(middle) + "add.u32", true, false);
    expect_atomic(find("cas", "b32"), "atom" + std::string(middle) + "cas.b32", true, false);
    if (std::string(middle).find("acq") == std::string::npos) {
      expect_atomic(find("add", "u32"), "red" + std::string(middle) + "add.u32", false, false);
    }
  }
  for (const char* order : {"acq_rel.gpu.", "release.gpu.", "acquire.gpu.", "relaxed.sys."}) {
    expect_atomic(find("add", "u32"), "atom.add." + std::string(order) + "u32", true, false);
    expect_atomic(find("add", "s32"), "atom.add." + std::string(order) + "s32", true, false);
  }
  expect_atomic(find("add", "u32"), "atom.global.add.L2::cache_hint.u32", true, false, ", %d5");
  expect_atomic(find("cas", "b32"), "atom.global.cas.L2::cache_hint.b32", true, false, ", %d5");
  expect_atomic(find("add", "f32"), "red.global.add.L2::cache_hint.f32", false, false, ", %d5");
}

TEST(AtomicOpcodes, VectorsAreOneAtomicPerElement) {
  const std::string text =
      covers(header() +
                 ".visible .entry k(.param .u64 p) {\n.reg .b64 %d0; .reg .f32 %f<8>;\nld.param.u64 %d0, [p];\n"
                 "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000;\nred.global.add.v2.f32 [%d0], {%f0, %f1};\n"
                 "atom.global.add.v4.f32 {%f4,%f5,%f6,%f7}, [%d0+16], {%f0,%f1,%f0,%f1};\nret;\n}\n",
             {"red.global.add.v2.f32", "atom.global.add.v4.f32"});
  TestDevice device;
  const auto module = load_or_fail(text, device);
  ASSERT_NE(module, nullptr);
  const u64 p = device.upload(std::vector<float>(8));
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {32}, p).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<float>(p, 8), (std::vector<float>{32, 64, 0, 0, 32, 64, 32, 64}));
}

// The first result goes where the second element comes from, and the last where the address does.
TEST(AtomicOpcodes, AVectorsOperandsAreReadBeforeItsResultsAreWritten) {
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 p) {\n.reg .b64 %d<2>; .reg .f32 %f<2>;\nld.param.u64 %d0, [p];\n"
          "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000;\n"
          "atom.global.add.v2.f32 {%f1,%f0}, [%d0], {%f0,%f1};\nst.global.v2.f32 [%d0+8], {%f1,%f0};\n"
          "ld.param.u64 %d1, [p];\nmov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000;\n"
          "atom.global.add.v2.f32 {%f1,%f0}, [%d1+16], {%f0,%f1};\nst.global.f32 [%d0+24], %f1;\nret;\n}\n",
      device);
  ASSERT_NE(module, nullptr);
  const u64 p = device.upload(std::vector<float>{10, 20, 0, 0, 30, 40, 0});
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {1}, p).fault, FaultKind::kNone);
  EXPECT_EQ(device.download<float>(p, 7), (std::vector<float>{11, 22, 10, 20, 31, 42, 30}));
}

// atom.add.f32 by one thread for each pair, in `space`; the words afterwards, then the old values.
std::vector<float> sums(const std::string& space, const std::vector<float>& words, const std::vector<float>& addends) {
  const bool shared = space == "shared" || space == "generic shared";
  const std::string opcode = space.starts_with("generic") ? "atom.add.f32" : "atom." + space + ".add.f32";
  TestDevice device;
  const auto module = load_or_fail(
      header() +
          ".visible .entry k(.param .u64 words, .param .u64 addends, .param .u64 out) {\n.shared .align 4 .b8 "
          "tile[128];\n.reg .b64 %w, %a, %o, %n; .reg .b32 %t; .reg .f32 %x, %y;\nmov.u32 %t, %tid.x;\n"
          "mul.wide.u32 %n, %t, 4;\nld.param.u64 %w, [words];\nadd.u64 %w, %w, %n;\nld.param.u64 %a, [addends];\n"
          "add.u64 %a, %a, %n;\nld.param.u64 %o, [out];\nadd.u64 %o, %o, %n;\nld.global.f32 %x, [%w];\n"
          "ld.global.f32 %y, [%a];\n" +
          (shared ? "mov.u64 %w, tile;\nadd.u64 %w, %w, %n;\nst.shared.f32 [%w], %x;\n" : "") +
          (space == "generic shared" ? "cvta.shared.u64 %w, %w;\n" : "") + opcode +
          " %y, [%w], %y;\nst.global.f32 [%o+128], %y;\nld" + (space == "shared" ? ".shared" : "") +
          ".f32 %x, [%w];\nst.global.f32 [%o], %x;\nret;\n}\n",
      device);
  if (module == nullptr) return {};
  const u64 out = device.upload(std::vector<float>(64));
  const auto threads = static_cast<unsigned>(words.size());
  EXPECT_EQ(run_kernel(*module, device, "k", {1}, {threads}, device.upload(words), device.upload(addends), out).fault,
            FaultKind::kNone);
  return device.download<float>(out, 64);
}

TEST(AtomicOpcodes, SinglePrecisionSumsAreFlushedInGlobalMemoryOnly) {
  constexpr float kTiny = 1e-40f, kSmallest = std::numeric_limits<float>::min();
  const std::vector<float> words{kTiny, -kTiny, 1, 0, 1.5f * kSmallest, -kTiny};
  const std::vector<float> addends{kTiny, -kTiny, kTiny, -kTiny, -kSmallest, 2};
  const std::vector<float> flushed{0, -0.0f, 1, 0, 0, 2};
  for (const char* space : {"global", "generic", "shared", "generic shared"}) {
    const bool flushes = std::string(space).find("shared") == std::string::npos;
    const auto results = sums(space, words, addends);
    ASSERT_EQ(results.size(), 64u);
    for (std::size_t i = 0; i < words.size(); ++i) {
      EXPECT_TRUE(same(results[i], flushes ? flushed[i] : words[i] + addends[i])) << space << " " << i;
      EXPECT_TRUE(same(results[32 + i], words[i])) << space << " " << i;
    }
  }
}

}  // namespace
}  // namespace softgpu::ptx
