// Sessions of browsers, and who else would like to have one: pages of other origins, forms, links, old cookies.
#include "edge/console/sign_in.h"

#include "edge/guard.h"
#include "edge/session_cookie.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kNow = 1'790'000'000'000;

class SignInTest : public EdgeTest {
 protected:
  SignInTest() {
    Edge edge{.name = "console", .prefixes = {"/"}, .errors = document_errors()};
    add_sign_in_routes(edge.routes, keyring_, [this] { return now_; });
    for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
      edge.routes.add(
          method, "/invoke", [](RouteCall call) { call.exchange.respond({.body = call.principal.name}); },
          Permission::kInvoke);
      edge.routes.add(
          method, "/read", [](RouteCall call) { call.exchange.respond({.body = call.principal.name}); },
          Permission::kRead);
    }
    serve(std::move(edge));
    use({});
  }
  void use(const GuardOptions& options) {
    guard_.emplace(keyring_, options,
                   GuardPorts{.wall_clock_ms = [this] { return now_; },
                              .elsewhere = [](const std::string&, Bytes, NodeService::Job) -> Status { return {}; },
                              .audit = [](const AuditEntry&) {}});
    router_.set_guard(&*guard_);
  }
  identity::IssuedKey key(const std::string& id, Role role, std::optional<std::int64_t> expires = std::nullopt) {
    return keyring_.issue(id, {.role = role, .tenant = "a", .expires_ms = expires}, kNow).value();
  }
  FakeExchange sign_in(const identity::IssuedKey& key, const std::string& query = "", Headers more = {}) {
    more.insert({{"Authorization", "Bearer " + key.token()}, {kConsoleHeader, "1"}, {"Host", "node:9001"}});
    return call("POST", "/console/session" + query, "", std::move(more), false);
  }
  // "name=value" of a Set-Cookie.
  static std::string cookie(const FakeExchange& answer) {
    const std::string all = answer.response_header("Set-Cookie");
    return all.substr(0, all.find(';'));
  }
  FakeExchange with(const std::string& cookie, Headers more, const std::string& method = "GET",
                    const std::string& path = "/read") {
    more.insert({{"Cookie", cookie}, {"Host", "node:9001"}});
    return call(method, path, "", std::move(more), false);
  }

  std::int64_t now_ = kNow;
  identity::Keyring keyring_{"master"};
  std::optional<Guard> guard_;
  const Headers mark_{{kConsoleHeader, "1"}};
};

TEST_F(SignInTest, AKeyBecomesACookieThatShowsNoSecret) {
  const auto invoker = key("AAAAAAAA", Role::kInvoker);
  const FakeExchange answer = sign_in(invoker);
  EXPECT_EQ(200u, answer.response->status);
  EXPECT_EQ("invoker", answer.json()["role"]);
  EXPECT_EQ("a", answer.json()["tenant"]);
  const std::string set = answer.response_header("Set-Cookie");
  EXPECT_THAT(set, HasSubstr("fairlead_console_9001=AAAAAAAA."));
  EXPECT_THAT(set, HasSubstr("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(set, Not(HasSubstr("Secure")));
  EXPECT_THAT(set, Not(HasSubstr(invoker.secret)));
  EXPECT_THAT(sign_in(invoker, "?secure=1").response_header("Set-Cookie"), HasSubstr("; SameSite=Strict; Secure"));
  EXPECT_EQ("AAAAAAAA", with(cookie(answer), mark_).response->body);
  EXPECT_EQ("AAAAAAAA", with("x=1; " + cookie(answer) + "; y=2", mark_, "POST", "/invoke").response->body);
  EXPECT_EQ("AAAAAAAA", with(cookie(answer), mark_, "GET", "/console/session").json()["key"]);
}

TEST_F(SignInTest, TheCookieAloneIsNoCredential) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kDeployer)));
  EXPECT_EQ(401u, with(mine, {}).response->status) << "a link, an image or a form of any page brings it along";
  EXPECT_EQ(401u, with(mine, {}, "POST", "/invoke").response->status);
}

TEST_F(SignInTest, PagesOfOtherOriginsAreRefused) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kDeployer)));
  for (const char* origin : {"http://evil.example", "http://node:9002", "http://node", "null",
                             "http://node:9001.evil.example", "http://evil.example?http://node:9001"}) {
    const FakeExchange answer = with(mine, {{kConsoleHeader, "1"}, {"Origin", origin}}, "POST", "/invoke");
    EXPECT_EQ(403u, answer.response->status) << origin;
  }
  EXPECT_EQ(200u,
            with(mine, {{kConsoleHeader, "1"}, {"Origin", "http://node:9001"}}, "POST", "/invoke").response->status);
  EXPECT_EQ(200u,
            with(mine, {{kConsoleHeader, "1"}, {"Origin", "https://node:9001"}}, "POST", "/invoke").response->status);
  for (const char* site : {"cross-site", "same-site", "none"}) {
    EXPECT_EQ(403u, with(mine, {{kConsoleHeader, "1"}, {"Sec-Fetch-Site", site}}).response->status) << site;
  }
  EXPECT_EQ(200u, with(mine, {{kConsoleHeader, "1"}, {"Sec-Fetch-Site", "same-origin"}}).response->status);
}

TEST_F(SignInTest, ChangesAreByPostAlone) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kDeployer)));
  EXPECT_EQ(200u, with(mine, mark_, "POST", "/invoke").response->status);
  expect_error(with(mine, mark_, "DELETE", "/invoke"), 403, "AccessDeniedException", "GET and POST");
  EXPECT_EQ(403u, with(mine, mark_, "PUT", "/invoke").response->status);
}

