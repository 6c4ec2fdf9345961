#include "edge/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/digest.h"
#include "edge/testing/edge_fixture.h"
#include "net/body_sink.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kNow = 1'790'000'000'000;  // 20260921T141320Z
constexpr std::uint32_t kOperator = 1000;

// Routes that need one permission each, and say who came.
class GuardTest : public EdgeTest {
 protected:
  GuardTest() {
    Edge edge{.name = "doors", .prefixes = {"/"}, .errors = document_errors()};
    const auto add = [&](std::string_view path, Permission permission) {
      for (const char* method : {"GET", "POST"}) {
        edge.routes.add(
            method, path,
            [](RouteCall call) {
              const Principal& who = call.principal;
              call.exchange.respond(
                  {.body = fmt::format("{} {} {} {}", who.name, role_name(who.role), who.tenant.value_or("*"),
                                       call.exchange.request().body().size())});
            },
            permission);
      }
    };
    add("/health", Permission::kAnyone);
    add("/read", Permission::kRead);
    add("/invoke", Permission::kInvoke);
    add("/deploy", Permission::kDeploy);
    add("/node", Permission::kReadNode);
    add("/operate", Permission::kOperate);
    serve(std::move(edge));
    close();
  }

  void use(const GuardOptions& options) {
    guard_.emplace(
        keyring_, options,
        GuardPorts{.wall_clock_ms = [] { return kNow; },
                   .elsewhere = [this](const std::string& tenant, Bytes bytes, NodeService::Job job) -> Status {
                     if (!elsewhere_) return fail(elsewhere_.error());
                     jobs_.push_back(std::move(job));
                     job_tenants_.push_back(tenant);
                     EXPECT_GT(bytes.count(), 0);
                     return {};
                   },
                   .audit = [this](const AuditEntry& entry) { audited_.push_back(entry); }});
    router_.set_guard(&*guard_);
  }
  void close() { use({.operator_uid = kOperator}); }
  void open() { use({.is_open = true, .operator_uid = kOperator}); }

  identity::IssuedKey key(const std::string& id, Role role, std::optional<std::string> tenant = "a") {
    const auto issued = keyring_.issue(id, {.role = role, .tenant = std::move(tenant)}, kNow);
    EXPECT_TRUE(issued) << issued.error().message;
    return *issued;
  }
  static Headers bearer(const identity::IssuedKey& key) { return {{"Authorization", "Bearer " + key.token()}}; }

  // As boto3 would send it.
  Headers signed_by(const identity::IssuedKey& key, const std::string& method, const std::string& target,
                    const std::string& body) {
    Headers headers{{"host", "n"}, {"x-amz-date", "20260921T141320Z"}};
    const identity::SignedRequest request{
        .method = method,
        .target = target,
        .header = [&](std::string_view name) { return std::string_view(headers[std::string(name)]); },
        .payload_sha256 = [&] { return to_hex(as_text(sha256(body))); }};
    const identity::Sigv4 parts{.key_id = key.key.id,
                                .date = "20260921",
                                .region = "r",
                                .service = "lambda",
                                .signed_headers = "host;x-amz-date",
                                .signature = {}};
    headers["Authorization"] = identity::sign(parts, identity::signing_key(key.secret, parts), request);
    return headers;
  }

  unsigned status(const std::string& path, const Headers& headers, bool is_local = true) {
    return call("GET", path, "", headers, is_local).response->status;
  }
  // With the Unix socket's peer.
  FakeExchange from_socket(std::uint32_t uid, const std::string& path, Headers headers = {}) {
    auto exchange = std::make_shared<FakeExchange>();
    exchange->method_text = "GET";
    exchange->target_text = path;
    exchange->headers = std::move(headers);
    exchange->uid = uid;
    router_.dispatch(net::HttpExchange(exchange));
    return *exchange;
  }

  identity::Keyring keyring_{"master"};
  std::optional<Guard> guard_;
  Status elsewhere_;
  std::vector<NodeService::Job> jobs_;
  std::vector<std::string> job_tenants_;
  std::vector<AuditEntry> audited_;
};

