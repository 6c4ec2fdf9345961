// What a stranger's module may cost: time linear in its length, output of at most most_fenced_bytes(). Modules made to cost
// more, each of which did before it was bounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/verified.h"

namespace fairlead::fence {
namespace {

using ::testing::HasSubstr;

constexpr FenceOptions kOptions{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};
constexpr char kHead[] = ".version 7.8\n.target sm_90\n.address_size 64\n";

std::string repeated(std::size_t times, const std::function<std::string(std::size_t)>& text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text(i);
  return all;
}

// A kernel with `body` behind `preamble`.
std::string module_of(const std::string& preamble, const std::string& body) {
  return kHead + preamble + ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p;\n" +
         "ld.param.u64 %rd1, [p];\n" + body + "ret;\n}\n";
}

std::string functions(std::size_t count) {
  return repeated(count, [](std::size_t i) { return fmt::format(".func f{}() {{ ret; }}\n", i); });
}
std::string addresses_of(std::size_t count) {
  return repeated(count, [](std::size_t i) { return fmt::format("mov.u64 %rd2, f{};\n", i); });
}
std::string labels(std::size_t count) {
  return repeated(count, [](std::size_t i) { return fmt::format("L{}:\n", i); });
}
std::string list(std::size_t count, const char* stem) {
  return repeated(count, [&](std::size_t i) { return fmt::format("{}{}{}", i == 0 ? "" : ", ", stem, i); });
}

struct Family {
  const char* name;
  std::size_t size;  // so that a linear fence takes milliseconds
  std::string (*make)(std::size_t);
};

const Family kFamilies[] = {
    {"Variables", 20'000,
     [](std::size_t n) {
       return module_of(repeated(n, [](std::size_t i) { return fmt::format(".global .u32 v{};\n", i); }), "");
     }},
    {"PointersToVariables", 10'000,
     [](std::size_t n) {
       return module_of(repeated(n, [](std::size_t i) { return fmt::format(".global .u64 v{} = v{};\n", i, i / 2); }),
                        "");
     }},
    {"ChainOfCalls", 5'000,
     [](std::size_t n) {
       return module_of(
           ".func f0() { .local .b32 x; ret; }\n" +
               repeated(n, [](std::size_t i) { return fmt::format(".func f{}() {{ call f{}; ret; }}\n", i + 1, i); }),
           "");
     }},
    {"ChainOfCallsBackwards", 5'000,
     [](std::size_t n) {
       return module_of(
           repeated(n + 1, [](std::size_t i) { return fmt::format(".func f{}();\n", i); }) +
               repeated(n, [](std::size_t i) { return fmt::format(".func f{}() {{ call f{}; ret; }}\n", i, i + 1); }) +
               fmt::format(".func f{}() {{ .local .b32 x; ret; }}\n", n),
           "");
     }},
    {"IndirectCallsOfAFunction", 3'000,
     [](std::size_t n) {
       return module_of(functions(1), addresses_of(1) + "P: .callprototype _ ();\n" +
                                          repeated(n, [](std::size_t) { return "call %rd2, P;\n"; }));
     }},
    {"IndirectCallsThatFitNothing", 3'000,
     [](std::size_t n) {
       return module_of(functions(n), addresses_of(n) + "P: .callprototype _ (.param .b32 _);\n" +
                                          repeated(n, [](std::size_t) { return "call %rd2, P;\n"; }));
     }},
    {"PrototypesThatFitNothing", 3'000,
     [](std::size_t n) {
       return module_of(functions(n), addresses_of(n) + repeated(n, [](std::size_t i) {
                                        return fmt::format(
                                            "P{0}: .callprototype _ (.param .b32 _);\ncall %rd2, P{0};\n", i);
                                      }));
     }},
    {"CallsByATableOfNobody", 3'000,
     [](std::size_t n) {
       return module_of(functions(n), "T: .calltargets " + list(n, "f") + ";\n" +
                                          repeated(n, [](std::size_t) { return "call %rd2, T;\n"; }));
     }},
    {"BranchesByATable", 3'000,
     [](std::size_t n) {
       return module_of("", "T: .branchtargets " + list(n, "L") + ";\n" +
                                repeated(n, [](std::size_t) { return "brx.idx %r1, T;\n"; }) + labels(n));
     }},
    {"Aliases", 10'000,
     [](std::size_t n) {
       return module_of(functions(1) + repeated(n, [](std::size_t i) { return fmt::format(".alias a{}, f0;\n", i); }),
                        "");
     }},
    {"Accesses", 5'000,
     [](std::size_t n) {
       return module_of("", repeated(n, [](std::size_t) { return "ld.u32 %r1, [%rd1]; L: st.u32 [%rd1], %r1;\n"; }));
     }},
    {"LocalPointers", 5'000,
     [](std::size_t n) {
       return module_of("", repeated(n, [](std::size_t i) {
                          return fmt::format(
                              "{{ .local .b64 x{0}; .reg .b64 %q; mov.u64 %q, x{0}; st.local.u32 [%q], 1; }}\n", i);
                        }));
     }},
    {"Scopes", 3'000,
     [](std::size_t n) {
       return module_of("", repeated(n, [](std::size_t i) {
                          return fmt::format("{{ .reg .b32 %q{0}; mov.u32 %q{0}, %r1; }}\n", i);
                        }));
     }},
    {"RegistersReadFirst", 5'000,
     [](std::size_t n) {
       return module_of("", fmt::format(".reg .b32 %u<{}>;\n", n) + repeated(n, [](std::size_t i) {
                              return fmt::format("st.global.u32 [%rd1], %u{};\n", i);
                            }));
     }},
    {"RegistersWrittenOnTwoWays", 2'000,
     [](std::size_t n) {
       return module_of(
           "", fmt::format(".reg .b32 %u<{}>; setp.eq.u64 %p, %rd1, 0;\n", n) + repeated(n, [](std::size_t i) {
                 return fmt::format("@%p bra A{0}; mov.u32 %u{0}, 1; bra B{0}; A{0}: mov.u32 %u{0}, 2; B{0}:\n", i);
               }) + repeated(n, [](std::size_t i) { return fmt::format("mov.u32 %r1, %u{};\n", i); }));
     }},
    // Each is written at the beginning, on two ways, and read in each of many blocks.
    {"RegistersReadFarBehind", 1'000,
     [](std::size_t n) {
       return module_of(
           "", fmt::format(".reg .b32 %u<{}>; setp.eq.u64 %p, %rd1, 0; @%p bra A;\n", n) +
                   repeated(n, [](std::size_t i) { return fmt::format("mov.u32 %u{}, 1;\n", i); }) + "bra B; A:\n" +
                   repeated(n, [](std::size_t i) { return fmt::format("mov.u32 %u{}, 2;\n", i); }) + "B:\n" +
                   repeated(n, [&](std::size_t i) {
                     return fmt::format("C{0}: mov.u32 %r1, %u{0}; @%p bra C{0}; mov.u32 %r1, %u{1};\n", i, n - 1 - i);
                   }));
     }},
    {"WaysThatLeaveEarly", 5'000,
     [](std::size_t n) {
       return module_of("", "setp.eq.u64 %p, %rd1, 0;\n" + repeated(n, [](std::size_t i) {
                              return fmt::format("mov.u32 %r1, {}; @%p bra END;\n", i);
                            }) + "END: st.global.u32 [%rd1], %r2;\n");
     }},
    // Two ladders whose rungs lead across: no node but the first dominates any.
    {"WaysThatCross", 3'000,
     [](std::size_t n) {
       return module_of("", "setp.eq.u64 %p, %rd1, 0; @%p bra B0;\n" + repeated(n, [](std::size_t i) {
                              return fmt::format("A{0}: @%p bra B{1}; bra A{1}; B{0}: @%p bra A{1}; bra B{1};\n", i,
                                                 i + 1);
                            }) + fmt::format("A{0}: B{0}: st.global.u32 [%rd1], %r2;\n", n));
     }},
    {"WaysBack", 3'000,
     [](std::size_t n) {
       return module_of("", "setp.eq.u64 %p, %rd1, 0;\n" + repeated(n, [](std::size_t i) {
                              return fmt::format("L{0}: mov.u32 %r1, %r2; @%p bra L{1};\n", i, i / 2);
                            }));
     }},
    {"Results", 2'000,
     [](std::size_t n) {
       return module_of(".func (" + list(n, ".param .b32 r") + ") f() {\n" +
                            repeated(n, [](std::size_t i) { return fmt::format("st.param.b32 [r{}], 0; ret;\n", i); }) +
                            "}\n",
                        "");
     }},
    {"LargeParametersOfCalls", 2'000,
     [](std::size_t n) {
       return module_of(".func f(.param .b8 a[4096]) { ret; }\n",
                        "{ .param .b8 a[4096];\n" + repeated(n, [](std::size_t) { return "call f, (a);\n"; }) + "}\n");
     }},
    {"LargerParametersThanStored", 1'000,
     [](std::size_t n) {
       return module_of("", repeated(n, [](std::size_t i) {
                          return fmt::format("{{ .param .b8 a{0}[4294967295]; st.param.b8 [a{0}+{0}], 1; }}\n", i);
                        }));
     }},
    {"KernelsThatReadSharedMemory", 500,
     [](std::size_t n) {
       return module_of(repeated(n,
                                 [](std::size_t i) {
                                   return fmt::format(
                                       ".entry k{}() {{ .reg .b32 %x; mov.u32 %x, 0; ld.shared.u32 %x, [%x]; {} }}\n",
                                       i, repeated(30, [](std::size_t) { return "add.u32 %x, %x, %x;\n"; }));
                                 }),
                        "");
     }},
    {"CallersOfAReader", 5'000,
     [](std::size_t n) {
       return module_of(".shared .b32 s; .func f0() { .reg .b32 %x; ld.shared.u32 %x, [s]; ret; }\n" +
                            repeated(n,
                                     [](std::size_t i) {
                                       return fmt::format(".func f{}() {{ call f{}; call f{}; ret; }}\n", i + 1, i,
                                                          i / 2);
                                     }),
                        fmt::format("call f{};\n", n));
     }},
    {"VariablesInSharedMemory", 5'000,
     [](std::size_t n) {
       return module_of("", repeated(n, [](std::size_t i) {
                          return fmt::format("{{ .shared .b64 s{0}; ld.shared.u64 %rd2, [s{0}]; }}\n", i);
                        }));
     }},
    {"Shuffles", 3'000,
     [](std::size_t n) {
       return module_of(
           "", "mov.u32 %r1, 0;\n" + repeated(n, [](std::size_t) {
                 return "shfl.sync.down.b32 %r1, %r1, 4, 31, -1; xor.b32 %r1, %r1, 0x123456; xor.b32 %r1, %r1, "
                        "0x123456; mul.lo.u32 %r1, %r1, 12345;\n";
               }));
     }},
    {"Declarations", 10'000,
     [](std::size_t n) {
       return module_of(functions(1) + repeated(n, [](std::size_t) { return ".func f0();\n"; }), "");
     }},
};

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Seconds {
  double fence = std::numeric_limits<double>::max();
  double verify = fence;

  void keep_least(const Seconds& other) {
    fence = std::min(fence, other.fence);
    verify = std::min(verify, other.verify);
  }
};

Seconds seconds_for(const std::string& ptx) {
  const double begin = processor_seconds();
  const Result<FencedModule> fenced = fence_ptx(ptx, kOptions);
  const double between = processor_seconds();
  EXPECT_LE(fenced ? fenced->ptx.size() : 0, most_fenced_bytes(ptx.size()));
  EXPECT_LE(fenced ? 0 : fenced.error().message.size(), 1100u);
  EXPECT_EQ(fenced ? testing::fault_of(fenced->ptx, kOptions) : "", "");
  return {.fence = between - begin, .verify = processor_seconds() - between};
}

class Bounds : public ::testing::TestWithParam<Family> {};

// Four times the module is 16 times the work where the work is quadratic, and a little over 4 where it is n log n. The
// two are measured in turns, in the thread's own processor time, and the least of each counts.
TEST_P(Bounds, FourTimesTheModuleIsNotTenTimesTheWork) {
  const std::string small = GetParam().make(GetParam().size), large = GetParam().make(4 * GetParam().size);
  Seconds least_small, least_large;
  for (int round = 0; round < 5; ++round) {
    least_small.keep_least(seconds_for(small));
    least_large.keep_least(seconds_for(large));
  }
  const double growth = static_cast<double>(large.size()) / static_cast<double>(small.size());
  EXPECT_LE(least_large.fence / least_small.fence, 2 * growth)
      << least_small.fence << " s for " << small.size() << " bytes, " << least_large.fence << " s for " << large.size();
  // A module that is refused leaves the verifier nothing to do; what takes less than this is noise.
  constexpr double kNoise = 1e-3;
  EXPECT_LE(least_large.verify / std::max(least_small.verify, kNoise), 2 * growth)
      << least_small.verify << " s, " << least_large.verify << " s";
}

INSTANTIATE_TEST_SUITE_P(Fence, Bounds, ::testing::ValuesIn(kFamilies),
                         [](const auto& family) { return family.param.name; });

TEST(FenceBounds, CallsThroughAddressesAreRefusedWhereTheyBecomeTooLarge) {
  const std::size_t n = 1'500;
  const std::string ptx = module_of(functions(n), addresses_of(n) + "P: .callprototype _ ();\n" +
                                                      repeated(n, [](std::size_t) { return "call %rd2, P;\n"; }));
  const Result<FencedModule> fenced = fence_ptx(ptx, kOptions);
  ASSERT_FALSE(fenced) << ptx.size() << " bytes became " << fenced->ptx.size();
  EXPECT_EQ(fenced.error().code, Errc::kTooLarge);
  EXPECT_THAT(fenced.error().message, HasSubstr("larger than 4 times what it was and 64 KiB"));
}

TEST(FenceBounds, AFewFunctionsThroughAddressesAreNot) {
  const std::string ptx = module_of(functions(20), addresses_of(20) + "P: .callprototype _ ();\n" +
                                                       repeated(20, [](std::size_t) { return "call %rd2, P;\n"; }));
  const Result<FencedModule> fenced = fence_ptx(ptx, kOptions);
  EXPECT_TRUE(fenced) << fenced.error().message;
}

TEST(FenceBounds, AnAliasOfWhatIsNotThereIsRefused) {
  const auto message = [](const std::string& preamble) {
    const Result<FencedModule> fenced = fence_ptx(module_of(preamble, ""), kOptions);
    EXPECT_FALSE(fenced) << fenced->ptx;
    return fenced ? "" : fenced.error().message;
  };
  EXPECT_EQ(message(".func foo();\n.alias foo, nothere;\n"),
            "line 5: alias 'foo' of 'nothere': its target is no function with a body in this module");
  EXPECT_THAT(message(".func foo();\n.func bar();\n.alias foo, bar;\n"), HasSubstr("no function with a body"));
  EXPECT_THAT(message(".func foo();\n.alias foo, foo;\n"), HasSubstr("no function with a body"));
  EXPECT_THAT(message(".func vprintf();\n.alias foo, vprintf;\n"), HasSubstr("no function with a body"));
  EXPECT_THAT(message(".entry e() { ret; }\n.func foo();\n.alias foo, e;\n"), HasSubstr("which nothing can call"));
  EXPECT_THAT(message(".func foo() { ret; }\n.func bar() { ret; }\n.alias foo, bar;\n"), HasSubstr("of its name"));
  EXPECT_THAT(message(functions(2) + ".func foo();\n.alias foo, f0;\n.alias foo, f1;\n"), HasSubstr("of its name"));
}

TEST(FenceBounds, AnAliasOfAFunctionIsThatFunction) {
  const Result<FencedModule> fenced = fence_ptx(
      module_of(functions(1) + ".func foo();\n.alias foo, f0;\n", "call foo;\nmov.u64 %rd2, foo;\n"), kOptions);
  ASSERT_TRUE(fenced) << fenced.error().message;
  EXPECT_THAT(fenced->ptx, HasSubstr("call f0;"));
}

TEST(FenceBounds, TwoFunctionsOfOneNameAreRefused) {
  const Result<FencedModule> fenced =
      fence_ptx(module_of(".func f() { .local .b8 x[64]; ret; }\n.func f() { .local .b8 x[4]; ret; }\n", ""), kOptions);
  ASSERT_FALSE(fenced);
  EXPECT_THAT(fenced.error().message, HasSubstr("function 'f', line 5: the module has two functions of that name"));
}

TEST(FenceBounds, ARefusalDoesNotQuoteAWholeModule) {
  const Result<FencedModule> fenced = fence_ptx(module_of("", "x" + std::string(100'000, 'y') + " %r1;\n"), kOptions);
  ASSERT_FALSE(fenced);
  EXPECT_LE(fenced.error().message.size(), 1100u);
}

}  // namespace
}  // namespace fairlead::fence
