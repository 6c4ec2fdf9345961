#include "edge/openfaas/callback_url.h"

#include <gtest/gtest.h>

namespace fairlead::openfaas {
namespace {

const RegistryRules kPublic = RegistryRules::everything_public();

RegistryRules rules(std::vector<std::string> entries) {
  return RegistryRules::parse(std::move(entries)).value();
}

TEST(CallbackUrl, HostPortAndTargetAreTakenApart) {
  EXPECT_EQ((CallbackUrl{{"hooks.example.com", 443}, true, "/done?x=1"}),
            parse_callback_url("https://hooks.example.com/done?x=1", kPublic));
  EXPECT_EQ((CallbackUrl{{"hooks.example.com", 443}, true, "/"}),
            parse_callback_url("https://HOOKS.example.com", kPublic));
  EXPECT_EQ((CallbackUrl{{"hooks.example.com", 443}, true, "/?q"}),
            parse_callback_url("https://hooks.example.com?q", kPublic));
  EXPECT_EQ((CallbackUrl{{"h", 80}, false, "/"}), parse_callback_url("http://h", rules({"h:80"})));
  EXPECT_EQ((CallbackUrl{{"::1", 8080}, false, "/a"}),
            parse_callback_url("http://[::1]:8080/a", rules({"[::1]:8080"})));
  EXPECT_EQ("[::1]:8080", (CallbackUrl{{"::1", 8080}}).authority());
}

TEST(CallbackUrl, TheNodesOwnMachineAndNetworkAreOutOfReach) {
  for (const char* url :
       {"https://localhost/x", "https://127.0.0.1", "https://127.1.2.3", "https://[::1]/", "https://10.0.0.1/",
        "https://169.254.169.254/latest", "https://192.168.1.1", "https://[fd00::1]", "https://[::ffff:127.0.0.1]/",
        "https://0.0.0.0/", "https://a.localhost/", "https://localhost./", "http://hooks.example.com/",
        "http://hooks.example.com:443/", "https://hooks.example.com:9001/"}) {
    const auto parsed = parse_callback_url(url, kPublic);
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(Errc::kForbidden, parsed.error().code) << url;
    EXPECT_NE(std::string::npos, parsed.error().message.find("to the setting callbacks")) << url;
  }
  EXPECT_FALSE(parse_callback_url("https://hooks.example.com", rules({"none"})));
}

TEST(CallbackUrl, AnOperatorListsOthers) {
  const RegistryRules some = rules({"localhost:8080", "*.example.com"});
  EXPECT_TRUE(parse_callback_url("http://localhost:8080/x", some));
  EXPECT_TRUE(parse_callback_url("https://a.example.com/x", some));
  EXPECT_FALSE(parse_callback_url("http://localhost:8081/x", some));
  EXPECT_FALSE(parse_callback_url("https://example.org/x", some));
}

TEST(CallbackUrl, WhatIsNoUrlIsRefused) {
  const RegistryRules some = rules({"public", "h:80"});
  for (const std::string url : {"", "h", "ftp://h/", "http://", "http:///x", "http://user@h/", "http://h:0/",
                                "http://h:99999/", "http://h:/", "http://h/a b", "http://h/\r\nHost: x", "http://h/#f",
                                "http://h\\@x/", "http://h/\x80", "javascript:alert(1)", "//h/x", "http://[::1/x"}) {
    const auto parsed = parse_callback_url(url, some);
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(Errc::kInvalidArgument, parsed.error().code) << url;
  }
  EXPECT_FALSE(parse_callback_url("http://h/" + std::string(kMostCallbackUrlBytes, 'a'), some));
}

}  // namespace
}  // namespace fairlead::openfaas
