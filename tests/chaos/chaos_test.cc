// The node's own classes under faults, in virtual time, from seeds: see world.h for what happens, and book.h for what must hold.
//
//   build/bin/chaos_tests                          sixty seeds
//   SEEDS=10000 build/bin/chaos_tests              more; FIRST_SEED=N begins there, and with SEEDS=1 shows that one again
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"
#include "chaos/failing_memory.h"
#include "chaos/world.h"

namespace fairlead::chaos {
namespace {

constexpr int kSteps = 250;

std::uint64_t number_from(const char* variable, std::uint64_t absent) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? absent : std::strtoull(text, nullptr, 10);
}

class NodeChaos : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
    if (std::getenv("CHAOS_LOG") == nullptr) spdlog::set_level(spdlog::level::off);
    FailingMemory::install();
  }
};

TEST_F(NodeChaos, WhateverStrikesWhatWasPromisedIsKept) {
  const std::uint64_t first = number_from("FIRST_SEED", 1), count = number_from("SEEDS", 60);
  Struck struck{};
  std::size_t promised = 0, successes = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    World world(seed);
    const std::string violation = world.run(kSteps);
    ASSERT_EQ(violation, "") << "seed " << seed << ": FIRST_SEED=" << seed << " SEEDS=1 build/bin/chaos_tests";
    for (std::size_t i = 0; i < struck.size(); ++i) struck[i] += world.struck()[i];
    promised += world.book().promised();
    successes += world.book().successes();
  }
  fmt::print("{} seeds, {} events acknowledged, {} ran with success\n", count, promised, successes);
  for (std::size_t i = 0; i < struck.size(); ++i) {
    fmt::print("  {}: {}\n", strike_name(static_cast<Strike>(i)), struck[i]);
    EXPECT_TRUE(struck[i] > 0 || count < 50) << "this never struck: nothing of it was tested";
  }
}

}  // namespace
}  // namespace fairlead::chaos
