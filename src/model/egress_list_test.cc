#include "model/egress_list.h"

#include <gmock/gmock.h>

#include "model/tenant.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

EgressList list(const std::string& text) {
  const auto parsed = EgressList::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed.value_or(EgressList());
}

std::string refused(const std::string& text) {
  const auto parsed = EgressList::parse(text);
  return parsed ? "taken" : parsed.error().message;
}

bool covers(const std::string& grant, const std::string& asked) {
  return list(grant).beyond(list(asked)) == nullptr;
}

TEST(EgressList, IsReadAndWritten) {
  for (const char* text : {"none", "all", "all:443", "pypi.org", "pypi.org:443", "*.example.com", "10.0.0.0/8",
                           "10.0.0.1:80", "fd00::/8", "[fd00::1]:443", "[fd00::/8]:443", "all,10.1.0.0/16:5432"}) {
    EXPECT_EQ(list(text).text(), text);
  }
  EXPECT_EQ(list(" PyPI.org.  files.pythonhosted.org,\n").text(), "pypi.org,files.pythonhosted.org");
  EXPECT_EQ(list("[fd00::1]").text(), "fd00::1");
  EXPECT_EQ(list("::ffff:10.0.0.1").text(), "10.0.0.1");
  EXPECT_TRUE(list("NONE").is_none());
}