TEST_F(GuardTest, WithoutACredentialThereIsHealthAlone) {
  EXPECT_EQ(status("/health", {}), 200u);
  for (const char* path : {"/read", "/invoke", "/deploy", "/node", "/operate"}) {
    const FakeExchange refused = call("GET", path);
    expect_error(refused, 401, "UnrecognizedClientException", "fairlead tenant add");
    EXPECT_EQ(refused.response_header("WWW-Authenticate"), "Bearer");
  }
  EXPECT_EQ(status("/nothing", {}), 404u);
}

TEST_F(GuardTest, EachRoleMayDoWhatTheOnesBelowMay) {
  struct Case {
    Role role;
    std::optional<std::string> tenant;
    std::vector<unsigned> statuses;  // of the paths in turn
  };
  const Case cases[] = {
      {Role::kReader, "a", {200, 403, 403, 403, 403}},
      {Role::kInvoker, "a", {200, 200, 403, 403, 403}},
      {Role::kDeployer, "a", {200, 200, 200, 403, 403}},
      {Role::kReader, std::nullopt, {200, 403, 403, 200, 403}},
      {Role::kDeployer, std::nullopt, {200, 200, 200, 200, 403}},
      {Role::kOperator, std::nullopt, {200, 200, 200, 200, 200}},
  };
  int n = 0;
  for (const Case& one : cases) {
    const auto issued = key(fmt::format("FLK{:05}", n++), one.role, one.tenant);
    std::vector<unsigned> statuses;
    for (const char* path : {"/read", "/invoke", "/deploy", "/node", "/operate"}) {
      statuses.push_back(status(path, bearer(issued), false));
    }
    EXPECT_EQ(statuses, one.statuses) << role_name(one.role) << " " << one.tenant.value_or("*");
  }
}

TEST_F(GuardTest, ATenantsKeyNamesNoOtherTenant) {
  Headers headers = bearer(key("FLKAAAAA", Role::kInvoker));
  EXPECT_EQ(call("GET", "/invoke", "", headers).response->body, "FLKAAAAA invoker a 0");
  headers["X-Fairlead-Tenant"] = "a";
  EXPECT_EQ(status("/invoke", headers), 200u);
  headers["X-Fairlead-Tenant"] = "b";
  expect_error(call("GET", "/invoke", "", headers), 403, "AccessDeniedException", "is a key of tenant 'a'");
  Headers all = bearer(key("FLKBBBBB", Role::kOperator, std::nullopt));
  all["X-Fairlead-Tenant"] = "b";
  EXPECT_EQ(status("/invoke", all), 200u);
}

TEST_F(GuardTest, TheOperatorsSocketNeedsNoKeyForItsUserAndRoot) {
  EXPECT_EQ(from_socket(kOperator, "/operate").response->body, "uid 1000 operator * 0");
  EXPECT_EQ(from_socket(0, "/operate").response->status, 200u);
  EXPECT_EQ(from_socket(1001, "/read").response->status, 401u);
  EXPECT_EQ(from_socket(kOperator, "/read", {{"Authorization", "Bearer X.y"}}).response->status, 401u)
      << "who shows a key is asked for a good one";
}

TEST_F(GuardTest, AnOpenNodeTakesLoopbackForTheOperatorButNoWebPage) {
  open();
  EXPECT_EQ(status("/operate", {{"Host", "127.0.0.1:9001"}}), 200u);
  EXPECT_EQ(status("/operate", {{"Host", "localhost"}}), 200u);
  EXPECT_EQ(status("/operate", {{"Host", "[::1]:9001"}}), 200u);
  EXPECT_EQ(status("/operate", {{"Host", "127.0.0.2:9001"}}), 200u) << "no name, so nobody can lead it elsewhere";
  EXPECT_EQ(status("/operate", {}), 200u) << "no browser";
  EXPECT_EQ(status("/operate", {{"Host", "127.0.0.1:9001"}}, false), 401u) << "another machine";
  EXPECT_EQ(status("/operate", {{"Host", "127.0.0.1:9001"}, {"Origin", "https://evil.example"}}), 403u);
  EXPECT_EQ(status("/operate", {{"Host", "127.0.0.1:9001"}, {"Origin", "null"}}), 403u);
  for (const char* host :
       {"evil.example:9001", "127.0.0.1.evil.example", "unix", "unix:80", "10.0.0.1", "localhost.", "[::1].x:1"}) {
    EXPECT_EQ(status("/operate", {{"Host", host}}), 403u) << host << ": DNS rebinding";
  }
  EXPECT_EQ(status("/health", {{"Host", "evil.example"}, {"Origin", "https://evil.example"}}), 200u);
}