TEST_F(SignInTest, AReaderSeesAndChangesNothing) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kReader)));
  EXPECT_EQ(200u, with(mine, mark_).response->status);
  EXPECT_EQ(403u, with(mine, mark_, "POST", "/invoke").response->status);
}

TEST_F(SignInTest, ASessionEndsInTimeAndWithItsKey) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kReader)));
  now_ += std::chrono::milliseconds(std::chrono::hours(12)).count() - 1;
  EXPECT_EQ(200u, with(mine, mark_).response->status);
  now_ += 1;
  expect_error(with(mine, mark_), 401, "UnrecognizedClientException", "the console's session is over");
  now_ = kNow;
  EXPECT_EQ(200u, with(mine, mark_).response->status);
  ASSERT_TRUE(keyring_.revoke("AAAAAAAA"));
  EXPECT_EQ(401u, with(mine, mark_).response->status);
}

TEST_F(SignInTest, ASessionIsNotLongerThanItsKey) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kReader, kNow + 1000)));
  now_ += 1000;
  EXPECT_EQ(401u, with(mine, mark_).response->status);
}

TEST_F(SignInTest, ASessionMakesNoOtherOne) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kReader)));
  EXPECT_EQ(400u, with(mine, mark_, "POST", "/console/session").response->status);
}

TEST_F(SignInTest, WhatIsForgedIsRefused) {
  const std::string mine = cookie(sign_in(key("AAAAAAAA", Role::kReader)));
  const auto other = key("BBBBBBBB", Role::kDeployer);
  const std::string mac = mine.substr(mine.rfind('.') + 1);
  const std::string name = "fairlead_console_9001=";
  for (const std::string& forged :
       {name + "BBBBBBBB" + mine.substr(mine.find('.')), name + "AAAAAAAA.9999999999999." + mac, mine + "0",
        mine.substr(0, mine.size() - 1), name + "AAAAAAAA", name, name + "AAAAAAAA." + mac, name + "..",
        name + std::string(100'000, '.'), name + other.token(), "fairlead_console" + mine.substr(mine.find('=')),
        "fairlead_console_9002" + mine.substr(mine.find('='))}) {
    EXPECT_EQ(401u, with(forged, mark_).response->status) << forged.substr(0, 100);
  }
  EXPECT_EQ(200u, with(mine, mark_).response->status);
}

TEST_F(SignInTest, SigningInNeedsTheHeaderAndAKey) {
  const auto reader = key("AAAAAAAA", Role::kReader);
  const Headers bearer{{"Authorization", "Bearer " + reader.token()}};
  EXPECT_EQ(403u, call("POST", "/console/session", "", bearer, false).response->status);
  EXPECT_EQ(401u, call("POST", "/console/session", "", mark_, false).response->status);
  EXPECT_EQ(403u, call("POST", "/console/session/end", "", {}, false).response->status);
}

TEST_F(SignInTest, SigningOutTakesTheCookieAway) {
  const FakeExchange answer =
      call("POST", "/console/session/end", "", {{kConsoleHeader, "1"}, {"Host", "node:9001"}}, false);
  EXPECT_EQ(204u, answer.response->status);
  EXPECT_EQ("fairlead_console_9001=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
            answer.response_header("Set-Cookie"));
}

// Whoever is on the machine of an open node needs no session, and an old one must not keep them out.
TEST_F(SignInTest, AnOpenNodeIsSeenWithoutAKeyAndWithAnOldCookie) {
  use({.is_open = true});
  const auto local = [&](Headers headers) { return call("GET", "/console/session", "", std::move(headers), true); };
  EXPECT_EQ(nlohmann::json(), local({{"Host", "localhost:9001"}}).json()["key"]);
  EXPECT_EQ("operator",
            local({{"Host", "localhost:9001"}, {kConsoleHeader, "1"}, {"Cookie", "fairlead_console_9001=A.1.2"}})
                .json()["role"]);
}

// Of a node whose password the browser was told for another purpose.
TEST_F(SignInTest, APasswordThatABrowserAddsIsNotInTheWay) {
  const auto reader = key("AAAAAAAA", Role::kReader);
  const std::string mine = cookie(sign_in(reader));
  const Headers added{{kConsoleHeader, "1"}, {"Authorization", "Basic eDp5"}, {"Sec-Fetch-Site", "same-origin"}};
  EXPECT_EQ("AAAAAAAA", with(mine, added).response->body);
  EXPECT_EQ(401u, with("", added).response->status) << "not 403: the console asks for a key";
}

TEST_F(SignInTest, AHostOfAnyKindNamesACookie) {
  const auto reader = key("AAAAAAAA", Role::kReader);
  for (const auto& [host, name] : std::map<std::string, std::string>{{"node", "fairlead_console="},
                                                                     {"[::1]:80", "fairlead_console_80="},
                                                                     {"[::1]", "fairlead_console="},
                                                                     {"node:9001; Path=/evil", "fairlead_console="},
                                                                     {"", "fairlead_console="}}) {
    FakeExchange answer =
        call("POST", "/console/session", "",
             {{"Authorization", "Bearer " + reader.token()}, {kConsoleHeader, "1"}, {"Host", host}}, false);
    EXPECT_TRUE(answer.response_header("Set-Cookie").starts_with(name + "AAAAAAAA."))
        << answer.response_header("Set-Cookie");
  }
}

}  // namespace
}  // namespace fairlead
