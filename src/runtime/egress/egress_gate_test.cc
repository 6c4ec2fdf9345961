#include "runtime/egress/egress_gate.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Instant kBegin{};

EgressGate gate(const std::string& asked, const std::string& granted) {
  return EgressGate({EgressList::parse(asked).value(), EgressList::parse(granted).value()});
}

IpAddress address(const char* text) {
  return IpAddress::parse(text).value();
}

bool allows(const EgressGate& gate, const char* text, std::uint16_t port = 443, Instant now = kBegin) {
  return gate.refusal(address(text), port, false, now).empty();
}

TEST(EgressGate, AllIsEveryPublicAddressAndNoOther) {
  const EgressGate open = gate("all", "all");
  EXPECT_TRUE(allows(open, "8.8.8.8", 1));
  EXPECT_TRUE(allows(open, "2606:4700::1"));
  for (const char* text : {"10.0.0.1", "192.168.1.1", "172.31.0.1", "100.64.0.1", "fd00::1", "127.0.0.1",
                           "169.254.169.254", "fd00:ec2::254", "::1", "0.0.0.0", "192.0.0.8", "100::1",
                           "255.255.255.255", "fe80::1", "168.63.129.16", "100.100.100.200"}) {
    EXPECT_FALSE(allows(open, text)) << text;
  }
}

TEST(EgressGate, NoListReachesTheNodeItself) {
  const EgressGate open = gate("all,0.0.0.0/0,::/0", "all,0.0.0.0/0,::/0");
  EXPECT_TRUE(open.refusal(address("10.0.0.1"), 1, false, kBegin).empty());
  EXPECT_THAT(open.refusal(address("10.0.0.1"), 1, true, kBegin), HasSubstr("no function reaches the node itself"));
  EXPECT_FALSE(allows(open, "127.0.0.1"));
  EXPECT_FALSE(allows(open, "169.254.169.254"));
  EXPECT_FALSE(allows(open, "::1"));
}

TEST(EgressGate, AnAddressIsOneInEveryForm) {
  const EgressGate open = gate("all", "all");
  for (const char* text :
       {"::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "2002:a00:1::1", "::10.0.0.1"}) {
    EXPECT_FALSE(allows(open, text)) << text;
  }
  EXPECT_TRUE(allows(open, "64:ff9b::8.8.8.8"));
  EXPECT_TRUE(allows(gate("10.0.0.0/8", "10.0.0.0/8"), "::ffff:10.0.0.1"));
}

TEST(EgressGate, APortThatIsSaidIsTheOnlyOne) {
  const EgressGate narrow = gate("10.0.0.1:5432,all:443", "10.0.0.0/8,all");
  EXPECT_TRUE(allows(narrow, "10.0.0.1", 5432));
  EXPECT_FALSE(allows(narrow, "10.0.0.1", 5433));
  EXPECT_TRUE(allows(narrow, "8.8.8.8", 443));
  EXPECT_FALSE(allows(narrow, "8.8.8.8", 80));
  EXPECT_THAT(narrow.refusal(address("8.8.8.8"), 80, false, kBegin),
              HasSubstr("tag gpu:egress does not allow it: 10.0.0.1:5432"));
}

TEST(EgressGate, ANameLeadsToTheAddressesThatItWasFoundToHave) {
  EgressGate named = gate("pypi.org:443,*.example.com", "all");
  EXPECT_TRUE(named.may_resolve("pypi.org"));
  EXPECT_TRUE(named.may_resolve("a.example.com"));
  EXPECT_FALSE(named.may_resolve("example.org"));
  EXPECT_FALSE(allows(named, "8.8.8.8"));
  EXPECT_THAT(named.learn("pypi.org", {address("8.8.8.8"), address("2606:4700::1")}, kBegin),
              ElementsAre(address("8.8.8.8"), address("2606:4700::1")));
  EXPECT_TRUE(allows(named, "8.8.8.8"));
  EXPECT_TRUE(allows(named, "2606:4700::1"));
  EXPECT_FALSE(allows(named, "8.8.8.8", 80));
  EXPECT_FALSE(allows(named, "8.8.4.4"));
  EXPECT_THAT(named.learn("example.org", {address("8.8.4.4")}, kBegin), IsEmpty());
  EXPECT_FALSE(allows(named, "8.8.4.4"));
}

TEST(EgressGate, ANameIsForgotten) {
  EgressGate named = gate("pypi.org", "all");
  named.learn("pypi.org", {address("8.8.8.8")}, kBegin);
  EXPECT_TRUE(allows(named, "8.8.8.8", 443, kBegin + EgressGate::kRemembered - Duration(1)));
  EXPECT_FALSE(allows(named, "8.8.8.8", 443, kBegin + EgressGate::kRemembered));
  named.learn("pypi.org", {address("8.8.8.8")}, kBegin + EgressGate::kRemembered);
  EXPECT_TRUE(allows(named, "8.8.8.8", 443, kBegin + EgressGate::kRemembered));
}

// DNS rebinding: the name is allowed, what it means today is not.
TEST(EgressGate, ANameMakesNoPrivateAddressReachable) {
  EgressGate named = gate("pypi.org", "all");
  EXPECT_THAT(named.learn("pypi.org",
                          {address("10.0.0.1"), address("127.0.0.1"), address("169.254.169.254"), address("fd00::1"),
                           address("8.8.8.8")},
                          kBegin),
              ElementsAre(address("8.8.8.8")));
  EXPECT_FALSE(allows(named, "10.0.0.1"));
  EXPECT_FALSE(allows(named, "127.0.0.1"));
}

TEST(EgressGate, ANameMayLeadToAPrivateAddressThatTheOperatorListed) {
  EgressGate named = gate("db.internal", "db.internal,10.1.0.0/16:5432");
  EXPECT_THAT(named.learn("db.internal", {address("10.1.0.5"), address("10.2.0.5")}, kBegin),
              ElementsAre(address("10.1.0.5")));
  EXPECT_TRUE(allows(named, "10.1.0.5", 5432));
  EXPECT_THAT(named.refusal(address("10.1.0.5"), 22, false, kBegin), HasSubstr("it is private, and no block"));
  EXPECT_FALSE(allows(named, "10.2.0.5", 5432));
}

TEST(EgressGate, WhatItRemembersHasABound) {
  EgressGate named = gate("*.example.com", "all");
  for (std::size_t i = 0; i < EgressGate::kMostRemembered + 10; ++i) {
    named.learn(std::to_string(i) + ".example.com", {address("8.8.8.8")}, kBegin + Duration(i));
  }
  EXPECT_TRUE(allows(named, "8.8.8.8"));
  named.learn("other.example.com", {address("8.8.4.4")}, kBegin);
  EXPECT_TRUE(allows(named, "8.8.4.4"));
}

}  // namespace
}  // namespace fairlead
