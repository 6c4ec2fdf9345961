// The way of a cut through its states, with a driver that is made up. Planted and caught: a cut while something is on the slices; slices that are
// not given back after a failure; a driver that refuses asked again at once; a second cut before the first was seen; a pipeline that has not
// waited.
#include "node/slice_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using State = SliceCutter::State;

// One A100 of two 1g.10gb at 4 and 5 beside what others have, and a pipeline of 15 GiB.
class SliceCutterTest : public testing::Test {
 protected:
  SliceCutterTest() {
    driver_.connect([](const Action&) {}, [] {});
    const MigGeometry& geometry = *mig_geometry("a100-80").value();
    layout_.gpu_uuid = "GPU-1";
    for (const MigProfile& one : geometry.profiles) {
      layout_.profiles.push_back({.id = static_cast<unsigned>(layout_.profiles.size()),
                                  .name = one.name,
                                  .compute = one.type.compute,
                                  .memory_slices = one.memory_slices,
                                  .memory = one.type.memory,
                                  .starts = one.starts});
    }
    layout_.instances = {{.id = 8, .profile = 4, .start = 0, .uuids = {"MIG-8"}},
                         {.id = 9, .profile = 0, .start = 6, .uuids = {"MIG-9"}}};
    for (unsigned i = 1; i <= 2; ++i) {
      const std::string uuid = "MIG-" + std::to_string(i);
      layout_.instances.push_back({.id = i, .profile = 0, .start = static_cast<int>(3 + i), .uuids = {uuid}});
      devices_.push_back({.id = GpuId(i),
                          .name = "A100",
                          .uuid = uuid,
                          .gpu_uuid = "GPU-1",
                          .slice = Slice{.profile = "1g.10gb", .start = 3 + i, .size = 1},
                          .memory = gib(10)});
      driver_.core().add_gpu({.gpu = GpuId(i), .memory = gib(10)});
    }
    slices_.connect({.all = [this] { return devices_; },
                     .is_empty = [this](GpuId) { return are_empty_; },
                     .end_idle_servers = [](GpuId) {},
                     .give_share = [](InstanceSpec&, GpuId, const Share&) {},
                     .look_soon = [this] { ++looks_; }});
    auto program = std::make_shared<PipelineProgram>();
    program->dag = dag_of_nothing();
    program->dag.components.push_back(component(program->dag, "a", {"input"}, {40, 22, 12}, gib(15)));
    end_with(program->dag, "a");
    auto task = std::make_shared<BundledTask>();
    task->pipeline = std::move(program);
    pipeline_ = &functions_.add({.name = "chain"}, std::move(task));
    make();
  }
  void make(SliceCutterOptions options = {}) {
    options.clock = [this] { return now_; };
    options.driver = {.layouts = [this]() -> Result<std::vector<MigLayout>> {
                        ++reads_;
                        if (!refuses_.empty()) return fail(Errc::kForbidden, "{}", refuses_);
                        return std::vector<MigLayout>{layout_};
                      },
                      .cut = [this](const SliceCut& cut) -> Status {
                        cuts_.push_back(cut);
                        now_ += cut_takes_;
                        return cut_fails_ ? Status(fail(Errc::kInternal, "in use")) : Status();
                      }};
    cutter_ = std::make_unique<SliceCutter>(
        io_, options, slices_,
        SliceCutter::Ports{.look_soon = [this] { slices_.look_soon(); },
                           .still_wants =
                               [this](const std::string& name, const PipelineProgram* program) {
                                 return is_wanted_ && name == "chain" &&
                                        program == pipeline_->kernel_task->pipeline.get();
                               }});
  }
  // What the worker was given is done.
  void work() {
    const State before = cutter_->state();
    io_.restart();
    while (cutter_->state() == before && io_.run_one() > 0) {
    }
  }
  bool serves(std::uint64_t gpu) const {
    for (const GpuView& view : driver_.core().gpus()) {
      if (view.gpu == GpuId(gpu)) return view.serves;
    }
    return false;
  }
  void want(Duration waited = 2s) { cutter_->want(*pipeline_, waited); }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ = boost::asio::make_work_guard(io_);
  CoreDriver driver_{io_, CoreOptions{}, make_policy("fcfs", {}).value()};
  Functions functions_;
  RegisteredFunction* pipeline_ = nullptr;
  PipelineSlices slices_{driver_, functions_, std::make_shared<ComponentTimes>()};
  MigLayout layout_;
  std::vector<Device> devices_;
  bool are_empty_ = false, cut_fails_ = false, is_wanted_ = true;
  std::string refuses_;
  int reads_ = 0, looks_ = 0;
  std::vector<SliceCut> cuts_;
  Instant now_{};
  Duration cut_takes_{0};
  std::unique_ptr<SliceCutter> cutter_;
};

