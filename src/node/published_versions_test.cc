// Versions and aliases of functions without processes: what is kept, what follows the function, who may go when, and what the core is told.
#include "node/published_versions.h"

#include <gmock/gmock.h>

#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

class PublishedVersionsTest : public NodeWithoutProcesses {
 protected:
  PublishedVersionsTest() { add_function("f"); }

  FunctionRecord& latest() { return functions.find("f")->record; }
  Result<FunctionRecord> publish(PublishRequest request = {.function = "f"}) {
    std::optional<Result<FunctionRecord>> made;
    versions->publish(std::move(request), [&](Result<FunctionRecord> record) { made = std::move(record); });
    store.tell_all();
    return *made;
  }
  std::uint64_t publish_code(const std::string& code) {
    latest().code_sha256 = code;
    return publish().value().version;
  }
  Result<FunctionAlias> alias(FunctionAlias wanted, bool is_new = true) {
    std::optional<Result<FunctionAlias>> made;
    versions->put_alias("f", std::move(wanted), is_new, [&](Result<FunctionAlias> put) { made = std::move(put); });
    store.tell_all();
    return *made;
  }
  Status remove(std::uint64_t version) {
    std::optional<Status> done;
    versions->remove_version("f", version, [&](Status status) { done = std::move(status); });
    store.tell_all();
    return *done;
  }
  Reply call_version(std::uint64_t version) {
    auto reply = std::make_shared<std::optional<Result<Outcome>>>();
    InvokeRequest request;
    request.invocation.function = "f";
    request.invocation.version = version;
    cancel = invocations.invoke(*versions->flow_of("f", version), std::move(request),
                                [reply](Result<Outcome> made) { *reply = std::move(made); });
    return reply;
  }

  FakeStore store;
  Shares shares;
  std::vector<FlowId> removed;
  std::unique_ptr<PublishedVersions> versions = make();
  std::unique_ptr<PublishedVersions> make() {
    return std::make_unique<PublishedVersions>(
        PublishedVersions::Ports{.store = store,
                                 .functions = functions,
                                 .tenants = tenants,
                                 .request_ids = request_ids,
                                 .driver = driver,
                                 .shares = shares,
                                 .removed = [this](const RegisteredFunction& flow) { removed.push_back(flow.flow); }});
  }
};

TEST_F(PublishedVersionsTest, AVersionStaysWhenItsFunctionChanges) {
  latest().config.environment = {{"MODE", "one"}};
  ASSERT_EQ(publish_code("c1"), 1u);
  latest().config.environment = {{"MODE", "two"}};
  ASSERT_EQ(publish_code("c2"), 2u);
  EXPECT_EQ(versions->find("f", "1")->code_sha256, "c1");
  EXPECT_EQ(versions->find("f", "1")->config.environment.at("MODE"), "one");
  EXPECT_EQ(versions->find("f", "2")->config.environment.at("MODE"), "two");
  EXPECT_EQ(versions->flow_of("f", 1)->record.config.environment.at("MODE"), "one");
  EXPECT_EQ(versions->flow_of("f", 3), nullptr);
  EXPECT_EQ(versions->flow_of("nobody", 1), nullptr);
}

TEST_F(PublishedVersionsTest, TheSameTwiceIsOneVersion) {
  ASSERT_EQ(publish_code("c1"), 1u);
  EXPECT_EQ(publish({.function = "f", .description = "other words"}).value().version, 1u);
  latest().config.tags["team"] = "vision";  // the function's
  EXPECT_EQ(publish().value().version, 1u);
  latest().config.tags["gpu:memory-mib"] = "64";  // the version's
  EXPECT_EQ(publish().value().version, 2u);
}

TEST_F(PublishedVersionsTest, WhatCannotBeWrittenIsNotThere) {
  store.status = fail(Errc::kIo, "disk full");
  EXPECT_FALSE(publish());
  store.status = {};
  EXPECT_FALSE(versions->find("f", "1"));
  EXPECT_EQ(publish().value().version, 1u);
  store.status = fail(Errc::kIo, "disk full");
  EXPECT_FALSE(alias({.name = "live", .version = 1}));
  EXPECT_FALSE(remove(1));
  store.status = {};
  EXPECT_FALSE(versions->alias("f", "live"));
  EXPECT_TRUE(versions->find("f", "1"));
  EXPECT_TRUE(remove(1)) << "nothing is held by what failed";
}

