#include "node/serve_settings.h"

#include <gmock/gmock.h>

#include <set>

#include "decide/queueing/policy.h"
#include "decide/queueing/window.h"
#include "node/gpu_sharing.h"
#include "runtime/device_server/device_server.h"
#include "runtime/device_servers/device_servers.h"
#include "store/object_store.h"

namespace fairlead {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ServeSettings, EveryNameIsThereOnceAndSaysWhatItIs) {
  std::set<std::string> names;
  for (const ServeSetting& setting : serve_settings()) {
    for (const std::string& name : names_of(ServeSettings{setting})) EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(setting.help.empty() || setting.bound.empty() || setting.group.empty()) << setting.name;
    EXPECT_FALSE(setting.default_text().empty()) << setting.name;
  }
}

TEST(ServeSettings, EveryDefaultIsWithinItsOwnBound) {
  for (const ServeSetting& setting : serve_settings()) {
    ServeOptions options;
    setting.clear(options);
    for (const std::string& text : setting.write(ServeOptions())) {
      const Status read = setting.read(options, text);
      EXPECT_TRUE(read) << setting.name << " is '" << text << "' by default: " << read.error().message;
    }
    EXPECT_EQ(setting.write(options), setting.write(ServeOptions())) << setting.name;
  }
  EXPECT_TRUE(check_together(ServeOptions()));
}

TEST(ServeSettings, VariablesHaveTheNameInCapitals) {
  EXPECT_EQ(serve_variable("over-run"), "FAIRLEAD_SERVE_OVER_RUN");
}

TEST(ServeSettings, WhatIsWrongWithAStoreIsSaidWithoutItsPassword) {
  ServeOptions options;
  for (const char* url : {"postgresql://me@db:5432/fairlead?sslmode=verify-full", "postgres:///db?host=/run/postgresql",
                          "postgresql://me@/we%22ird", "postgresql://db.example/fairlead"}) {
    options.store = url;
    EXPECT_TRUE(check_together(options)) << url;
  }
  for (const char* url : {"postgresql://me:geheim@db/fairlead", "postgresql://me:ge/geheim@db/fairlead",
                          "postgresql://me:geheim@x@db/", "postgresql:///db?user=me&password=geheim"}) {
    options.store = url;
    const Status refused = check_together(options);
    ASSERT_FALSE(refused) << url;
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("has a password in it"), Not(HasSubstr("geheim"))));
  }
  options.store = "mysql://me:geheim@db";
  EXPECT_THAT(check_together(options).error().message, AllOf(HasSubstr("no URL of"), Not(HasSubstr("geheim"))));
  options.store.clear();
  options.store_password_file = "file";
  EXPECT_THAT(check_together(options).error().message, HasSubstr("needs --store"));
}

TEST(ServeSettings, TogetherTheyMustFit) {
  ServeOptions options;
  options.slots = {.most = 33, .is_given = true};
  EXPECT_THAT(check_together(options).error().message,
              AllOf(HasSubstr("--slots is 33"), HasSubstr("--pool, which is 32")));
  options.instances_per_gpu = 33;
  EXPECT_TRUE(check_together(options));
  options.task_lanes = 34;
  EXPECT_THAT(check_together(options).error().message,
              AllOf(HasSubstr("--task-lanes is 34"), HasSubstr("raise --pool")));
  ServeOptions gpu;
  gpu.software_gpu = true;
  gpu.gpu_library_dir = "/opt/gpu";
  EXPECT_THAT(check_together(gpu).error().message, AllOf(HasSubstr("--softgpu"), HasSubstr("'/opt/gpu'")));
}

// A default that stands in a library too is the same there.
TEST(ServeSettings, DefaultsAgreeWithThoseOfTheParts) {
  const ServeOptions node;
  const CoreOptions core;
  EXPECT_EQ(static_cast<std::size_t>(node.slots.most), core.slots_per_gpu);
  EXPECT_EQ(static_cast<std::size_t>(node.instances_per_gpu), core.instances_per_gpu);
  EXPECT_EQ(static_cast<std::size_t>(node.queue_limit), core.queue_limit);
  EXPECT_EQ(node.memory_policy, core.memory_policy);
  EXPECT_EQ(node.ttl_factor, PolicyOptions().ttl_factor);
  EXPECT_EQ(node.policy, policy_names().front());
  EXPECT_EQ(node.sharing, SharingOptions().mode);
  EXPECT_EQ(Bytes(static_cast<std::int64_t>(node.object_spill_bytes)), ObjectStoreOptions().spill_limit);
  EXPECT_EQ(Bytes(static_cast<std::int64_t>(node.object_quota_bytes)), ObjectStoreOptions().tenant_quota);
  EXPECT_EQ(node.task_eviction, DeviceServerOptions().cache.eviction);
  EXPECT_EQ(from_seconds(kFenceTrialSeconds), DeviceServersOptions().trial_patience);
}

// These four are the MQFQ-Sticky paper's in the libraries, as their heads say, and another in the product.
TEST(ServeSettings, WhereTheProductDiffersFromThePaper) {
  using namespace std::chrono_literals;
  EXPECT_EQ(PolicyOptions().get(kOverRun), 10s);
  EXPECT_EQ(ServeOptions().over_run_seconds, 8);
  EXPECT_EQ(CoreOptions().starts_per_gpu, 0u);
  EXPECT_GE(ServeOptions().starts_per_gpu, 1);
  EXPECT_FALSE(CoreOptions().no_cold_duplicates);
  EXPECT_FALSE(ServeOptions().cold_duplicates);
  EXPECT_EQ(CoreOptions().eviction, EvictionKind::kLru);
  EXPECT_EQ(ServeOptions().eviction, EvictionKind::kCost);
}

}  // namespace
}  // namespace fairlead
