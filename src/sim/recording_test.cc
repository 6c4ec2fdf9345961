#include "sim/recording.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "decide/queueing/window.h"
#include "sim/experiment.h"

namespace fairlead::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kEpochUs = 1'763'800'000'000'000;

InvocationRecord record(const char* function, int at_ms, int run_ms) {
  InvocationRecord record{.at_us = kEpochUs + at_ms * 1000, .outcome = OutcomeKind::kSuccess};
  record.set_function(function);
  record.start = StartKind::kDeviceWarm;
  record.gpu = GpuId(1);
  record.run = milliseconds(run_ms);
  record.gpu_time = record.run / 2;
  return record;
}

InvocationRecord cold(const char* function, int at_ms, int start_ms, int run_ms) {
  InvocationRecord cold = record(function, at_ms, run_ms);
  cold.start = StartKind::kCold;
  cold.instance_start = milliseconds(start_ms);
  return cold;
}

TEST(Recording, MeasuresWhatTheSimulatorAsks) {
  const auto made = make_recording({record("f", 1200, 20), cold("f", 0, 300, 25), record("f", 1000, 20)}, {});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(1u, made->scenario.functions.size());
  const FunctionModel& f = made->scenario.functions[0];
  EXPECT_EQ(milliseconds(20), f.warm);
  EXPECT_EQ(milliseconds(305), f.cold_start);  // with what its first run took longer
  EXPECT_NEAR(0.5, f.gpu_share, 1e-6);
  EXPECT_EQ(0, made->scenario.noise);
  EXPECT_EQ(milliseconds(2200), made->scenario.duration);
  EXPECT_EQ("at_s,function,service_s\n0.000000,f,\n1.000000,f,0.020000\n1.200000,f,0.020000\n", trace_csv(*made));
  EXPECT_THAT(made->notes, ElementsAre());
}

TEST(Recording, CompanyIsTakenOutOfRunTimes) {
  std::vector<InvocationRecord> records = {cold("f", 0, 10, 20)};
  for (int i = 1; i <= 20; ++i) records.push_back(record("f", i * 100, i % 2 == 0 ? 40 : 20));
  for (int i = 2; i <= 20; i += 2) records.push_back(record("g", i * 100, 40));
  const auto made = make_recording(records, {});
  ASSERT_TRUE(made);
  ASSERT_EQ(2u, made->scenario.device.slowdown.size());
  EXPECT_NEAR(2, made->scenario.device.slowdown[1], 0.05);
  EXPECT_NEAR(0.020, to_seconds(made->scenario.functions[0].warm), 0.0005);
  EXPECT_THAT(made->notes, ElementsAre(HasSubstr("no cold start of g was seen")));
}

// It waited 80 ms for its memory, while another ran alone.
TEST(Recording, WaitingForMemoryIsNoCompanyAndNoWork) {
  InvocationRecord waited = record("g", 1000, 100);
  waited.start = StartKind::kHostWarm;
  waited.gpu_time = milliseconds(20);
  std::vector<InvocationRecord> records = {waited};
  for (int i = 0; i < 20; ++i) records.push_back(record("f", i * 100, 40));
  const auto made = make_recording(records, {});
  ASSERT_TRUE(made);
  const FunctionModel& g = made->scenario.functions[1];
  EXPECT_EQ("g", g.name);
  EXPECT_EQ(milliseconds(20), g.warm);
  EXPECT_THAT(made->scenario.device.slowdown, ElementsAre(1));
  EXPECT_THAT(trace_csv(*made), HasSubstr("1.000000,g,0.020000\n"));
}

