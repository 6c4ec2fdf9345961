// fairlead tenant, and the key that every command shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/fake_node.h"
#include "cli/node_client.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;

// A variable for as long as a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

struct TenantCommands : testing::Test {
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--endpoint", node.endpoint(), "tenant"});
    return run_cli(std::move(args));
  }
  Json sent() const { return Json::parse(node.requests().back().body); }

  FakeNode node;
  const std::string keys = "/fairlead/v1/keys";
  const std::string issued = R"({"id":"FLKA","secret":"s3","token":"FLKA.s3","role":"deployer","tenant":"acme"})";
};

TEST_F(TenantCommands, AddPrintsTheKeyAsLinesForTheShell) {
  node.answer("POST", keys, {201, {}, issued});
  const Outcome outcome = run({"add", "acme", "--expires", "30d", "--note", "CI"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_EQ(outcome.out,
            "export AWS_ACCESS_KEY_ID=FLKA\nexport AWS_SECRET_ACCESS_KEY=s3\nexport FAIRLEAD_TOKEN=FLKA.s3\n");
  EXPECT_THAT(outcome.err, HasSubstr("shown this once"));
  EXPECT_EQ(sent(), (Json{{"role", "deployer"}, {"tenant", "acme"}, {"expires_seconds", 30 * 86'400}, {"note", "CI"}}));
}

TEST_F(TenantCommands, AKeyForAllSaysSo) {
  node.answer("POST", keys, {201, {}, issued});
  EXPECT_EQ(run({"add", "*", "--role", "reader"}).status, kOk);
  EXPECT_EQ(sent(), (Json{{"role", "reader"}, {"tenant", "*"}}));
}

TEST_F(TenantCommands, DurationsHaveAUnit) {
  for (const char* bad : {"soon", "", "5", "-1d", "1.5h", "999999d", "1w"}) {
    const Outcome outcome = run({"add", "acme", std::string("--expires=") + bad});
    EXPECT_NE(outcome.status, kOk) << bad;
  }
  EXPECT_THAT(run({"add", "acme", "--expires", ""}).err, HasSubstr("--expires is ''"));
  EXPECT_THAT(run({"rotate", "FLKA", "--grace", "soon"}).err, HasSubstr("--grace is 'soon'"));
  EXPECT_TRUE(node.requests().empty());
  node.answer("POST", keys + "/FLKA/rotate", {201, {}, issued});
  for (const auto& [text, seconds] : {std::pair("90s", 90), {"15m", 900}, {"12h", 43'200}, {"0s", 0}}) {
    EXPECT_EQ(run({"rotate", "FLKA", "--grace", text}).status, kOk);
    EXPECT_EQ(sent(), (Json{{"grace_seconds", seconds}}));
  }
}

TEST_F(TenantCommands, DurationsHaveABound) {
  for (const char* most : {"3650d", "87600h", "315360000s"}) {
    node.answer("POST", keys, {201, {}, issued});
    EXPECT_EQ(run({"add", "acme", "--expires", most}).status, kOk) << most;
    EXPECT_EQ(sent()["expires_seconds"], 315'360'000) << most;
  }
  const std::size_t so_far = node.requests().size();
  for (const char* more : {"3651d", "99999d", "315360001s", "9223372036854775807d", "99999999999999999999d"}) {
    const Outcome outcome = run({"add", "acme", "--expires", more});
    EXPECT_NE(outcome.status, kOk) << more;
    EXPECT_THAT(outcome.err, HasSubstr("it must be between 0 and 315360000 seconds, which are 3650d")) << more;
  }
  EXPECT_EQ(node.requests().size(), so_far);
}

TEST_F(TenantCommands, KeysAreATable) {
  node.answer("GET", keys,
              {200,
               {},
               R"({"keys":[{"id":"FLKA","role":"deployer","tenant":"acme","created_ms":0,"expires_ms":null,"note":"CI"},
                                    {"id":"FLKB","role":"reader","tenant":null,"created_ms":0,"expires_ms":1000,"note":"","nodes":"all"}]})"});
  const std::string table = run({"keys"}).out;
  EXPECT_THAT(table, HasSubstr("FLKA  acme    deployer"));
  EXPECT_THAT(table, HasSubstr("never"));
  EXPECT_THAT(table, HasSubstr("FLKB  *       reader"));
  EXPECT_THAT(table, HasSubstr("all"));
}

TEST_F(TenantCommands, RevokeNamesTheKey) {
  node.answer("DELETE", keys + "/FLKA", {204, {}, ""});
  EXPECT_EQ(run({"revoke", "FLKA"}).status, kOk);
  EXPECT_EQ(run({"revoke", "FLKB"}).status, kNotFound);
}

TEST_F(TenantCommands, TheTokenOfTheEnvironmentIsShown) {
  const Variable token("FAIRLEAD_TOKEN", "FLKX.y");
  run({"keys"});
  EXPECT_EQ(node.requests()[0].headers["Authorization"], "Bearer FLKX.y");
}

TEST_F(TenantCommands, TheOperatorsKeyIsShownToThisMachineAlone) {
  char folder[] = "/tmp/fairlead-state-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/operator-key";
  std::ofstream(path) << "FLKO\nsecret\n";
  const Variable state("FAIRLEAD_SERVE_STATE", folder);
  run({"keys"});
  EXPECT_EQ(node.requests()[0].headers["Authorization"], "Bearer FLKO.secret");
  EXPECT_EQ(token_for("unix:/somewhere"), "") << "its owner needs none, and the key may have ended";
  EXPECT_EQ(token_for("http://192.0.2.1:9001"), "");
  EXPECT_EQ(token_for("http://127.0.0.1.example.com:9001"), "");
  for (const char* here : {"http://localhost", "localhost:1", "http://[::1]:9001", "127.0.0.1:9001"}) {
    EXPECT_EQ(token_for(here), "FLKO.secret") << here;
  }
  const Variable token("FAIRLEAD_TOKEN", "FLKX.y");
  EXPECT_EQ(token_for("unix:/somewhere"), "FLKX.y");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fairlead::cli
