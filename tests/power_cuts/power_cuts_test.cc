// The power goes, over and over, while a node's own classes work on one folder: what they told is there afterwards, and nothing else.
//
//   build/bin/power_cuts_tests                       40 cuts, and as many calls of the disk that fail
//   POWER_CUTS=1000 build/bin/power_cuts_tests       more; FIRST_SEED=N begins there
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "power_cuts/lossy_disk.h"
#include "power_cuts/node_on_disk.h"
#include "store/test_folder.h"

namespace fairlead::power_cuts {
namespace {

constexpr int kSteps = 30;
constexpr unsigned kCutsOfFolder = 25;  // then it begins again: a folder that grows makes cuts slow

unsigned number_from(const char* variable, unsigned absent) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? absent : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// A state folder that lives through cuts, and what was promised of it.
struct Machine {
  explicit Machine(std::string of_function) : code(std::move(of_function)) {
    std::filesystem::create_directory(folder / "state");
  }
  std::string state() const { return folder / "state"; }

  // One life: a start, what the start finds is checked, work, the cut. What is wrong; "": nothing.
  std::string live(unsigned seed) {
    std::mt19937_64 random(seed);
    LossyDisk disk(state());
    const bool fails = random() % 4 == 0;
    Promised at_cut;
    {
      NodeOnDisk node(state(), code, notebook, random());
      if (const Status started = node.start(); !started) return "the node does not start: " + started.error().message;
      if (std::string wrong = node.check(); !wrong.empty()) return wrong;
      const auto calls = static_cast<int>(1 + random() % usual_calls);
      disk.cut_after(calls, random(), [&] {
        const std::lock_guard lock(notebook.mutex);
        at_cut = notebook.promised;
      });
      if (fails) disk.fail_at(static_cast<int>(1 + random() % calls));
      failed += fails ? 1 : 0;
      node.work(kSteps);
      usual_calls = std::max(usual_calls, static_cast<unsigned>(disk.calls()));
      disk.cut_now();
    }
    told += at_cut.told_ever() - notebook_told;
    const std::lock_guard lock(notebook.mutex);
    notebook.promised = at_cut;
    notebook_told = at_cut.told_ever();
    disk.restore();
    return {};
  }

  store::TestFolder folder;
  const std::string code;
  Notebook notebook;
  unsigned usual_calls = 60;
  std::size_t notebook_told = 0, told = 0;
  unsigned failed = 0;
};

class PowerCuts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
    if (std::getenv("CHAOS_LOG") == nullptr) spdlog::set_level(spdlog::level::off);
  }
};

TEST_F(PowerCuts, WhateverWasToldIsThereAfterwardsAndNothingElse) {
  const unsigned first = number_from("FIRST_SEED", 1), cuts = number_from("POWER_CUTS", 40);
  store::TestFolder code;
  code.write("bootstrap", "#!/bin/sh\n" + std::string(3000, '#') + "\n");
  auto machine = std::make_unique<Machine>(code.path());
  std::size_t told = 0, failed = 0;
  const auto begin_again = [&] {
    told += machine->told;
    failed += machine->failed;
    machine = std::make_unique<Machine>(code.path());
  };
  for (unsigned seed = first; seed < first + cuts; ++seed) {
    ASSERT_EQ(machine->live(seed), "") << "seed " << seed;
    if ((seed - first) % kCutsOfFolder == kCutsOfFolder - 1) {
      ASSERT_EQ(machine->live(seed), "") << "after seed " << seed;  // the last one of this folder is looked at, too
      begin_again();
    }
  }
  ASSERT_EQ(machine->live(0), "") << "after the last";
  begin_again();
  fmt::print("{} power cuts, {} promises kept, {} calls of the disk failed\n", cuts, told, failed);
  EXPECT_GT(told, cuts);
}

// A bit of a file of a node that was killed is another one.
std::string flip_a_bit(const std::string& folder, std::mt19937_64& random) {
  constexpr const char* kFiles[] = {"state.db",  "state.db-wal", "state.tally",
                                    "keys.json", "secrets.json", "secret-key"};
  const std::string name = kFiles[random() % std::size(kFiles)];
  std::error_code none;
  const auto size = std::filesystem::file_size(folder + "/" + name, none);
  if (none || size == 0) return "";
  std::fstream file(folder + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(random() % size);
  const char old = static_cast<char>(file.seekg(at).get());
  file.seekp(at).put(static_cast<char>(old ^ 1 << random() % 8));
  return name;
}

// Whether it is said at the start, at the look at what is there, or does no harm.
TEST_F(PowerCuts, ABitThatIsAnotherOneIsSaidOrDoesNoHarm) {
  store::TestFolder code, folder;
  code.write("bootstrap", "#!/bin/sh\n");
  const std::string state = folder / "state", killed = folder / "killed";
  std::filesystem::create_directory(state);
  Notebook notebook;
  {
    NodeOnDisk node(state, code.path(), notebook, 1);
    ASSERT_TRUE(node.start());
    node.work(150);
    std::filesystem::copy(state, killed, std::filesystem::copy_options::recursive);
  }
  int said = 0, tried = 0;
  const auto flips = static_cast<int>(number_from("POWER_CUTS", 60));
  for (int seed = 0; seed < flips; ++seed) {
    std::mt19937_64 random(static_cast<unsigned>(seed));
    std::filesystem::remove_all(state);
    std::filesystem::copy(killed, state, std::filesystem::copy_options::recursive);
    const std::string name = flip_a_bit(state, random);
    if (name.empty()) continue;
    ++tried;
    Notebook of_this{.mutex = {}, .promised = notebook.promised};
    NodeOnDisk node(state, code.path(), of_this, 2);
    if (const Status started = node.start(); !started) {
      ++said;
      EXPECT_THAT(started.error().message, testing::HasSubstr(state)) << name;
    } else if (node.says_damage()) {
      ++said;
    } else {
      EXPECT_EQ(node.check(), "") << "a bit of " << name << ", seed " << seed;
    }
  }
  fmt::print("{} bits flipped, {} said\n", tried, said);
  EXPECT_GT(said, tried / 3);
}

}  // namespace
}  // namespace fairlead::power_cuts