TEST(Recording, AFewStartsThatWaitedChangeNothing) {
  std::vector<InvocationRecord> records = {record("f", 9000, 20)};
  for (int i = 0; i < 9; ++i) records.push_back(cold("f", i * 1000, i < 2 ? 900 : 300 + i, 20));
  const auto made = make_recording(records, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(milliseconds(306), made->scenario.functions[0].cold_start);
  EXPECT_GT(made->scenario.noise, 0);
  EXPECT_LT(made->scenario.noise, 0.02);
}

TEST(Recording, TheRefusedArriveAgainAndTheCancelledDoNot) {
  InvocationRecord refused = record("f", 50, 0), cancelled = record("f", 60, 0);
  refused.outcome.reset();
  refused.start.reset();
  cancelled.outcome = OutcomeKind::kCancelled;
  cancelled.start.reset();
  const auto made = make_recording({cold("f", 0, 10, 20), refused, cancelled}, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(2u, made->arrivals.size());
  EXPECT_EQ(1u, made->left_out);
  EXPECT_EQ(Errc::kNotFound, make_recording({cancelled}, {}).error().code);
}

TEST(Recording, ItsFilesRunAsTheyAre) {
  Scenario node;
  node.name = "node";
  node.policy = "mqfq-warm";
  node.policy_options.set(kOverRun, milliseconds(250));
  node.policy_options.by_tenant = true;
  node.core.instances_per_gpu = 7;
  node.core.slots_per_gpu = 2;
  node.core.starts_per_gpu = 3;
  node.core.eviction = EvictionKind::kCost;
  node.core.no_cold_duplicates = true;
  node.core.queue_limit = 55;
  node.core.queue_limit_per_flow = 44;
  node.core.memory_policy = MemoryPolicy::kPrefetch;
  node.device.memory = mib(1536);
  node.device.region = mib(20);
  node.tenants["vision"] = {.weight = 2, .max_concurrency = 3};
  node.functions = {{.name = "f", .memory = mib(300), .weight = 2, .tenant = "vision", .objective = milliseconds(250)}};
  const auto made = make_recording({cold("f", 0, 300, 25), record("f", 1000, 20), record("g", 1500, 30)}, node);
  ASSERT_TRUE(made) << made.error().message;

  const auto folder = std::filesystem::temp_directory_path() / "fairlead-recording-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "trace.csv") << trace_csv(*made);
  std::ofstream(folder / "scenario.toml") << scenario_toml(made->scenario, "trace.csv");
  auto read = read_scenario((folder / "scenario.toml").string(), {});
  ASSERT_TRUE(read) << read.error().message;
  const auto all = variants(*read, {}, "", {});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(all) << all.error().message;
  const Scenario& scenario = all->front().scenario;
  EXPECT_EQ("mqfq-warm", scenario.policy);
  EXPECT_EQ(milliseconds(250), scenario.policy_options.get(kOverRun));
  EXPECT_TRUE(scenario.policy_options.by_tenant);
  EXPECT_EQ(7u, scenario.core.instances_per_gpu);
  EXPECT_EQ(3u, scenario.core.starts_per_gpu);
  EXPECT_EQ(EvictionKind::kCost, scenario.core.eviction);
  EXPECT_TRUE(scenario.core.no_cold_duplicates);
  EXPECT_EQ(55u, scenario.core.queue_limit);
  EXPECT_EQ(44u, scenario.core.queue_limit_per_flow);
  EXPECT_EQ(MemoryPolicy::kPrefetch, scenario.core.memory_policy);
  EXPECT_EQ(mib(1536), scenario.device.memory);
  EXPECT_EQ(1, scenario.device.start_slowdown);
  EXPECT_EQ(mib(20), scenario.device.region);
  EXPECT_EQ(3u, scenario.tenants.at("vision").max_concurrency);
  ASSERT_EQ(2u, scenario.functions.size());
  EXPECT_EQ(mib(300), scenario.functions[0].memory);
  EXPECT_EQ(2, scenario.functions[0].weight);
  EXPECT_EQ("vision", scenario.functions[0].tenant);
  EXPECT_EQ(milliseconds(250), scenario.functions[0].objective);
  EXPECT_EQ(milliseconds(305), scenario.functions[0].cold_start);
  EXPECT_EQ("g", scenario.functions[1].name);

  const auto outcome = run_all(*all, 1, nullptr).front().total;
  EXPECT_EQ(3u, outcome.arrived());
  EXPECT_EQ(1u, outcome.functions[0].cold);
  EXPECT_EQ(1u, outcome.functions[0].device_warm);
}

}  // namespace
}  // namespace fairlead::sim
