#include "node/peers/peer_seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fairlead {
namespace {

using testing::HasSubstr;

constexpr const char* kTarget = "/fairlead/v1/peers/call";

class PeerSealTest : public testing::Test {
 protected:
  std::string header(std::uint64_t number, const PeerSeal& by, std::string_view head = "head") {
    return session_ + " " + std::to_string(number) + " " + by.request(session_, number, kTarget, head);
  }

  const PeerSeal seal_{std::string(32, 'k')}, other_{std::string(32, 'o')};
  PeerSessions sessions_{seal_};
  const std::string session_ = sessions_.open("b");
};

TEST_F(PeerSealTest, ARequestIsItsSessionsPeer) {
  EXPECT_EQ(sessions_.accept(header(1, seal_), kTarget, "head").value(), "b");
  EXPECT_EQ(sessions_.peer_of(header(1, other_)), "b");
  EXPECT_EQ(sessions_.peer_of("nothing 1 x"), "");
}

TEST_F(PeerSealTest, AnotherKeyOtherBytesAndOtherPathsAreRefused) {
  EXPECT_EQ(sessions_.accept(header(1, other_), kTarget, "head").error().code, Errc::kUnauthenticated);
  EXPECT_EQ(sessions_.accept(header(1, seal_), kTarget, "heaD").error().code, Errc::kUnauthenticated);
  EXPECT_EQ(sessions_.accept(header(1, seal_), "/fairlead/v1/peers/word", "head").error().code, Errc::kUnauthenticated);
  for (const char* text : {"", "x", "x 1", "x 1 y", " 1 x", "x -1 y", "x 99999999999999999999999 y"}) {
    EXPECT_EQ(sessions_.accept(text, kTarget, "head").error().code, Errc::kUnauthenticated) << text;
  }
}

TEST_F(PeerSealTest, ACopyIsRefusedAndSpoilsNothing) {
  EXPECT_TRUE(sessions_.accept(header(1, seal_), kTarget, "head"));
  EXPECT_EQ(sessions_.accept(header(1, seal_), kTarget, "head").error().code, Errc::kConflict);
  EXPECT_TRUE(sessions_.accept(header(3, seal_), kTarget, "head"));
  EXPECT_EQ(sessions_.accept(header(2, seal_), kTarget, "head").error().code, Errc::kConflict);
  EXPECT_TRUE(sessions_.accept(header(4, seal_), kTarget, "head"));
}

TEST_F(PeerSealTest, TheSessionThatWasNotUsedForLongestGoes) {
  const std::string unused = sessions_.open("c");
  EXPECT_TRUE(sessions_.accept(header(1, seal_), kTarget, "head"));
  for (std::size_t i = 2; i < PeerSessions::kMost + 1; ++i) sessions_.open("x");
  EXPECT_EQ(sessions_.size(), PeerSessions::kMost);
  EXPECT_EQ(sessions_.peer_of(unused + " 1 x"), "");
  EXPECT_EQ(sessions_.peer_of(session_ + " 1 x"), "b");
}

TEST_F(PeerSealTest, NoTwoListsOfPartsAreOneText) {
  EXPECT_NE(seal_.hello("a", "bc", ""), seal_.hello("ab", "c", ""));
  EXPECT_NE(seal_.hello("a", "1:b", ""), seal_.hello("a", "1", "b"));
  EXPECT_NE(seal_.hello("a", "b", ""), seal_.request("a", 1, "b", ""));
}

TEST(ClusterKey, IsAFileOfOnesOwnThatNobodyElseReads) {
  char folder[] = "/tmp/cluster-key-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/key";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
  };
  const auto refusal = [&] { return read_cluster_key(path).error().message; };
  EXPECT_THAT(refusal(), HasSubstr("openssl rand"));
  write(std::string(64, 'k') + "\n", 0600);
  EXPECT_EQ(read_cluster_key(path).value(), std::string(64, 'k'));
  write(std::string(64, 'k'), 0640);
  EXPECT_THAT(refusal(), HasSubstr("mode 640"));
  write("short\n", 0600);
  EXPECT_THAT(refusal(), HasSubstr("has 5 bytes"));
  write(std::string(5000, 'k'), 0600);
  EXPECT_THAT(refusal(), HasSubstr("at most 4096"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_THAT(refusal(), HasSubstr("is no file"));
  std::filesystem::remove(path);
  write(std::string(64, 'k'), 0600);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 4711, 4711), 0);
    EXPECT_THAT(refusal(), HasSubstr("belongs to user 4711"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fairlead
