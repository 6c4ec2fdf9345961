// Pipelines of real device servers on the software GPU: y = 2 x + 1, then 3 y + 1, then 5 z + 1, in every partition; servers that are
// killed at the worst moment. Planted and caught: a stage that is not started again; a retry that reads what a dead writer left; a restart
// after abandon(); an output that is dropped before its reader has ended.
#include "runtime/pipeline/pipeline_instance.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/clock.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint32_t kElements = 256;

std::string floats(float first) {
  std::vector<float> values(kElements);
  for (std::uint32_t i = 0; i < kElements; ++i) values[i] = first + static_cast<float>(i);
  return {reinterpret_cast<const char*>(values.data()), kElements * 4};
}
std::string expected(float first) {
  std::vector<float> values(kElements);
  for (std::uint32_t i = 0; i < kElements; ++i) values[i] = 30 * (first + static_cast<float>(i)) + 21;
  return {reinterpret_cast<const char*>(values.data()), kElements * 4};
}

class PipelineInstanceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fairlead-pipeline-XXXXXX").string();
    FL_CHECK(::mkdtemp(pattern.data()) != nullptr);
    home_ = pattern;
    fs::copy_file(TEST_KERNELS, home_ + "/kernels.ptx");
    std::ofstream(home_ + "/ones") << [] {
      const std::vector<float> ones(kElements, 1.0F);
      return std::string(reinterpret_cast<const char*>(ones.data()), kElements * 4);
    }();
    make_program();
  }
  void TearDown() override {
    if (instance_) end();
    fs::remove_all(home_);
  }
  void end() {
    instance_->abandon("the test ends");
    run_until([&] { return !instance_->has_processes() && instance_->is_empty(); });
    instance_.reset();
  }

  void make_program() {
    const TensorPort port{.name = "y", .type = ElementType::kF32, .shape = {kElements}};
    Dag& dag = program_->dag;
    dag.name = "chain";
    dag.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {kElements}}};
    for (const float k : {2.0F, 3.0F, 5.0F}) {
      const std::size_t at = dag.components.size();
      Component one{.name = std::string(1, static_cast<char>('a' + at)), .task = "t"};
      one.inputs = {{.name = "x", .sources = {at == 0 ? TensorSource{} : TensorSource{at - 1, 0}}}};
      one.outputs = {port};
      one.times = {{.slice = "1g", .mean = 10ms}};
      dag.components.push_back(one);
      program_->tasks.push_back(task(k));
    }
    dag.outputs = {{.name = "out", .from = {2, 0}}};
  }

  ComponentTask task(float k) const {
    const auto buffer = [](const char* name, BufferRole role, const char* constant = "") {
      BufferSpec spec{
          .name = name, .bytes = Bytes(kElements * 4), .role = role, .type = ElementType::kF32, .shape = {}};
      spec.constant = constant;
      return spec;
    };
    const auto launch = [](const char* kernel, std::vector<KernelArgument> arguments) {
      return KernelLaunch{.module = 0, .kernel = kernel, .block = {kElements, 1, 1}, .arguments = std::move(arguments)};
    };
    auto spec = std::make_shared<KernelTaskSpec>();
    spec->task.modules = {{.name = "kernels.ptx", .sha256 = std::string(32, 'k')}};
    spec->task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant, "ones"),
                          buffer("y", BufferRole::kOutput)};
    spec->task.kernels = {launch("scale", {BufferArgument{.buffer = 0}, BufferArgument{.buffer = 2},
                                           LiteralArgument{.bytes = std::string(reinterpret_cast<const char*>(&k), 4),
                                                           .relocations = {}}}),
                          launch("accumulate", {BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2}})};
    spec->module_files = {home_ + "/kernels.ptx"};
    return {.spec = spec, .constant_files = {{"ones", home_ + "/ones"}}, .inputs = {0}, .outputs = {2}};
  }

  // `b` becomes a Python function of these lines, y = 3 x + 1 as the task was. Nothing but Python itself is used.
  void make_b_a_program(const std::string& lines = "return array.array('f', [3 * value + 1 for value in x.tolist()])") {
    Component& b = program_->dag.components[1];
    b.task.clear();
    b.program = "steps.py:b";
    b.needs_gpu = false;
    b.times.clear();
    program_->tasks[1] = {.spec = {}, .constant_files = {}, .inputs = {0}, .outputs = {1}};
    write_steps(lines);
    std::string components;
    for (const std::string name : {"a", "b", "c"}) {
      components += fmt::format(
          R"({}{{"name": "{}", {}, "inputs": {{"x": "{}"}}, "outputs": [{{"name": "y", "type": "f32", "shape": [256]}}]}})",
          name == "a" ? "" : ", ", name, name == "b" ? R"("program": "steps.py:b")" : R"("task": "t")",
          name == "a"   ? "input.x"
          : name == "b" ? "a.y"
                        : "b.y");
    }
    std::ofstream(home_ + "/pipeline.json")
        << R"({"version": 1, "inputs": [{"name": "x", "type": "f32", "shape": [256]}], "outputs": [{"name": "out", "from": "c.y"}], "components": [)"
        << components << "]}";
  }
  void write_steps(const std::string& lines) const {
    std::ofstream(home_ + "/steps.py") << "import array, os\n\ndef b(x):\n    " << lines << "\n";
  }

  void start(std::vector<std::vector<std::size_t>> stages, unsigned retries = 2) {
    PipelineInstance::Options options{.program = program_, .stages = {}};
    options.launch_program = [this](std::size_t component) -> Result<ProgramLaunch> {
      const std::string& name = program_->dag.components[component].name;
      return ProgramLaunch{.words = {"/usr/bin/python3", "-s", "-m", "fairlead.pipeline", "stage", home_, name},
                           .environment = {{"PYTHONPATH", PYTHON_PACKAGE}, {"PYTHONDONTWRITEBYTECODE", "1"}},
                           .held = {},
                           .end_signal = SIGKILL};
    };
    options.process.program = program_path_;
    options.process.arguments = arguments_;
    for (std::vector<std::size_t>& components : stages) {
      options.stages.push_back({.gpu = GpuId(options.stages.size() + 1),
                                .slice = "1g",
                                .components = std::move(components),
                                .environment = {{"SOFTGPU_HOME", home_ + "/gpu"}}});
    }
    options.flow = {.ring_depth = 4, .retries = retries, .stage_limit = stage_limit_};
    options.start_limit = start_limit_;
    options.name = "chain";
    if (instance_) end();
    auto started = PipelineInstance::start(io_, std::move(options),
                                           {.ready = [this] { ready_ = true; },
                                            .replied =
                                                [this](PipelineInstance::Reply reply) {
                                                  const PipelineRequestId id = reply.id;
                                                  for (const auto& output : reply.outputs)
                                                    outputs_[id].emplace_back(output ? output->bytes() : "");
                                                  replies_[id] = std::move(reply);
                                                  instance_->taken(id);
                                                },
                                            .broken = [this](const std::string& why) { broken_ = why; },
                                            .used = [this](Duration gpu_time) { used_after_ += gpu_time; }});
    ASSERT_TRUE(started) << started.error().message;
    instance_ = *std::move(started);
  }
  template <typename Condition>
  void run_until(Condition condition, Duration limit = 120s) {
    const Instant end = monotonic_now() + limit;
    while (!condition() && monotonic_now() < end) {
      io_.restart();
      io_.run_one_for(100ms);
    }
    ASSERT_TRUE(condition());
  }
  PipelineRequestId offer(float first, std::shared_ptr<const PipelineProgress> progress = {}) {
    const PipelineRequestId id(++last_);
    instance_->offer({.id = id,
                      .inputs = std::make_shared<const std::vector<std::string>>(1, floats(first)),
                      .deadline = {},
                      .progress = std::move(progress)});
    return id;
  }
  void expect_answer(PipelineRequestId id, float first) {
    run_until([&] { return replies_.contains(id); });
    ASSERT_EQ(replies_[id].end, FlowEnd::kAnswered) << replies_[id].why;
    EXPECT_TRUE(outputs_[id].at(0) == expected(first));
    EXPECT_GT(replies_[id].gpu_time, 0ns);
  }

  std::string home_;
  std::string program_path_ = DEVICE_SERVER;
  std::vector<std::string> arguments_ = {SOFTGPU_FOLDER, std::to_string(64 << 20), std::to_string(64 << 20), "cost"};
  boost::asio::io_context io_;
  std::shared_ptr<PipelineProgram> program_ = std::make_shared<PipelineProgram>();
  bool ready_ = false;
  std::string broken_;
  Duration start_limit_ = 60s, stage_limit_ = 60s, used_after_{0};
  std::map<PipelineRequestId, PipelineInstance::Reply> replies_;
  std::map<PipelineRequestId, std::vector<std::string>> outputs_;
  std::unique_ptr<PipelineInstance> instance_;
  std::uint64_t last_ = 0;
};

