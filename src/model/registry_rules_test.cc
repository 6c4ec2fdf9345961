#include "model/registry_rules.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace fairlead {
namespace {

using testing::HasSubstr;

bool global(const std::string& text) {
  sockaddr_storage address{};
  auto* ipv4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (::inet_pton(AF_INET, text.c_str(), &ipv4->sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else {
    address.ss_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &ipv6->sin6_addr), 1) << text;
  }
  return is_global(reinterpret_cast<const sockaddr&>(address));
}

RegistryRules rules(const std::vector<std::string>& entries) {
  return RegistryRules::parse(entries).value();
}

bool allows(const RegistryRules& rules, std::string_view target) {
  return rules.allows(split_host_port(target));
}

TEST(RegistryRules, AddressesOfThePublicInternetAreGlobal) {
  for (const char* text :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
        "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"}) {
    EXPECT_TRUE(global(text)) << text;
  }
}

TEST(RegistryRules, AddressesThatOnlyTheNodeReachesAreNot) {
  for (const char* text : {"0.0.0.0",
                           "10.0.0.1",
                           "100.64.0.1",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fd00:ec2::254",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:169.254.169.254",
                           "::127.0.0.1",
                           "64:ff9b::10.0.0.1",
                           "64:ff9b:1::1",
                           "2001::1",
                           "2001:db8::1",
                           "2002:7f00:1::",
                           "3fff::1",
                           "100::1"}) {
    EXPECT_FALSE(global(text)) << text;
  }
}

TEST(RegistryRules, AHostAndItsPort) {
  EXPECT_EQ(split_host_port("GHCR.io"), (HostPort{"ghcr.io", 443}));
  EXPECT_EQ(split_host_port("ghcr.io."), (HostPort{"ghcr.io", 443}));
  EXPECT_EQ(split_host_port("localhost:5000"), (HostPort{"localhost", 5000}));
  EXPECT_EQ(split_host_port("[::1]:443"), (HostPort{"::1", 443}));
  for (const char* bad : {"a:", "a:0", "a:65536", "a:80x", "[::1", "[::1]x", "[::1]:", "::1"}) {
    EXPECT_EQ(split_host_port(bad).port, 0) << bad;
  }
}

TEST(RegistryRules, ARepositoryNamesItsRegistryOrIsOfTheUsualOne) {
  EXPECT_EQ(registry_of("ubuntu"), "docker.io");
  EXPECT_EQ(registry_of("team/app"), "docker.io");
  EXPECT_EQ(registry_of("localhost/app"), "localhost");
  EXPECT_EQ(registry_of("localhost:5000/team/app"), "localhost:5000");
  EXPECT_EQ(registry_of("ghcr.io/app"), "ghcr.io");
}

TEST(RegistryRules, PublicMeansTlsAtGlobalAddresses) {
  const RegistryRules all = rules({"public"});
  EXPECT_TRUE(allows(all, "ghcr.io"));
  EXPECT_TRUE(all.needs_global_addresses(split_host_port("ghcr.io")));
  EXPECT_FALSE(allows(all, "ghcr.io:80"));
  EXPECT_FALSE(allows(all, "ghcr.io:22"));
  for (const char* own : {"localhost", "LOCALHOST.", "a.localhost", "10.0.0.1", "169.254.169.254", "[::1]:443"}) {
    EXPECT_FALSE(allows(all, own)) << own;
  }
  EXPECT_TRUE(allows(all, "1.1.1.1"));
}

TEST(RegistryRules, AListedHostIsAllowedAtItsPortWhereverItIs) {
  const RegistryRules some = rules({"ghcr.io", "*.example.com", "10.0.0.5:5000"});
  EXPECT_TRUE(allows(some, "ghcr.io"));
  EXPECT_TRUE(allows(some, "GHCR.IO."));
  EXPECT_FALSE(some.needs_global_addresses(split_host_port("ghcr.io")));
  EXPECT_FALSE(allows(some, "ghcr.io:5000"));
  EXPECT_FALSE(allows(some, "docker.io"));
  EXPECT_TRUE(allows(some, "a.example.com"));
  EXPECT_TRUE(allows(some, "a.b.example.com"));
  EXPECT_FALSE(allows(some, "example.com"));
  EXPECT_FALSE(allows(some, "evilexample.com"));
  EXPECT_TRUE(allows(some, "10.0.0.5:5000"));
  EXPECT_FALSE(allows(some, "10.0.0.5"));
}

TEST(RegistryRules, NothingIsAllowedByNone) {
  EXPECT_FALSE(allows(rules({"none"}), "ghcr.io"));
  EXPECT_FALSE(allows(rules({}), "ghcr.io"));
}

TEST(RegistryRules, WhatIsNoRegistryIsNamed) {
  for (const char* bad : {"", "*.", "a b", "http://a", "a:x", "a/b", "*"}) {
    const auto parsed = RegistryRules::parse({bad});
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("'" + std::string(bad) + "' is no registry"));
  }
  EXPECT_THAT(RegistryRules::advice(split_host_port("[fd00::1]:5000")), HasSubstr("'[fd00::1]:5000'"));
  EXPECT_THAT(RegistryRules::advice(split_host_port("ghcr.io")), HasSubstr("'ghcr.io'"));
}

}  // namespace
}  // namespace fairlead
