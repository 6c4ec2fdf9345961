// Pipelines around a core, without processes: slices that are taken from it and given back, and what a function has that fits nowhere. With
// processes: tests/functional/test_pipelines.py. Planted and caught: the last device taken from others; a slice that is not drained; a
// place that waits for ever.
#include "node/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"
#include "node/tenants.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class PipelinesTest : public testing::Test {
 protected:
  PipelinesTest() {
    driver_.connect(
        [this](const Action& action) {
          if (const auto* start = std::get_if<StartInstance>(&action)) {
            starts_.push_back(*start);
            if (const RegisteredFunction* function = functions_.find(start->flow); function->is_pipeline()) {
              pipelines_.start({.instance = start->instance, .gpu = start->gpu, .function = *function});
            }
          }
          if (const auto* stop = std::get_if<StopInstance>(&action)) pipelines_.kill(stop->instance);
        },
        [] {});
    pipelines_.connect({.all = [this] { return devices_; },
                        .is_empty = [](GpuId) { return false; },  // so that no process starts
                        .end_idle_servers = [this](GpuId gpu) { ended_.push_back(gpu); }},
                       [](InstanceSpec&, GpuId, const Share&) {});
    for (const auto& [profile, memory] :
         {std::pair("4g.40gb", 40), std::pair("2g.20gb", 20), std::pair("1g.10gb", 10)}) {
      Device device{.id = GpuId(devices_.size() + 1),
                    .name = "A100",
                    .uuid = "MIG-",
                    .gpu_uuid = "GPU-1",
                    .slice = Slice{.profile = profile, .start = {}, .size = 1},
                    .memory = gib(memory)};
      device.uuid += std::to_string(device.id.value());
      driver_.core().add_gpu({.gpu = device.id, .memory = device.memory});
      devices_.push_back(device);
    }
  }

  const RegisteredFunction& deploy(const std::string& name, Bytes memory) {
    auto program = std::make_shared<PipelineProgram>();
    program->dag = three_in_a_row();
    for (Component& one : program->dag.components) one.weights = one.peak = memory;
    auto task = std::make_shared<BundledTask>();
    task->pipeline = std::move(program);
    const RegisteredFunction& function = functions_.add({.name = name}, std::move(task));
    driver_.core().add_function(flow_spec(function, tenants_));
    return function;
  }
  std::size_t held() const {
    std::size_t count = 0;
    for (const GpuView& view : driver_.core().gpus()) {
      const bool is_held = !pipelines_.holder(view.gpu).empty();
      count += is_held ? 1 : 0;
      if (!is_pipeline_device(view.gpu)) {
        EXPECT_EQ(view.serves, !is_held) << "GPU " << view.gpu.value();
      }
    }
    return count;
  }
  void run() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  CoreOptions core_options_{.starts_per_gpu = 8};
  CoreDriver driver_{io_, core_options_, make_policy("fcfs", {}).value()};
  Tenants tenants_{{}};
  Functions functions_;
  std::vector<StartInstance> starts_;
  std::vector<std::pair<InstanceId, ExitInfo>> gone_;
  std::vector<GpuId> ended_;
  std::vector<Device> devices_;
  Pipelines pipelines_{io_,
                       {.servers = {}, .environment = {}, .patience = 0s},
                       driver_,
                       functions_,
                       {.next = [](InstanceId) {},
                        .answered = [](InstanceId, Answer) {},
                        .gone = [this](InstanceId id, const ExitInfo& exit) { gone_.emplace_back(id, exit); }}};
};

TEST_F(PipelinesTest, TakesSlicesFromTheCoreAndGivesThemBackWithItsFunction) {
  deploy("chain", gib(9));
  pipelines_.tick();
  EXPECT_GE(held(), 1u);
  EXPECT_EQ(ended_.size(), held());
  ASSERT_EQ(pipelines_.status().size(), 1u);
  EXPECT_EQ(pipelines_.status()[0].state, "waits for its slices");
  functions_.remove("chain");
  pipelines_.tick();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(pipelines_.status().empty());
}

TEST_F(PipelinesTest, OneDeviceIsLeftToOtherFunctions) {
  functions_.add({.name = "other"}, nullptr);
  deploy("chain", gib(9));
  pipelines_.tick();
  EXPECT_GE(held(), 1u);
  EXPECT_LE(held(), 2u);
}

TEST_F(PipelinesTest, ItsPlacesAreOnItsOwnDeviceAndEndWithTheReasonWhereItFitsNowhere) {
  const RegisteredFunction& chain = deploy("chain", gib(60));
  pipelines_.tick();
  ASSERT_FALSE(starts_.empty());
  for (const StartInstance& start : starts_) EXPECT_EQ(start.gpu, chain.pipeline_device);
  pipelines_.tick();
  run();
  ASSERT_FALSE(gone_.empty());
  EXPECT_THAT(gone_[0].second.reason, HasSubstr("no plan fits"));
  EXPECT_EQ(pipelines_.status()[0].state, "no slices");
  EXPECT_EQ(held(), 0u);
}

TEST_F(PipelinesTest, ASliceThatIsGoneIsReplaced) {
  deploy("chain", gib(9));
  pipelines_.tick();
  const std::size_t before = held();
  const GpuId lost = devices_.back().id;
  const bool was_held = !pipelines_.holder(lost).empty();
  devices_.pop_back();
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.device(now, DeviceWent{lost}, out); });
  pipelines_.tick();
  EXPECT_EQ(pipelines_.status()[0].rebuilt, was_held ? 1u : 0u) << before;
  EXPECT_TRUE(pipelines_.holder(lost).empty());
  EXPECT_GE(held(), 1u);
}

}  // namespace
}  // namespace fairlead