TEST_F(PublishedVersionsTest, WhileOneIsWrittenTheFunctionIsNotChanged) {
  versions->publish({.function = "f"}, [](Result<FunctionRecord>) {});
  std::optional<Status> second;
  versions->publish({.function = "f"},
                    [&](Result<FunctionRecord> record) { second = record ? Status() : Status(fail(record.error())); });
  ASSERT_TRUE(second && !*second);
  EXPECT_EQ(second->error().code, Errc::kConflict);
  EXPECT_FALSE(functions.begin_change("f"));
  store.tell_all();
  EXPECT_TRUE(functions.begin_change("f"));
}

TEST_F(PublishedVersionsTest, ThereAreSoManyAndAllAreKept) {
  for (std::size_t i = 1; i <= kMaxVersions; ++i) ASSERT_EQ(publish_code("c" + std::to_string(i)), i);
  latest().code_sha256 = "more";
  const auto more = publish();
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("has 100 versions, and may have at most 100"));
  ASSERT_TRUE(remove(1));
  EXPECT_EQ(publish().value().version, kMaxVersions + 1);
  for (std::size_t i = 0; i < kMaxAliases; ++i) ASSERT_TRUE(alias({.name = "a" + std::to_string(i), .version = 2}));
  EXPECT_FALSE(alias({.name = "more", .version = 2}));
  EXPECT_TRUE(alias({.name = "a7", .version = 3}, /*is_new=*/false));
}

TEST_F(PublishedVersionsTest, AnAliasKeepsItsVersions) {
  publish_code("c1");
  publish_code("c2");
  publish_code("c3");
  ASSERT_TRUE(alias({.name = "live", .version = 1, .description = "", .weights = {{2, 0.5}}, .revision_id = ""}));
  for (const std::uint64_t version : {1, 2}) {
    const Status kept = remove(version);
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().code, Errc::kConflict);
    EXPECT_THAT(kept.error().message, HasSubstr("live"));
  }
  EXPECT_TRUE(remove(3));
  EXPECT_EQ(alias({.name = "x", .version = 3}).error().code, Errc::kNotFound);
  EXPECT_EQ(
      alias({.name = "x", .version = 1, .description = "", .weights = {{3, 0.5}}, .revision_id = ""}).error().code,
      Errc::kNotFound);
  EXPECT_EQ(alias({.name = "live", .version = 1}).error().code, Errc::kAlreadyExists);
  EXPECT_EQ(alias({.name = "other", .version = 1}, /*is_new=*/false).error().code, Errc::kNotFound);
}

TEST_F(PublishedVersionsTest, AQualifierLeadsToAVersion) {
  publish_code("c1");
  publish_code("c2");
  ASSERT_TRUE(alias({.name = "live", .version = 1, .description = "", .weights = {{2, 1.0}}, .revision_id = ""}));
  EXPECT_EQ(versions->choose("f", "", "r").value(), 0u);
  EXPECT_EQ(versions->choose("f", "$LATEST", "r").value(), 0u);
  EXPECT_EQ(versions->choose("f", "1", "r").value(), 1u);
  EXPECT_EQ(versions->choose("f", "live", "r").value(), 2u);
  EXPECT_EQ(versions->find("f", "live")->version, 1u);
  for (const char* none : {"3", "nobody", "0"}) {
    EXPECT_EQ(versions->choose("f", none, "r").error().code, Errc::kNotFound) << none;
    EXPECT_EQ(versions->find("f", none).error().code, Errc::kNotFound) << none;
  }
}