TEST_F(SliceCutterTest, SlicesAreEmptiedThenCutThenSeen) {
  want(0s);
  EXPECT_EQ(cutter_->state(), State::kIdle) << "it has not waited";
  want();
  ASSERT_EQ(cutter_->state(), State::kReads);
  work();
  ASSERT_EQ(cutter_->state(), State::kEmpties) << cutter_->status().last;
  EXPECT_FALSE(serves(1));
  EXPECT_FALSE(serves(2));
  EXPECT_THAT(cutter_->doing_for("chain"), HasSubstr("1g.10gb, 1g.10gb become 2g.20gb"));
  EXPECT_EQ(cutter_->doing_for("other"), "");
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kEmpties) << "something is on them";
  EXPECT_TRUE(cuts_.empty());
  are_empty_ = true;
  cutter_->tick();
  work();
  ASSERT_EQ(cutter_->state(), State::kSettles);
  ASSERT_EQ(cuts_.size(), 1u);
  EXPECT_EQ(cuts_[0].destroy.size(), 2u);
  EXPECT_GE(looks_, 1);
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kSettles) << "the node believes that they are there";
  EXPECT_EQ(slices_.holder(GpuId(1)), SliceCutter::kHolder);
  want();
  EXPECT_EQ(reads_, 1);
  devices_.clear();
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_EQ(slices_.holder(GpuId(1)), std::nullopt);
  EXPECT_EQ(cutter_->status().cuts, 1u);
  want();
  EXPECT_EQ(cutter_->state(), State::kIdle) << "it rests";
  now_ += 11s;
  want();
  EXPECT_EQ(cutter_->state(), State::kReads);
  work();
}

TEST_F(SliceCutterTest, ACutThatWasUndoneGivesItsSlicesBackAndRestsLonger) {
  are_empty_ = cut_fails_ = true;
  for (const Duration rest : {10s, 20s}) {
    want();
    work();
    cutter_->tick();
    work();
    ASSERT_EQ(cutter_->state(), State::kSettles);
    now_ += 500ms;
    cutter_->tick();
    EXPECT_EQ(cutter_->state(), State::kSettles);
    now_ += 600ms;
    cutter_->tick();
    EXPECT_EQ(cutter_->state(), State::kIdle);
    EXPECT_TRUE(serves(1));
    EXPECT_TRUE(serves(2));
    EXPECT_THAT(cutter_->status().last, HasSubstr("not done, in use"));
    now_ += rest - 1s;
    want();
    EXPECT_EQ(cutter_->state(), State::kIdle);
    now_ += 2s;
  }
  EXPECT_EQ(cutter_->status().failed, 2u);
}

TEST_F(SliceCutterTest, SlicesThatDoNotEmptyAreGivenBack) {
  want();
  work();
  ASSERT_EQ(cutter_->state(), State::kEmpties);
  now_ += 11s;
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_TRUE(serves(1));
  EXPECT_TRUE(cuts_.empty());
  EXPECT_THAT(cutter_->status().last, HasSubstr("had not ended after 10 s"));
}

TEST_F(SliceCutterTest, ForOneThatWaitsNoMoreNothingIsCut) {
  want();
  is_wanted_ = false;
  work();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_TRUE(serves(1));
  is_wanted_ = true;
  want();
  work();
  ASSERT_EQ(cutter_->state(), State::kEmpties);
  is_wanted_ = false;
  are_empty_ = true;
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_TRUE(serves(1));
  EXPECT_TRUE(cuts_.empty());
}

TEST_F(SliceCutterTest, ASliceThatWentMeanwhileIsNotCut) {
  want();
  work();
  ASSERT_EQ(cutter_->state(), State::kEmpties);
  are_empty_ = true;
  devices_.pop_back();
  cutter_->tick();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_TRUE(cuts_.empty());
  EXPECT_THAT(cutter_->status().last, HasSubstr("is gone"));
}

TEST_F(SliceCutterTest, OneSlowCutIsNotTheLast) {
  are_empty_ = true;
  cut_takes_ = 60s;
  for (int round = 1; round <= 2; ++round) {
    want();
    work();
    ASSERT_EQ(cutter_->state(), State::kEmpties) << round;
    cutter_->tick();
    work();
    now_ += 10s;
    cutter_->tick();
    ASSERT_EQ(cutter_->state(), State::kIdle);
    now_ += 10s;
  }
}

TEST_F(SliceCutterTest, ADriverThatRefusesIsNotAskedOverAndOver) {
  refuses_ = "Insufficient Permissions";
  want();
  work();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_EQ(cutter_->status().last, refuses_);
  for (int i = 0; i < 50; ++i) {
    want();
    now_ += 100ms;
  }
  EXPECT_EQ(reads_, 1);
}

TEST_F(SliceCutterTest, WhereNothingPaysNothingIsTaken) {
  layout_.instances[3].uuids = {};  // programs cannot use it, and nobody knows why
  want();
  work();
  EXPECT_EQ(cutter_->state(), State::kIdle);
  EXPECT_TRUE(serves(1));
  EXPECT_EQ(cutter_->status().failed, 0u);
}

}  // namespace
}  // namespace fairlead