TEST_F(PipelineInstanceTest, EveryPartitionGivesTheSameForSeveralRequestsAtOnce) {
  for (const std::vector<std::vector<std::size_t>>& stages :
       {std::vector<std::vector<std::size_t>>{{0, 1, 2}}, {{0}, {1, 2}}, {{0, 1}, {2}}, {{0}, {1}, {2}}}) {
    ready_ = false;
    start(stages);
    run_until([&] { return ready_; });
    std::vector<PipelineRequestId> ids;
    for (int r = 0; r < 4; ++r) ids.push_back(offer(static_cast<float>(r)));
    EXPECT_EQ(instance_->unanswered(), 4u);
    for (int r = 0; r < 4; ++r) expect_answer(ids[static_cast<std::size_t>(r)], static_cast<float>(r));
    run_until([&] { return instance_->is_empty(); });
    for (const auto& stage : instance_->stages()) {
      EXPECT_EQ(stage.ring_used, 0u);
      EXPECT_EQ(stage.requests, 4u);
    }
  }
}

TEST_F(PipelineInstanceTest, KilledServersStartAgainAndNoRequestIsLost) {
  start({{0}, {1}, {2}});
  run_until([&] { return ready_; });
  const auto restarts = [&] {
    std::uint64_t all = 0;
    for (const auto& stage : instance_->stages()) all += stage.restarts;
    return all;
  };
  for (int round = 0; round < 6; ++round) {
    const auto first = static_cast<float>(round);
    const PipelineRequestId a = offer(first), b = offer(first + 1);
    for (int turns = 0; turns < round; ++turns) io_.run_one_for(1ms);
    const auto pid = instance_->stages()[static_cast<std::size_t>(round % 3)].pid;
    ASSERT_GT(pid, 0);
    ::kill(static_cast<pid_t>(pid), SIGKILL);
    expect_answer(a, first);
    expect_answer(b, first + 1);
    // Both may have been answered before the end of the server was seen.
    run_until([&] { return restarts() == static_cast<std::uint64_t>(round) + 1; });
    run_until([&] {
      const auto stages = instance_->stages();
      return std::all_of(stages.begin(), stages.end(), [](const auto& one) { return one.is_ready; });
    });
  }
}

