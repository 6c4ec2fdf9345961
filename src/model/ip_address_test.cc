#include "model/ip_address.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

IpAddress address(const char* text) {
  return IpAddress::parse(text).value();
}

AddressBlock block(const char* text) {
  return AddressBlock::parse(text).value();
}

TEST(IpAddress, OnePlaceIsOneAddressHoweverItIsWritten) {
  EXPECT_EQ(address("::ffff:10.0.0.1"), address("10.0.0.1"));
  EXPECT_EQ(behind_translation(address("64:ff9b::10.0.0.1")), address("10.0.0.1"));
  EXPECT_EQ(behind_translation(address("64:ff9b:1::10.0.0.1")), address("64:ff9b:1::10.0.0.1"));
  EXPECT_TRUE(address("::ffff:10.0.0.1").is_v4());
  EXPECT_FALSE(address("::10.0.0.1").is_v4());
}

TEST(IpAddress, ItsTextIsReadAgain) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "::", "fd00::1", "2001:db8::a00:1"}) {
    EXPECT_EQ(address(text).text(), text);
  }
  EXPECT_EQ(address("::ffff:10.0.0.1").text(), "10.0.0.1");
}

TEST(IpAddress, WhatSomeProgramsTakeForOneIsNone) {
  for (const char* text :
       {"", "10", "10.1", "0x0a.0.0.1", "010.0.0.1", "10.0.0.1 ", "10.0.0.256", "fe80::1%eth0", "::g", "1:2"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("10.0.0.1\0x", 10)));
}

TEST(AddressBlock, HoldsWhatBeginsWithItsBits) {
  EXPECT_TRUE(block("10.0.0.0/8").contains(address("10.255.0.1")));
  EXPECT_FALSE(block("10.0.0.0/8").contains(address("11.0.0.0")));
  EXPECT_TRUE(block("10.0.0.0/9").contains(address("10.127.255.255")));
  EXPECT_FALSE(block("10.0.0.0/9").contains(address("10.128.0.0")));
  EXPECT_TRUE(block("10.0.0.1").contains(address("::ffff:10.0.0.1")));
  EXPECT_TRUE(block("0.0.0.0/0").contains(address("8.8.8.8")));
}

TEST(AddressBlock, ABlockOfIpv6HoldsNoIpv4) {
  EXPECT_FALSE(block("::/0").contains(address("10.0.0.1")));
  EXPECT_TRUE(block("::/0").contains(address("fd00::1")));
  EXPECT_FALSE(block("::/0").contains(block("10.0.0.0/8")));
  EXPECT_FALSE(block("0.0.0.0/0").contains(address("::1")));
}

TEST(AddressBlock, ABlockHoldsNarrowerOnes) {
  EXPECT_TRUE(block("10.0.0.0/8").contains(block("10.1.0.0/16")));
  EXPECT_TRUE(block("10.0.0.0/8").contains(block("10.0.0.0/8")));
  EXPECT_FALSE(block("10.1.0.0/16").contains(block("10.0.0.0/8")));
}

TEST(AddressBlock, ItsTextIsReadAgain) {
  for (const char* text : {"10.0.0.0/8", "10.0.0.1", "0.0.0.0/0", "::/0", "fd00::/8", "fd00::1"}) {
    EXPECT_EQ(block(text).text(), text);
  }
}

TEST(AddressBlock, WhatIsNoneIsRefused) {
  for (const char* text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "/8", "fd00::/129",
                           "::ffff:0.0.0.0/95", "fd00::1/64"}) {
    EXPECT_FALSE(AddressBlock::parse(text)) << text;
  }
}

}  // namespace
}  // namespace fairlead