TEST_F(GuardTest, ABrowsersPasswordIsNoUseToOtherPages) {
  const auto issued = key("FLKAAAAA", Role::kOperator, std::nullopt);
  const std::string basic = "Basic " + base64_encode("FLKAAAAA:" + issued.secret);
  EXPECT_EQ(status("/operate", {{"Authorization", basic}}), 200u);
  for (const char* origin : {"https://evil.example", "null", "http://localhost:9001"}) {
    EXPECT_EQ(status("/operate", {{"Authorization", basic}, {"Origin", origin}}), 403u) << origin;
    EXPECT_EQ(status("/operate", {{"Authorization", "Bearer " + issued.token()}, {"Origin", origin}}), 200u) << origin;
  }
  EXPECT_EQ(status("/operate", {{"Authorization", basic}, {"Sec-Fetch-Site", "cross-site"}}), 403u);
  EXPECT_EQ(status("/operate", {{"Authorization", basic}, {"Sec-Fetch-Site", "none"}}), 200u);
}

TEST_F(GuardTest, AnOpenNodeKnowsItsKeysAndIgnoresOthers) {
  open();
  const Headers own = bearer(key("FLKAAAAA", Role::kReader));
  EXPECT_EQ(status("/deploy", own), 403u) << "who shows a key is its owner";
  EXPECT_EQ(status("/deploy", {{"Authorization", "AWS4-HMAC-SHA256 Credential=test/1"}, {"Host", "localhost"}}), 200u);
  EXPECT_EQ(status("/deploy", {{"Authorization", "Bearer a.b"}, {"Host", "localhost"}}, false), 401u);
}

TEST_F(GuardTest, SignaturesAreCheckedAgainstTheBody) {
  const auto issued = key("FLKAAAAA", Role::kInvoker);
  const Headers headers = signed_by(issued, "POST", "/invoke?x=1", "{}");
  EXPECT_EQ(call("POST", "/invoke?x=1", "{}", headers).response->body, "FLKAAAAA invoker a 2");
  EXPECT_EQ(call("POST", "/invoke?x=1", "{ }", headers).response->status, 401u);
  EXPECT_EQ(call("POST", "/invoke?x=2", "{}", headers).response->status, 401u);
  EXPECT_THAT(jobs_, IsEmpty());
}

TEST_F(GuardTest, LargeBodiesAreHashedElsewhereAndReachTheHandler) {
  const auto issued = key("FLKAAAAA", Role::kDeployer);
  const std::string body((256 << 10) + 1, 'x');
  const auto exchange = begin("POST", "/deploy", body, signed_by(issued, "POST", "/deploy", body));
  ASSERT_THAT(jobs_, SizeIs(1));
  EXPECT_THAT(job_tenants_, ElementsAre("a"));
  EXPECT_FALSE(exchange->response) << "not before the hash is known";
  jobs_[0]()();
  EXPECT_EQ(exchange->response->body, fmt::format("FLKAAAAA deployer a {}", body.size()));
  std::string other = body;
  other.back() = 'y';
  const auto forged = begin("POST", "/deploy", other, signed_by(issued, "POST", "/deploy", body));
  jobs_[1]()();
  EXPECT_EQ(forged->response->status, 401u);
}

TEST_F(GuardTest, LargeBodiesOfNobodyAreNotHashed) {
  const auto issued = key("FLKAAAAA", Role::kDeployer);
  const std::string body((256 << 10) + 1, 'x');
  const Headers headers = signed_by(issued, "POST", "/deploy", body);
  ASSERT_TRUE(keyring_.revoke("FLKAAAAA"));
  EXPECT_EQ(call("POST", "/deploy", body, headers).response->status, 401u);
  EXPECT_THAT(jobs_, IsEmpty());
}

TEST_F(GuardTest, WhereTooMuchIsHashedAlreadyTheCallerTriesAgain) {
  const auto issued = key("FLKAAAAA", Role::kDeployer);
  const std::string body((256 << 10) + 1, 'x');
  elsewhere_ = fail(Errc::kResourceExhausted, "16 bodies are being read");
  EXPECT_EQ(call("POST", "/deploy", body, signed_by(issued, "POST", "/deploy", body)).response->status, 429u);
}