TEST_F(PipelineInstanceTest, WhatIsAbandonedComesBackAndNothingStartsAgain) {
  start({{0}, {1, 2}});
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(1);
  instance_->abandon("its slice is gone");
  run_until([&] { return replies_.contains(id); });
  EXPECT_EQ(replies_[id].end, FlowEnd::kReturned);
  run_until([&] { return instance_->is_empty(); });
  run_until([&] { return instance_->stages()[0].pid == 0 && instance_->stages()[1].pid == 0; });
  io_.restart();
  io_.run_for(300ms);
  EXPECT_EQ(instance_->stages()[0].pid, 0);
}

TEST_F(PipelineInstanceTest, AModuleThatTheDriverRefusesBreaksItBeforeItIsReady) {
  std::ofstream(home_ + "/kernels.ptx") << "no module";
  start({{0}, {1, 2}});
  run_until([&] { return !broken_.empty(); });
  EXPECT_FALSE(ready_);
  EXPECT_THAT(broken_, HasSubstr("component"));
}

TEST_F(PipelineInstanceTest, ACancelledRequestIsAnsweredAtOnceAndItsSlotsComeBack) {
  start({{0}, {1}, {2}});
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(1);
  instance_->cancel(id);
  run_until([&] { return replies_.contains(id); });
  EXPECT_EQ(replies_[id].end, FlowEnd::kCancelled);
  expect_answer(offer(2), 2);
  run_until([&] { return instance_->is_empty(); });
}

