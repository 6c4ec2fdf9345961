// Secrets through OpenFaaS's routes: they are the node's own, and no value comes out.
#include "edge/openfaas/system_secrets.h"

#include "edge/openfaas/openfaas_error.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;

class SystemSecrets : public EdgeTest {
 protected:
  SystemSecrets() {
    Edge edge{.name = "openfaas", .prefixes = {"/system"}, .errors = errors()};
    add_secret_routes(
        edge.routes,
        [this](const auto& tenant, Bytes bytes, auto job) { return node_.run_elsewhere(tenant, bytes, job); }, *vault_,
        [] { return std::int64_t{1}; });
    serve(std::move(edge));
  }
  unsigned change(const char* method, const char* body) {
    return call(method, "/system/secrets", body).response->status;
  }

  std::unique_ptr<identity::SecretVault> vault_ =
      identity::SecretVault::open(node_.object_folder.path(), {.made = node_.object_folder / "key"}).value();
};

TEST_F(SystemSecrets, WhatIsMadeIsListedReplacedAndRemoved) {
  EXPECT_EQ(json::array(), call("GET", "/system/secrets").json());
  EXPECT_EQ(404u, change("PUT", R"({"name":"s1","value":"v"})"));
  EXPECT_EQ(201u, change("POST", R"({"name":"s1","value":"v"})"));
  EXPECT_EQ("v", vault_->reveal("default", "s1"));
  EXPECT_EQ(json({{{"name", "s1"}, {"namespace", "fairlead"}}}), call("GET", "/system/secrets").json());
  EXPECT_EQ(409u, change("POST", R"({"name":"s1","value":"other"})"));
  EXPECT_EQ(200u, change("PUT", R"({"name":"s1","value":"w"})"));
  EXPECT_EQ("w", vault_->reveal("default", "s1"));
  EXPECT_EQ(202u, change("DELETE", R"({"name":"s1"})"));
  EXPECT_EQ(404u, change("DELETE", R"({"name":"s1"})"));
}

TEST_F(SystemSecrets, NamespacesHaveTheirOwn) {
  EXPECT_EQ(201u, change("POST", R"({"name":"s1","namespace":"acme","rawValue":"AQL/"})"));
  EXPECT_EQ("\x01\x02\xff", vault_->reveal("acme", "s1"));
  EXPECT_EQ(400u, change("POST", R"({"name":"s2","rawValue":"AAEC"})")) << "a variable has no NUL";
  EXPECT_EQ(json::array(), call("GET", "/system/secrets").json());
}

TEST_F(SystemSecrets, WhatIsHostileIsRefused) {
  for (const char* body :
       {"{}", R"({"name":"../x","value":"v"})", R"({"name":"s","value":""})", R"({"name":"s","rawValue":"%"})",
        R"({"name":"s","value":7})", R"({"name":"s","value":"v","namespace":"a/b"})", "nope"}) {
    EXPECT_EQ(400u, change("POST", body)) << body;
  }
  EXPECT_EQ(413u, call("POST", "/system/secrets", std::string((1 << 20) + 1, ' ')).response->status);
  EXPECT_EQ(400u, change("POST", (R"({"name":"s","value":")" + std::string(20'000, 'x') + "\"}").c_str()));
  EXPECT_TRUE(vault_->list({}).empty());
}

}  // namespace
}  // namespace fairlead::openfaas
