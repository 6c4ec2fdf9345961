#include "node/own_rights.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace fairlead {
namespace {

std::uint64_t set_of(const std::string& name) {
  std::ifstream file("/proc/thread-self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 16);
  }
  return ~std::uint64_t{0};
}

std::uint64_t bit(int capability) {
  return std::uint64_t{1} << capability;
}

// In a child, which has what this process loses.
template <typename Look>
bool after_giving_up(bool makes_slices, Look look) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(give_up_rights(makes_slices) && look() ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(OwnRights, WhatIsNotNeededIsGone) {
  const std::uint64_t before = set_of("CapPrm");
  EXPECT_TRUE(after_giving_up(false, [&] {
    const std::uint64_t kept = before & rights_of_node(false);
    return set_of("CapEff") == kept && set_of("CapPrm") == kept && (set_of("CapInh") & ~kept) == 0;
  }));
  for (const int worst : {CAP_SYS_ADMIN, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_NET_ADMIN, CAP_NET_RAW, CAP_MKNOD,
                          CAP_DAC_READ_SEARCH, CAP_SETPCAP, CAP_SETFCAP, CAP_BPF, CAP_SYS_CHROOT}) {
    EXPECT_EQ(rights_of_node(false) & bit(worst), 0U) << worst;
  }
}

TEST(OwnRights, SlicesAreMadeByWhoMayAdministrate) {
  EXPECT_EQ(rights_of_node(true), rights_of_node(false) | bit(CAP_SYS_ADMIN));
  EXPECT_EQ(rights_of_node(true) & rights_of_nobody(), 0U);
}

TEST(OwnRights, WhatNobodyNeedsNoProgramGetsAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has nothing to give up";
  EXPECT_TRUE(after_giving_up(false, [] { return (set_of("CapBnd") & rights_of_nobody()) == 0; }));
}

// A jail is made by a program that the node starts.
TEST(OwnRights, AProgramOfRootHasTheOthersAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "of root alone";
  EXPECT_TRUE(after_giving_up(false, [] {
    return ::system("grep -q \"^CapEff:.$(sed -n 's/^CapBnd:.//p' /proc/self/status)\" /proc/self/status") == 0;
  }));
}

}  // namespace
}  // namespace fairlead