// ---- components that need no GPU

TEST_F(PipelineInstanceTest, AProgramRunsInAStageOfItsOwnAndBetweenKernelTasksOfOne) {
  make_b_a_program();
  for (const std::vector<std::vector<std::size_t>>& stages :
       {std::vector<std::vector<std::size_t>>{{0}, {1}, {2}}, {{0, 1, 2}}, {{0, 1}, {2}}, {{0}, {1, 2}}}) {
    ready_ = false;
    start(stages);
    run_until([&] { return ready_; });
    std::vector<PipelineRequestId> ids;
    for (int r = 0; r < 4; ++r) ids.push_back(offer(static_cast<float>(r)));
    for (int r = 0; r < 4; ++r) expect_answer(ids[static_cast<std::size_t>(r)], static_cast<float>(r));
    run_until([&] { return instance_->is_empty(); });
  }
}

TEST_F(PipelineInstanceTest, AProgramThatIsKilledStartsAgainWithItsWholeStage) {
  make_b_a_program();
  start({{0}, {1, 2}});
  run_until([&] { return ready_; });
  write_steps("os.kill(os.getpid(), 9) if not os.path.exists('" + home_ + "/once') and not open('" + home_ +
              "/once', 'w').close() else None\n    return array.array('f', [3 * value + 1 for value in x.tolist()])");
  ::kill(static_cast<pid_t>(instance_->stages()[1].pid),
         SIGKILL);  // the device server; its program reads its file anew
  run_until([&] { return instance_->stages()[1].restarts == 1 && instance_->stages()[1].is_ready; });
  const PipelineRequestId a = offer(1), b = offer(2);
  expect_answer(a, 1);
  expect_answer(b, 2);
  EXPECT_EQ(instance_->stages()[1].restarts, 2u) << "the server of a stage whose program ended goes on";
  EXPECT_EQ(instance_->stages()[0].restarts, 0u);
}

TEST_F(PipelineInstanceTest, AProgramThatFailsSaysWhyAndServesTheNext) {
  make_b_a_program(
      "if x[0] == 2: raise KeyError('no \\u00fc')\n    return array.array('f', [3 * value + 1 for value in "
      "x.tolist()])");
  start({{0}, {1}, {2}});
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(0.5F);  // a makes 2 of it
  run_until([&] { return replies_.contains(id); });
  EXPECT_EQ(replies_[id].end, FlowEnd::kFailed);
  EXPECT_THAT(replies_[id].why,
              testing::AllOf(HasSubstr("component b: KeyError: 'no \?\?'"), HasSubstr("after 2 retries")));
  expect_answer(offer(1), 1);
  EXPECT_EQ(instance_->stages()[1].restarts, 0u);
  EXPECT_EQ(instance_->stages()[1].gpu_time, 0ns);
}

TEST_F(PipelineInstanceTest, AProgramThatGivesTheWrongShapeFailsItsRequest) {
  make_b_a_program("return array.array('f', [1, 2])");
  start({{0}, {1}, {2}}, 0);
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(1);
  run_until([&] { return replies_.contains(id); });
  EXPECT_THAT(replies_[id].why, HasSubstr("b's y has shape (2,), (256,) is wanted"));
}

TEST_F(PipelineInstanceTest, AProgramThatDoesNotLoadBreaksItByName) {
  make_b_a_program();
  std::ofstream(home_ + "/steps.py") << "import no_such_module\n";
  start({{0}, {1}, {2}});
  run_until([&] { return !broken_.empty(); });
  EXPECT_THAT(broken_, testing::AllOf(HasSubstr("program b"), HasSubstr("no_such_module")));
}