TEST(EgressList, ATextThatIsNoneSaysWhatItMustBe) {
  for (const char* text : {"http://pypi.org",
                           "pypi.org/",
                           "a..b",
                           "-a.b",
                           "a:0",
                           "a:65536",
                           "a:",
                           "a:b",
                           "*.",
                           "*",
                           "*.*.a",
                           "a*.b",
                           "10.1",
                           "0x7f.1",
                           "127.1",
                           "1",
                           "[fd00::1",
                           "[fd00::1]443",
                           "fd00::g",
                           "10.0.0.1/8",
                           "a@b",
                           "all:none",
                           "none:1",
                           "all.",
                           "none.",
                           "All.:80",
                           "a\tb:x"}) {
    EXPECT_THAT(refused(text), HasSubstr("is no destination: it must be all, NAME")) << text;
  }
  EXPECT_THAT(refused(""), HasSubstr("has 0 entries; it must have 1 to 64"));
  EXPECT_THAT(refused(" , "), HasSubstr("has 0 entries"));
  EXPECT_THAT(refused("none,all"), HasSubstr("'none' stands alone"));
  EXPECT_THAT(refused(std::string(254, 'a')), HasSubstr("is no destination"));
  EXPECT_THAT(refused(std::string(5000, ',')), HasSubstr("has 5000 bytes; it must have 4096 at most"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "a,";
  EXPECT_THAT(refused(many), HasSubstr("has 65 entries"));
}

TEST(EgressList, WhatNobodyReachesIsInNoList) {
  for (const char* text : {"127.0.0.1", "127.0.0.0/8", "::1", "169.254.169.254", "169.254.0.0/16", "168.63.129.16:80",
                           "fd00:ec2::254", "fe80::/10", "[fe80::1]:80", "0.0.0.0", "224.0.0.1", "255.255.255.255",
                           "::ffff:127.0.0.1", "100.100.100.200", "::", "fd20:ce::254"}) {
    EXPECT_THAT(refused(text), HasSubstr("is an address that no function reaches")) << text;
  }
  // Wider ones may hold some: what a list says never counts for those (is_never_reached).
  EXPECT_EQ(refused("0.0.0.0/0,100.64.0.0/10,fd00::/8"), "taken");
}

TEST(EgressList, WhatNobodyReachesIsKnownInEveryForm) {
  for (const char* text : {"127.0.0.1", "::1", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "0.0.0.0",
                           "fd00:ec2::254", "fe80::1", "ff02::1", "168.63.129.16"}) {
    EXPECT_TRUE(is_never_reached(IpAddress::parse(text).value())) << text;
  }
  for (const char* text : {"10.0.0.1", "8.8.8.8", "fd00::1", "2606:4700::1"}) {
    EXPECT_FALSE(is_never_reached(IpAddress::parse(text).value())) << text;
  }
}

TEST(EgressList, AGrantCoversItselfAndWhatIsPartOfIt) {
  EXPECT_TRUE(covers("all", "all,pypi.org,*.example.com,8.8.8.0/24:53,2606:4700::/32"));
  EXPECT_TRUE(covers("*.example.com", "*.example.com,a.example.com,*.a.example.com,a.b.example.com:1"));
  EXPECT_TRUE(covers("10.0.0.0/8", "10.1.0.0/16,10.2.3.4:5432"));
  EXPECT_TRUE(covers("a.b:443,10.0.0.0/8", "10.0.0.1,a.b:443"));
  EXPECT_TRUE(covers("pypi.org", "none"));
  EXPECT_TRUE(covers("0.0.0.0/0", "10.0.0.1"));
}

TEST(EgressList, AGrantCoversNothingBeyond) {
  EXPECT_FALSE(covers("none", "a.b"));
  EXPECT_FALSE(covers("pypi.org", "all"));
  EXPECT_FALSE(covers("pypi.org", "*.pypi.org"));
  EXPECT_FALSE(covers("pypi.org", "evilpypi.org"));
  EXPECT_FALSE(covers("*.example.com", "example.com"));
  EXPECT_FALSE(covers("*.example.com", "evilexample.com"));
  EXPECT_FALSE(covers("*.a.example.com", "*.example.com"));
  EXPECT_FALSE(covers("pypi.org:443", "pypi.org"));
  EXPECT_FALSE(covers("pypi.org:443", "pypi.org:80"));
  EXPECT_FALSE(covers("all:443", "pypi.org"));
  EXPECT_FALSE(covers("10.1.0.0/16", "10.0.0.0/8"));
  EXPECT_FALSE(covers("::/0", "10.0.0.1"));
  EXPECT_FALSE(covers("0.0.0.0/0", "pypi.org"));
}

TEST(EgressList, AllIsWhatIsPublic) {
  for (const char* text : {"10.0.0.1", "192.168.0.0/16", "172.16.0.1:5432", "100.64.0.1", "fd00::1", "0.0.0.0/0",
                           "8.0.0.0/5", "128.0.0.0/1", "160.0.0.0/3", "2000::/3", "::/0", "198.18.0.0/15"}) {
    EXPECT_FALSE(covers("all", text)) << text;
  }
}

TEST(EgressList, AFunctionGetsWhatItAskedForAndNoMoreThanItsTenantHas) {
  const std::vector<EgressGrant> grants = {*parse_egress_grant("default=pypi.org"),
                                           *parse_egress_grant("vision=all,10.1.0.0/16:5432")};
  EXPECT_TRUE(egress_of(grants, {})->asked.is_none());
  EXPECT_TRUE(egress_of(grants, {{kEgressTag, "none"}})->asked.is_none());
  const auto terms = egress_of(grants, {{kEgressTag, "a.b 10.1.2.3:5432"}, {kTenantTag, "vision"}});
  ASSERT_TRUE(terms) << terms.error().message;
  EXPECT_EQ(terms->asked, list("a.b,10.1.2.3:5432"));
  EXPECT_EQ(terms->granted, list("all,10.1.0.0/16:5432"));
  EXPECT_THAT(
      egress_of(grants, {{kEgressTag, "pypi.org,a.b:1"}}).error().message,
      HasSubstr(
          "tag gpu:egress asks for 'a.b:1'; tenant default may reach at most: pypi.org; the operator gives more with "
          "serve --egress default=LIST"));
  EXPECT_THAT(egress_of(grants, {{kEgressTag, "a.b"}, {kTenantTag, "shop"}}).error().message,
              HasSubstr("tenant shop may reach at most: none"));
  EXPECT_THAT(egress_of(grants, {{kEgressTag, "a b/c"}}).error().message,
              HasSubstr("tag gpu:egress: 'b/c' is no destination"));
}

TEST(EgressList, AGrantNamesItsTenant) {
  EXPECT_EQ(parse_egress_grant("a=none")->list, EgressList());
  EXPECT_THAT(parse_egress_grant("all").error().message, HasSubstr("it must be TENANT=none"));
  EXPECT_FALSE(parse_egress_grant("=all"));
  EXPECT_FALSE(parse_egress_grant("a b=all"));
  EXPECT_FALSE(parse_egress_grant("a="));
}

}  // namespace
}  // namespace fairlead
