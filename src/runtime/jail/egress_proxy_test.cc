#include "runtime/jail/egress_proxy.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(EgressProxy, ATunnelNamesWhereItLeads) {
  const auto request = parse_proxy_request("CONNECT GHCR.io:443 HTTP/1.1\r\nHost: other:1\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->is_tunnel);
  EXPECT_EQ(request->target, (HostPort{"ghcr.io", 443}));
  EXPECT_EQ(parse_proxy_request("CONNECT [::1]:5000 HTTP/1.1\r\n\r\n")->target, (HostPort{"::1", 5000}));
}

TEST(EgressProxy, APlainRequestNamesAnHttpUrl) {
  const auto request = parse_proxy_request("GET http://registry:5000/v2/?a=b HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->is_tunnel);
  EXPECT_EQ(request->target, (HostPort{"registry", 5000}));
  EXPECT_EQ(parse_proxy_request("GET http://registry/v2/ HTTP/1.1\r\n\r\n")->target, (HostPort{"registry", 80}));
  EXPECT_EQ(parse_proxy_request("GET http://a@registry/v2/ HTTP/1.1\r\n\r\n")->target, (HostPort{"registry", 80}));
}

TEST(EgressProxy, TheHostsProxyIsReadAsAUrl) {
  const auto whole = parse_upstream_proxy("http://ann:p%40ss%3aword@proxy.example:3128/");
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->address, (HostPort{"proxy.example", 3128}));
  EXPECT_EQ(whole->userinfo, "ann:p@ss:word");
  EXPECT_EQ(parse_upstream_proxy("http://proxy")->address, (HostPort{"proxy", 80}));
  EXPECT_EQ(parse_upstream_proxy("proxy:8080")->address, (HostPort{"proxy", 8080}));
  EXPECT_EQ(parse_upstream_proxy("http://[::1]/")->address, (HostPort{"::1", 80}));
  EXPECT_EQ(parse_upstream_proxy("http://[::1]:3128")->address, (HostPort{"::1", 3128}));
  EXPECT_EQ(parse_upstream_proxy("http://ann:a/b@proxy:1")->userinfo, "ann:a/b");
  EXPECT_EQ(parse_upstream_proxy("https://proxy").error().code, Errc::kUnavailable);
  for (const char* bad : {"http://", "http://ann:secret%4@proxy", "http://ann:secret%zz@proxy", "http://proxy:0",
                          "http://proxy:99999", "http://proxy:"}) {
    const auto refused = parse_upstream_proxy(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << bad;
  }
}

TEST(EgressProxy, WhatIsNeitherIsRefused) {
  for (const char* head :
       {"", "\r\n\r\n", "CONNECT", "CONNECT  HTTP/1.1", "CONNECT a:0 HTTP/1.1", "CONNECT :443 HTTP/1.1",
        "CONNECT a:99999 HTTP/1.1", "GET / HTTP/1.1", "GET ftp://a/ HTTP/1.1", "GET http:/// HTTP/1.1",
        "CONNECT a b:443 HTTP/1.1", "CONNECT a\nHost:b:443 HTTP/1.1", "CONNECT a%0d:443 HTTP/1.1"}) {
    EXPECT_FALSE(parse_proxy_request(head)) << head;
  }
}

}  // namespace
}  // namespace fairlead