// It has the socket: it may say what it likes.
TEST_F(PipelineInstanceTest, AProgramThatSaysWhatItWasNotAskedIsEnded) {
  make_b_a_program("os.write(3, b'D' + bytes(8))\n    return x");
  start({{0}, {1}, {2}}, 0);
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(1);
  run_until([&] { return replies_.contains(id); });
  EXPECT_EQ(replies_[id].end, FlowEnd::kFailed);
  EXPECT_THAT(replies_[id].why, HasSubstr("it answers call 0, which it was not asked"));
  run_until([&] { return instance_->stages()[1].is_ready; });
}

TEST_F(PipelineInstanceTest, AProgramThatHangsIsEndedAfterTheTimeOfAStage) {
  stage_limit_ = 500ms;
  make_b_a_program("import time\n    time.sleep(1000)");
  start({{0}, {1}, {2}}, 0);
  run_until([&] { return ready_; });
  const PipelineRequestId id = offer(1);
  run_until([&] { return replies_.contains(id); });
  EXPECT_THAT(replies_[id].why, HasSubstr("took it longer than 0.5 s"));
  EXPECT_EQ(replies_[id].gpu_time < 500ms, true) << "a program has no slice";
}

// ---- from one instance to the next

// What `a` made of 1 is read by the next instance, in which `a` is in another stage; so the inputs, of 100, are not looked at.
TEST_F(PipelineInstanceTest, AnotherInstanceGoesOnFromTheLastWholeTensor) {
  start({{0}, {1}, {2}});
  run_until([&] { return ready_; });
  ::kill(static_cast<pid_t>(instance_->stages()[1].pid), SIGSTOP);
  const PipelineRequestId id = offer(1);
  run_until([&] { return instance_->stages()[0].requests == 1; });
  instance_->abandon("its slice is gone");
  run_until([&] { return replies_.contains(id); });
  ASSERT_EQ(replies_[id].end, FlowEnd::kReturned);
  ASSERT_TRUE(replies_[id].progress);
  const std::shared_ptr<const PipelineProgress> progress = replies_[id].progress;
  ready_ = false;
  start({{0, 1}, {2}});
  run_until([&] { return ready_; });
  const PipelineRequestId again = offer(100, progress);
  run_until([&] { return replies_.contains(again); });
  ASSERT_EQ(replies_[again].end, FlowEnd::kAnswered) << replies_[again].why;
  EXPECT_TRUE(outputs_[again].at(0) == expected(1));
  expect_answer(offer(2), 2);
}

// Lost twice: what the first instance and what the second made.
TEST_F(PipelineInstanceTest, ProgressOfSeveralInstancesAddsUp) {
  start({{0}, {1}, {2}});
  run_until([&] { return ready_; });
  ::kill(static_cast<pid_t>(instance_->stages()[1].pid), SIGSTOP);
  PipelineRequestId id = offer(1);
  for (const std::size_t stopped : {std::size_t{1}, std::size_t{2}}) {
    run_until([&] { return instance_->stages()[stopped - 1].requests == 1; });
    instance_->abandon("its slice is gone");
    run_until([&] { return replies_.contains(id); });
    ready_ = false;
    start({{0}, {1}, {2}});
    run_until([&] { return ready_; });
    if (stopped == 1) ::kill(static_cast<pid_t>(instance_->stages()[2].pid), SIGSTOP);
    id = offer(100, replies_[id].progress);
  }
  run_until([&] { return replies_.contains(id); });
  ASSERT_EQ(replies_[id].end, FlowEnd::kAnswered) << replies_[id].why;
  EXPECT_TRUE(outputs_[id].at(0) == expected(1));
  EXPECT_EQ(instance_->stages()[0].requests + instance_->stages()[1].requests, 0u);
}

// ---- what hangs

// A program that never says anything, as a driver that hangs makes of a server.
TEST_F(PipelineInstanceTest, AServerThatIsNeverReadyIsEndedAndBreaksIt) {
  start_limit_ = 300ms;
  program_path_ = home_ + "/hangs";
  std::ofstream(program_path_) << "#!/bin/sh\nexec sleep 1000\n";
  fs::permissions(program_path_, fs::perms::owner_all);
  start({{0}, {1, 2}});
  const auto pid = static_cast<pid_t>(instance_->stages()[0].pid);
  ASSERT_GT(pid, 0);
  run_until([&] { return !broken_.empty(); });
  EXPECT_THAT(broken_, HasSubstr("not ready 0.3 s after its start"));
  instance_->abandon(broken_);
  run_until([&] { return !instance_->has_processes(); });
  EXPECT_NE(::kill(pid, 0), 0);
}

