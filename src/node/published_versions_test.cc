// Versions and aliases of functions without processes: what is kept, what follows the function, who may go when, and what the core is told.
#include "node/published_versions.h"

#include <gmock/gmock.h>

#include "node/testing/fake_store.h"
#include "node/testing/node_with_shares.h"
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
                                 .removed = [this](const RegisteredFunction& flow) { removed.push_back(flow.flow); },
                                 .seats_changed = [] {}});
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

// Of a GPU of 16 GiB: a version expects 4 of them.
class KeptVersions : public NodeWithShares {
 protected:
  KeptVersions() {
    add("f", {{"gpu:memory-mib", "4096"}});
    publish();
    change_code("c2");
    publish();
  }

  FunctionRecord& latest() { return functions.find("f")->record; }
  void change_code(const std::string& code) { latest().code_sha256 = code; }
  void publish() {
    control.versions().publish({.function = "f"}, [](const Result<FunctionRecord>& made) { ASSERT_TRUE(made); });
    store.tell_all();
  }
  Status alias(std::uint64_t version, bool is_new, std::map<std::uint64_t, double> weights = {}) {
    Status done = fail(Errc::kInternal, "not told");
    control.versions().put_alias(
        "f", {.name = "live", .version = version, .description = "", .weights = std::move(weights), .revision_id = ""},
        is_new, [&](const Result<FunctionAlias>& put) { done = put ? Status() : Status(fail(put.error())); });
    store.tell_all();
    return done;
  }
  Status keep(const std::string& provisioned) {
    FunctionConfig config = latest().config;
    config.tags.erase("gpu:provisioned");
    if (!provisioned.empty()) config.tags["gpu:provisioned"] = provisioned;
    Status done = fail(Errc::kInternal, "not told");
    control.update_config(
        "f", config, [&](const Result<FunctionRecord>& made) { done = made ? Status() : Status(fail(made.error())); });
    store.tell_all();
    return done;
  }
  // Instances of the version that the core keeps in seats, once all that start have started.
  std::size_t seated(std::uint64_t version) {
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (const InstanceView& one : driver.core().instances()) {
        if (one.state != InstanceState::kStarting) continue;
        ready(one.instance);
        idle(one.instance);
        is_new = true;
      }
    }
    const RegisteredFunction* const flow = functions.find_version("f", version);
    if (flow == nullptr) return 0;
    const auto all = driver.core().instances();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const InstanceView& one) { return one.flow == flow->flow && one.seated; }));
  }
};

TEST_F(KeptVersions, AreStartedWithoutACall) {
  EXPECT_EQ(functions.find_version("f", 1), nullptr);
  ASSERT_TRUE(keep("1=2"));
  EXPECT_EQ(seats("f:1"), 2u);
  EXPECT_EQ(seated(1), 2u);
  EXPECT_EQ(seats("f"), 0u) << "$LATEST has what gpu:replicas says";
  EXPECT_EQ(functions.find_version("f", 1)->record.code_sha256, "");
}

TEST_F(KeptVersions, KeepWhatRunsWhenTheirNumberChanges) {
  ASSERT_TRUE(keep("1=1"));
  const auto before = driver.core().instances();
  ASSERT_EQ(before.size(), 1u);
  ASSERT_TRUE(keep("1=3"));
  EXPECT_EQ(seated(1), 3u);
  EXPECT_EQ(driver.core().instances().front().instance, before.front().instance) << "it was not replaced";
  ASSERT_TRUE(keep(""));
  EXPECT_EQ(seats("f:1"), 0u);
  EXPECT_EQ(seated(1), 0u);
}

TEST_F(KeptVersions, MoveWithTheirAliasAndTakeTheirSeatsAlong) {
  ASSERT_TRUE(alias(1, true));
  ASSERT_TRUE(keep("1=1,live=3"));  // 16 GiB: there is no room for a fifth
  EXPECT_EQ(seats("f:1"), 4u);
  ASSERT_TRUE(alias(2, false));
  EXPECT_EQ(seats("f:1"), 1u);
  EXPECT_EQ(seats("f:2"), 3u);
  EXPECT_EQ(seated(1), 1u);
  EXPECT_EQ(seated(2), 3u);
}

TEST_F(KeptVersions, ThatDidNotChangeStayWhileAnAliasMovesOnAFullDevice) {
  ASSERT_TRUE(alias(1, true));
  ASSERT_TRUE(keep("1=1,live=3"));
  ASSERT_EQ(seated(1), 4u);
  ASSERT_TRUE(alias(2, false));
  ASSERT_EQ(seated(2), 3u);
  const FlowId first = functions.find_version("f", 1)->flow;
  const auto kept_of_first = [&] {
    std::vector<InstanceId> ids;
    for (const InstanceView& one : driver.core().instances()) {
      if (one.flow == first && one.seated) ids.push_back(one.instance);
    }
    return ids;
  };
  const auto before = kept_of_first();
  ASSERT_EQ(before.size(), 1u);
  ASSERT_TRUE(alias(1, false));  // to a lower number
  EXPECT_EQ(seated(1), 4u);
  const auto after = kept_of_first();
  EXPECT_NE(std::find(after.begin(), after.end(), before[0]), after.end()) << "it was replaced";
}

