// Pipelines around a core, without processes: slices that are taken from it and given back, and what a function has that fits nowhere. With
// processes: tests/functional/test_pipelines.py. Planted and caught: the last device taken from others; a slice that is not drained; a
// place that waits for ever; a start without a deadline, or tried for ever; a slice that serves though its health drained it; a program
// that is old until the next tick; slices that nobody uses and that do not come back.
#include "node/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "decide/pipeline/dag_testing.h"
#include "node/tenants.h"
#include "wire/kernel_task_codec.h"

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
              pipelines_->start({.instance = start->instance, .gpu = start->gpu, .function = *function});
            }
          }
          if (const auto* stop = std::get_if<StopInstance>(&action)) pipelines_->kill(stop->instance);
        },
        [] {});
    make({});
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

  void make(PipelinesOptions options, Duration patience = 0s) {
    options.patience = patience;
    pipelines_ = std::make_unique<Pipelines>(
        io_, std::move(options), driver_, functions_,
        InstanceEvents{.next = [this](InstanceId id) { ready_.push_back(id); },
                       .answered = [this](InstanceId, Answer answer) { answers_.push_back(std::move(answer)); },
                       .gone = [this](InstanceId id, const ExitInfo& exit) { gone_.emplace_back(id, exit); },
                       .is_wanted = [this](InvocationId) { return is_wanted_; }});
    pipelines_->connect({.all = [this] { return devices_; },
                         .is_empty = [this](GpuId) { return are_empty_; },
                         .end_idle_servers = [this](GpuId gpu) { ended_.push_back(gpu); },
                         .give_share = [](InstanceSpec&, GpuId, const Share&) {}});
  }
  // Until it holds; with the ticks of a monitor.
  template <typename Condition>
  void tick_until(Condition condition) {
    const Instant end = monotonic_now() + 60s;
    for (bool is_first = true; is_first || (!condition() && monotonic_now() < end); is_first = false) {
      pipelines_->tick();
      io_.restart();
      io_.run_for(5ms);
    }
    ASSERT_TRUE(condition()) << pipelines_->status()[0].state << ": " << pipelines_->status()[0].why;
  }
  // A call that fits: all of its inputs, of zeros.
  void make_call(InstanceId place) {
    const KernelTask& interface = functions_.find("chain")->kernel_task->pipeline->interface;
    KernelTaskCall call;
    for (std::uint32_t b = 0; b < interface.buffers.size(); ++b) {
      if (interface.buffers[b].role != BufferRole::kInput) continue;
      call.inputs.push_back({.buffer = b,
                             .key = {},
                             .bytes = std::string(static_cast<std::size_t>(interface.buffers[b].bytes.count()), 0)});
    }
    DeliverRequest request{.id = InvocationId(7), .deadline_epoch_ms = wall_clock_ms() + 60'000};
    request.invocation.payload = wire::encode(call);
    pipelines_->deliver(place, std::move(request));
    run();
  }
  std::string state() { return pipelines_->status().at(0).state; }
  std::string why() { return pipelines_->status().at(0).why; }
  void fault(GpuId gpu) {
    driver_.tell([&](Core& core, Instant now, Actions& out) {
      core.device(now, DeviceSample{.gpu = gpu, .failure = "GPU is lost"}, out);
    });
  }
  GpuView view(GpuId gpu) {
    for (const GpuView& one : driver_.core().gpus()) {
      if (one.gpu == gpu) return one;
    }
    return {};
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
      const bool is_held = !pipelines_->holder(view.gpu).empty();
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
  std::vector<InstanceId> ready_;
  std::vector<Device> devices_;
  bool are_empty_ = false;  // so that no process starts
  bool is_wanted_ = true;   // what was asked for
  std::vector<Answer> answers_;
  std::unique_ptr<Pipelines> pipelines_;
};

TEST_F(PipelinesTest, TakesSlicesFromTheCoreAndGivesThemBackWithItsFunction) {
  deploy("chain", gib(9));
  pipelines_->tick();
  EXPECT_GE(held(), 1u);
  EXPECT_EQ(ended_.size(), held());
  ASSERT_EQ(pipelines_->status().size(), 1u);
  EXPECT_EQ(pipelines_->status()[0].state, "waits for its slices");
  functions_.remove("chain");
  pipelines_->tick();
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(pipelines_->status().empty());
}

TEST_F(PipelinesTest, OneDeviceIsLeftToOtherFunctions) {
  functions_.add({.name = "other"}, nullptr);
  deploy("chain", gib(9));
  pipelines_->tick();
  EXPECT_GE(held(), 1u);
  EXPECT_LE(held(), 2u);
}

TEST_F(PipelinesTest, ItsPlacesAreOnItsOwnDeviceAndCallsGetTheReasonWhereItFitsNowhere) {
  const RegisteredFunction& chain = deploy("chain", gib(60));
  pipelines_->tick();
  ASSERT_FALSE(starts_.empty());
  for (const StartInstance& start : starts_) EXPECT_EQ(start.gpu, chain.pipeline_device);
  run();
  ASSERT_FALSE(ready_.empty()) << "calls wait in the pipeline, where their age is known";
  make_call(ready_[0]);
  tick_until([&] { return !answers_.empty(); });
  EXPECT_TRUE(answers_[0].is_error);
  EXPECT_EQ(answers_[0].failure.type, "Pipeline.NotPlaced");
  EXPECT_THAT(answers_[0].failure.text, HasSubstr("no plan fits"));
  EXPECT_EQ(pipelines_->status()[0].state, "no slices");
  EXPECT_EQ(held(), 0u);
}

TEST_F(PipelinesTest, ACallWhoseClientWentAwayWaitsForNoSlices) {
  make({}, 1h);
  deploy("chain", gib(60));
  pipelines_->tick();
  run();
  ASSERT_FALSE(ready_.empty());
  make_call(ready_[0]);
  ASSERT_EQ(pipelines_->status()[0].waiting, 1u);
  pipelines_->abandoned(InvocationId(8));
  run();
  EXPECT_TRUE(answers_.empty()) << "of another call";
  const std::size_t before = ready_.size();
  pipelines_->abandoned(InvocationId(7));
  run();
  EXPECT_TRUE(answers_.empty()) << "somebody else waits for it by now";
  is_wanted_ = false;
  pipelines_->abandoned(InvocationId(7));
  EXPECT_TRUE(answers_.empty()) << "events never come from inside a call";
  run();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].failure.type, "Pipeline.Abandoned");
  EXPECT_TRUE(answers_[0].is_nodes_fault) << "no repeat is given it";
  EXPECT_EQ(pipelines_->status()[0].waiting, 0u);
  EXPECT_EQ(ready_.size(), before + 1) << "its place takes the next call";
  pipelines_->abandoned(InvocationId(7));
  run();
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(PipelinesTest, ASliceThatIsGoneIsReplaced) {
  deploy("chain", gib(9));
  pipelines_->tick();
  const std::size_t before = held();
  const GpuId lost = devices_.back().id;
  const bool was_held = !pipelines_->holder(lost).empty();
  devices_.pop_back();
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.device(now, DeviceWent{lost}, out); });
  pipelines_->tick();
  EXPECT_EQ(pipelines_->status()[0].rebuilt, was_held ? 1u : 0u) << before;
  EXPECT_TRUE(pipelines_->holder(lost).empty());
  EXPECT_GE(held(), 1u);
}