// What a body goes to before it has arrived takes room, so who sends it is known first.
TEST_F(GuardTest, BodiesGoToASinkForThoseWhoAreKnownByTheirHead) {
  class Sink : public net::BodySink {
    void append(std::string_view) override {}
  };
  Edge edge{.name = "sinks", .prefixes = {"/sinks"}, .errors = document_errors()};
  std::vector<std::string> tenants;
  edge.routes.add(
      "PUT", "/sinks/x", [](RouteCall) {}, Permission::kInvoke,
      [&](const RouteHead& head) {
        tenants.push_back(head.principal.tenant.value_or("*"));
        return std::make_shared<Sink>();
      });
  serve(std::move(edge));
  const auto has_sink = [&](const Headers& headers) {
    FakeExchange head;
    head.method_text = "PUT";
    head.target_text = "/sinks/x";
    head.headers = headers;
    return router_.sink_for(head) != nullptr;
  };
  const auto invoker = key("FLKAAAAA", Role::kInvoker), reader = key("FLKBBBBB", Role::kReader);
  EXPECT_FALSE(has_sink({}));
  EXPECT_FALSE(has_sink(bearer(reader)));
  EXPECT_FALSE(has_sink(signed_by(invoker, "PUT", "/sinks/x", ""))) << "the signature covers the body";
  Headers another = bearer(invoker);
  another["X-Fairlead-Tenant"] = "b";
  EXPECT_FALSE(has_sink(another));
  EXPECT_TRUE(has_sink(bearer(invoker)));
  EXPECT_THAT(tenants, ElementsAre("a"));
}

TEST_F(GuardTest, ChangesAreWrittenDownWithTheirOutcome) {
  const auto deployer = key("FLKAAAAA", Role::kDeployer);
  call("POST", "/deploy?secret=1", "", bearer(deployer));
  call("POST", "/invoke", "", bearer(deployer));
  call("POST", "/operate", "", bearer(deployer));
  ASSERT_THAT(audited_, SizeIs(2));
  EXPECT_EQ(audited_[0].who, "FLKAAAAA");
  EXPECT_EQ(audited_[0].tenant, "a");
  EXPECT_EQ(audited_[0].method, "POST");
  EXPECT_EQ(audited_[0].path, "/deploy") << "no query: it may say what should not be kept";
  EXPECT_EQ(audited_[0].status, 200u);
  EXPECT_EQ(audited_[1].path, "/operate");
  EXPECT_EQ(audited_[1].status, 403u);
}

// Before its body is there, a request counts as the key's that it names.
TEST_F(GuardTest, ALargeBodyIsTheKeysThatIsNamed) {
  const auto acme = key("FLKACME1", Role::kInvoker, "acme");
  const auto all = key("FLKALL12", Role::kOperator, std::nullopt);
  const auto holder = [this](const Headers& headers) {
    FakeExchange head;
    head.headers = headers;
    head.is_local = false;
    const auto found = guard_->holder_of(head);
    return found ? *found : "refused: " + found.error().message;
  };
  EXPECT_EQ(holder(bearer(acme)), "acme");
  EXPECT_EQ(holder(signed_by(acme, "POST", "/invoke", "not there yet")), "acme");
  Headers named = bearer(all);
  EXPECT_EQ(holder(named), "default");
  named["X-Fairlead-Tenant"] = "chosen";
  EXPECT_EQ(holder(named), "chosen");
  Headers wrong = bearer(acme);
  wrong["Authorization"] += "x";
  EXPECT_THAT(holder(wrong), HasSubstr("refused"));
  auto unknown = acme;
  unknown.key.id = "FLKNOBODY";
  EXPECT_THAT(holder(signed_by(unknown, "POST", "/invoke", "b")), HasSubstr("not known"));
  EXPECT_THAT(holder({{"Authorization", "AWS4-HMAC-SHA256 nonsense"}}), HasSubstr("refused"));
  EXPECT_THAT(holder({}), HasSubstr("credential"));
  open();
  EXPECT_THAT(holder({}), HasSubstr("credential")) << "from another machine";
  FakeExchange local;
  local.headers = signed_by(unknown, "POST", "/invoke", "b");
  EXPECT_EQ(guard_->holder_of(local).value_or("refused"), "default");
}

}  // namespace
}  // namespace fairlead