// The slices are free when the processes are gone, and not when they are told to go.
TEST_F(PipelineInstanceTest, ItHasProcessesUntilTheyAreReaped) {
  start({{0}, {1, 2}});
  run_until([&] { return ready_; });
  const auto pid = static_cast<pid_t>(instance_->stages()[0].pid);
  instance_->abandon("it goes");
  EXPECT_TRUE(instance_->has_processes());
  run_until([&] { return !instance_->has_processes(); });
  EXPECT_NE(::kill(pid, 0), 0) << "not even as a zombie";
}

TEST_F(PipelineInstanceTest, AStageThatIsStoppedIsEndedAndItsRequestRunsAgain) {
  stage_limit_ = 500ms;
  start({{0}, {1, 2}});
  run_until([&] { return ready_; });
  const auto pid = static_cast<pid_t>(instance_->stages()[1].pid);
  ::kill(pid, SIGSTOP);
  stage_limit_ = 60s;
  expect_answer(offer(1), 1);
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_EQ(instance_->stages()[1].restarts, 1u);
  EXPECT_GE(replies_[PipelineRequestId(1)].gpu_time, 500ms) << "it had the slice for so long";
}

TEST_F(PipelineInstanceTest, WhatRunsOnAfterItsRequestEndedIsCharged) {
  start({{0}, {1, 2}});
  run_until([&] { return ready_; });
  const auto pid = static_cast<pid_t>(instance_->stages()[0].pid);
  ::kill(pid, SIGSTOP);
  const PipelineRequestId id = offer(1);
  while (io_.run_one_for(50ms) != 0) {  // until the call has been sent
  }
  instance_->cancel(id);
  run_until([&] { return replies_.contains(id); });
  ::kill(pid, SIGKILL);
  run_until([&] { return instance_->stages()[0].restarts == 1; });
  EXPECT_GT(used_after_, 0ns);
}

// ---- what is short

TEST_F(PipelineInstanceTest, TensorsBeyondTheBoundOfHostMemoryAreRefusedByName) {
  for (Component& one : program_->dag.components) one.outputs[0].shape = {std::uint64_t{1} << 28};
  PipelineInstance::Options options{.program = program_, .stages = {{.components = {0}}, {.components = {1, 2}}}};
  const auto started = PipelineInstance::start(io_, std::move(options), {});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, testing::AllOf(HasSubstr("a.y"), HasSubstr("2147483648 bytes of host memory")));
}

// As one that the driver cannot pin. What comes after it in the same pipe, a session, never gets ready: so its stage does not, either.
TEST_F(PipelineInstanceTest, ARingThatItsServerCannotOpenEndsIt) {
  const std::string memory = home_ + "/memory";
  std::ofstream(memory) << "too small";
  const UniqueFd file(::open(memory.c_str(), O_RDWR | O_CLOEXEC));
  std::string fault, gone;
  std::unique_ptr<ServerProcess> server;
  auto started = ServerProcess::start(
      io_, {.program = DEVICE_SERVER, .arguments = arguments_, .environment = {{"SOFTGPU_HOME", home_ + "/gpu"}}},
      {.frame =
           [&](wire::FrameToNode frame) {
             if (std::holds_alternative<wire::ServerReady>(frame)) {
               const int descriptors[] = {file.get()};
               server->send(wire::OpenRing{1, 2, 4096}, descriptors);
             }
             if (const auto* said = std::get_if<wire::ServerFault>(&frame)) fault = said->error;
           },
       .gone = [&](std::string reason) { gone = std::move(reason); }});
  ASSERT_TRUE(started);
  server = *std::move(started);
  run_until([&] { return !gone.empty(); });
  EXPECT_THAT(fault, HasSubstr("its memory has 9 bytes"));
}

}  // namespace
}  // namespace fairlead