// ---- starts that hang or fail

TEST_F(PipelinesTest, SlicesThatAreNotFreeInTimeAreGivenBackAndStatusSaysWhy) {
  make({.empty_limit = 0s});
  deploy("chain", gib(9));
  pipelines_->tick();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(state(), "backs off");
  EXPECT_THAT(why(), HasSubstr("were not free"));
  pipelines_->tick();
  EXPECT_EQ(held(), 0u) << "while it backs off it takes none";
}

TEST_F(PipelinesTest, OneThatNeverStartsIsBrokenHasNoSlicesAndTellsItsCallers) {
  are_empty_ = true;
  make({.servers = {.program = "/nowhere/fairlead"}, .starts = {.first_wait = 1ms, .failures = 3, .asked = 1h}}, 1h);
  deploy("chain", gib(9));
  tick_until([&] { return state() == "broken"; });
  tick_until([&] { return held() == 0; });
  EXPECT_THAT(why(), HasSubstr("3 times in a row"));
  EXPECT_THAT(why(), HasSubstr("/nowhere/fairlead"));
  for (int more = 0; more < 20; ++more) pipelines_->tick();
  EXPECT_EQ(held(), 0u);
  tick_until([&] { return !ready_.empty(); });
  pipelines_->deliver(ready_[0], {.id = InvocationId(7), .deadline_epoch_ms = wall_clock_ms() + 60'000});
  tick_until([&] { return !answers_.empty(); });
  EXPECT_EQ(answers_[0].failure.type, "Pipeline.Broken");
  EXPECT_THAT(answers_[0].failure.text, HasSubstr("/nowhere/fairlead"));
  EXPECT_EQ(held(), 0u) << "asked for too early";
}

TEST_F(PipelinesTest, OneThatIsBrokenIsTriedAgainWhenItIsDeployedAgain) {
  are_empty_ = true;
  make({.servers = {.program = "/nowhere/fairlead"}, .starts = {.first_wait = 1ms, .failures = 1, .asked = 1h}});
  deploy("chain", gib(9));
  tick_until([&] { return state() == "broken"; });
  are_empty_ = false;
  auto task = std::make_shared<BundledTask>(*functions_.find("chain")->kernel_task);
  task->pipeline = std::make_shared<PipelineProgram>(*task->pipeline);
  functions_.find("chain")->kernel_task = std::move(task);
  pipelines_->tick();
  EXPECT_EQ(state(), "waits for its slices");
  EXPECT_GE(held(), 1u);
}

// A server that was told to end has its slice's memory until it is reaped, which the loop does.
TEST_F(PipelinesTest, SlicesComeBackWhenTheServersAreReapedAndNotBefore) {
  are_empty_ = true;
  make({.servers = {.program = "/bin/sleep"}});
  deploy("chain", gib(9));
  pipelines_->tick();
  ASSERT_EQ(state(), "starts");
  functions_.remove("chain");
  pipelines_->tick();
  pipelines_->tick();
  EXPECT_TRUE(pipelines_->status().empty());
  EXPECT_GE(held(), 1u);
  tick_until([&] { return held() == 0; });
}

// As a machine that has no memory for it: the file of a ring may have 1 KiB.
TEST_F(PipelinesTest, WhereHostMemoryIsShortItSaysSoAndGivesItsSlicesBack) {
  are_empty_ = true;
  make({.starts = {.first_wait = 1h}});
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit little {
    1024, before.rlim_max
  };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  deploy("chain", gib(9));
  pipelines_->tick();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old);
  EXPECT_EQ(state(), "backs off");
  EXPECT_THAT(why(), HasSubstr("bytes of host memory between stages"));
  EXPECT_EQ(held(), 0u);
}

// ---- health

TEST_F(PipelinesTest, ASliceThatItsHealthDrainedIsLeftAndStaysDrained) {
  deploy("chain", gib(9));
  pipelines_->tick();
  const auto has = [&](const Device& one) { return !pipelines_->holder(one.id).empty(); };
  const GpuId ill = std::find_if(devices_.begin(), devices_.end(), has)->id;
  fault(ill);
  EXPECT_EQ(view(ill).state, GpuState::kDraining);
  pipelines_->tick();
  EXPECT_TRUE(pipelines_->holder(ill).empty());
  EXPECT_EQ(pipelines_->status()[0].rebuilt, 1u);
  EXPECT_FALSE(view(ill).serves);
  EXPECT_EQ(view(ill).state, GpuState::kRepairing) << "the core knows that nothing is left there";
}

// ---- functions that come, change and are not called

TEST_F(PipelinesTest, AProgramThatChangedIsSeenByTheNextCall) {
  const RegisteredFunction& chain = deploy("chain", gib(9));
  pipelines_->tick();
  const auto before = pipelines_->status()[0].why;
  auto task = std::make_shared<BundledTask>(*chain.kernel_task);
  auto program = std::make_shared<PipelineProgram>(*task->pipeline);
  for (Component& one : program->dag.components) one.name += "2";
  task->pipeline = std::move(program);
  functions_.find("chain")->kernel_task = std::move(task);
  ASSERT_FALSE(starts_.empty());
  pipelines_->deliver(starts_[0].instance, {.id = InvocationId(7), .deadline_epoch_ms = wall_clock_ms() + 60'000});
  run();
  EXPECT_NE(pipelines_->status()[0].why, before) << "without a tick";
}

TEST_F(PipelinesTest, OneThatNobodyCallsForLongGivesItsSlicesBackAndACallBringsThem) {
  make({.keep = {.cold_after = 0s}});
  deploy("chain", gib(9));
  pipelines_->tick();
  pipelines_->tick();
  EXPECT_EQ(state(), "cold");
  EXPECT_EQ(held(), 0u);
  run();
  ASSERT_FALSE(ready_.empty()) << "its places take calls";
  make_call(ready_[0]);
  EXPECT_EQ(held() > 0, true);
}

}  // namespace
}  // namespace fairlead