TEST_F(PublishedVersionsTest, WhatIsTheFunctionsFollowsIt) {
  latest().config.tags = {
      {"gpu:weight", "2"}, {"gpu:tenant", "vision"}, {"gpu:memory-mib", "64"}, {"gpu:quota-request", "50"}};
  latest().config.environment = {{"GPU_WEIGHT", "100"}};
  publish_code("c1");
  const auto in_force = [&] { return gpu_settings(versions->flow_of("f", 1)->record.config).value(); };
  EXPECT_EQ(in_force().weight, 2) << "no variable gives a version another weight";
  EXPECT_EQ(in_force().tenant, "vision");
  EXPECT_EQ(in_force().share.memory, mib(64));
  EXPECT_EQ(in_force().share.request_percent, 0) << "a version has no seats";
  latest().config.tags["gpu:weight"] = "0.5";
  latest().config.tags["gpu:memory-mib"] = "128";
  latest().reserved_concurrency = 3;
  versions->function_changed("f");
  EXPECT_EQ(in_force().weight, 0.5);
  EXPECT_EQ(in_force().share.memory, mib(64));
  EXPECT_EQ(versions->flow_of("f", 1)->record.reserved_concurrency, std::optional<int>(3));
}

TEST_F(PublishedVersionsTest, AllFlowsOfAFunctionShareItsReservedConcurrency) {
  publish_code("c1");
  latest().reserved_concurrency = 1;
  driver.tell(
      [&](Core& core, Instant now, Actions& out) { core.set_max_concurrency(now, functions.find("f")->flow, 1, out); });
  const Reply first = invoke("f");
  ready(InstanceId(1));
  const Reply second = call_version(1);
  EXPECT_EQ(runner.delivered.size(), 1u);
  EXPECT_EQ(driver.core().flow(versions->flow_of("f", 1)->flow).queued, 1u) << "though an instance could start";
  answer("[1]");
  idle(InstanceId(1));
  EXPECT_EQ(driver.core().flow(versions->flow_of("f", 1)->flow).queued, 0u);
  ready(InstanceId(2));
  answer("[2]");
  EXPECT_EQ(second->value()->payload, "[2]");
  EXPECT_EQ(second->value()->version, 1u);
}

TEST_F(PublishedVersionsTest, ADeletedVersionAnswersWhatRunsAndEndsWhatWaits) {
  publish_code("c1");
  const Reply runs = call_version(1);
  ready(InstanceId(1));
  driver.tell([&](Core& core, Instant now, Actions& out) {
    core.set_max_concurrency(now, versions->flow_of("f", 1)->flow, 1, out);
  });
  const Reply waits = call_version(1);
  const FlowId flow = versions->flow_of("f", 1)->flow;
  ASSERT_TRUE(remove(1));
  EXPECT_EQ(removed, std::vector<FlowId>{flow});
  ASSERT_TRUE(*waits);
  EXPECT_EQ((*waits)->error().code, Errc::kNotFound);
  answer("[1]");
  EXPECT_EQ(runs->value()->payload, "[1]");
  EXPECT_EQ(versions->flow_of("f", 1), nullptr);
}

TEST_F(PublishedVersionsTest, WithTheFunctionGoAllOfThem) {
  publish_code("c1");
  publish_code("c2");
  ASSERT_TRUE(alias({.name = "live", .version = 1}));
  versions->flow_of("f", 1);
  versions->function_removed("f");
  EXPECT_EQ(removed.size(), 1u);
  EXPECT_TRUE(functions.versions().empty());
  EXPECT_TRUE(versions->versions("f")->empty());
  EXPECT_TRUE(versions->aliases("f")->empty());
  EXPECT_EQ(publish().value().version, 1u) << "the next function of that name begins anew";
}

TEST_F(PublishedVersionsTest, AfterARestartAllIsAsItWas) {
  publish_code("c1");
  publish_code("c2");
  ASSERT_TRUE(alias({.name = "live", .version = 1, .description = "d", .weights = {{2, 0.5}}, .revision_id = ""}));
  const FunctionAlias before = versions->alias("f", "live").value();
  versions = make();
  versions->recover(store.published, [](const FunctionRecord&) { return nullptr; });
  EXPECT_EQ(versions->alias("f", "live").value(), before);
  EXPECT_EQ(versions->find("f", "1")->code_sha256, "c1");
  latest().code_sha256 = "c3";
  EXPECT_EQ(publish().value().version, 3u);
}

}  // namespace
}  // namespace fairlead