TEST_F(KeptVersions, ANumberMovesToAnotherVersionInOneStep) {
  ASSERT_TRUE(keep("2=4"));
  EXPECT_TRUE(keep("1=4"));
  EXPECT_EQ(seated(1), 4u);
  EXPECT_FALSE(keep("1=2,2=3"));
  EXPECT_EQ(seats("f:1"), 4u) << "and what is refused leaves all as it was";
  EXPECT_EQ(seated(1), 4u);
}

TEST_F(KeptVersions, ThatLackRoomLetTheirFunctionChange) {
  ASSERT_TRUE(keep("1=4"));
  latest().config.tags["gpu:provisioned"] = "1=4,2=1";  // as an alias that moved leaves it
  control.versions().function_changed("f");
  FunctionConfig config = latest().config;
  config.tags["gpu:weight"] = "2";
  Status done = fail(Errc::kInternal, "not told");
  control.update_config(
      "f", config, [&](const Result<FunctionRecord>& made) { done = made ? Status() : Status(fail(made.error())); });
  store.tell_all();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(seats("f:1"), 4u);
}

TEST_F(KeptVersions, OfAnAliasWithWeightsAreOfTheVersionThatHasWhatIsLeft) {
  ASSERT_TRUE(alias(1, true));
  ASSERT_TRUE(keep("live=2"));
  ASSERT_TRUE(alias(1, false, {{2, 0.1}}));
  EXPECT_EQ(seats("f:1"), 2u);
  EXPECT_EQ(seats("f:2"), 0u);
}

TEST_F(KeptVersions, WhatThereIsNoRoomForIsRefusedAndNothingChanges) {
  ASSERT_TRUE(keep("1=3"));
  const Status refused = keep("1=3,2=2");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("version 2: "));
  EXPECT_EQ(seats("f:1"), 3u);
  EXPECT_EQ(seats("f:2"), 0u);
  EXPECT_EQ(latest().config.tags.at("gpu:provisioned"), "1=3");
  EXPECT_TRUE(keep("1=2,2=2"));
  EXPECT_EQ(seated(2), 2u);
  ASSERT_TRUE(keep("1=1"));
  EXPECT_FALSE(keep("1=3,2=3"));
  EXPECT_EQ(seats("f:1"), 1u) << "what the first had found already is given back";
}

TEST_F(KeptVersions, WhatCannotBeWrittenKeepsWhatWasKept) {
  ASSERT_TRUE(keep("1=3"));
  store.status = fail(Errc::kIo, "disk full");
  EXPECT_FALSE(keep("1=1,2=3"));
  store.status = {};
  EXPECT_EQ(seats("f:1"), 3u);
  EXPECT_EQ(seated(1), 3u);
  EXPECT_EQ(seats("f:2"), 0u);
  EXPECT_EQ(seated(2), 0u);
}

TEST_F(KeptVersions, WhatNamesNothingYetKeepsNothingUntilItDoes) {
  ASSERT_TRUE(keep("3=1,live=1"));
  EXPECT_TRUE(driver.core().instances().empty());
  change_code("c3");
  publish();
  EXPECT_EQ(seated(3), 1u);
  ASSERT_TRUE(alias(2, true));
  EXPECT_EQ(seated(2), 1u);
}

TEST_F(KeptVersions, ADeletedOneGivesItsSeatsToWhoWaits) {
  ASSERT_TRUE(alias(1, true));
  ASSERT_TRUE(keep("2=4"));
  ASSERT_TRUE(keep("2=4"));
  latest().config.tags["gpu:provisioned"] = "2=4,live=2";  // as it was admitted on a larger GPU
  control.versions().function_changed("f");
  EXPECT_EQ(seats("f:1"), 0u);
  EXPECT_THAT(control.shares().status("f:1", FlowId()).lacking, HasSubstr("memory"));
  Status done = fail(Errc::kInternal, "not told");
  control.versions().remove_version("f", 2, [&](Status removed) { done = std::move(removed); });
  store.tell_all();
  ASSERT_TRUE(done);
  EXPECT_EQ(seats("f:1"), 2u);
  EXPECT_EQ(seated(1), 2u);
  EXPECT_EQ(control.shares().status("f:1", FlowId()).lacking, "");
}

TEST_F(KeptVersions, GoWithTheirFunction) {
  ASSERT_TRUE(keep("1=4"));
  control.remove("f", [](const Status& removed) { EXPECT_TRUE(removed); });
  store.tell_all();
  EXPECT_FALSE(control.shares().entry("f:1"));
  EXPECT_TRUE(admit("other", {{"gpu:memory-mib", "16384"}, {"gpu:replicas", "1"}})) << "the GPU is free";
}

}  // namespace
}  // namespace fairlead
