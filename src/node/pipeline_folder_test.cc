// Bundles that are pipelines, as they are read when they are deployed. Planted and caught: a program that is looked for outside the bundle;
// an output that joins and is two buffers of the interface.
#include "node/pipeline_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "runtime/pipeline/pipeline_program.h"

namespace fairlead {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class PipelineFolder : public testing::Test {
 protected:
  PipelineFolder() {
    std::string pattern = (fs::temp_directory_path() / "fairlead-folder-XXXXXX").string();
    FL_CHECK(::mkdtemp(pattern.data()) != nullptr);
    home_ = pattern;
    code_ = home_ + "/code";
    fs::create_directories(code_ + "/k");
    write(
        "k/task.json",
        R"({"buffers": {"x": {"role": "input", "type": "f32", "shape": [4]}, "y": {"role": "output", "type": "f32", "shape": [4]}},
              "kernels": [{"module": "k.ptx", "kernel": "scale", "grid": [1], "block": [4], "arguments": [{"buffer": "x"}, {"buffer": "y"}]}]})");
    write("k/k.ptx",
          ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry scale(.param .u64 x, .param .u64 y)\n{\n  "
          "ret;\n}\n");
    write("steps.py", "def f(x):\n    return x\n");
  }
  ~PipelineFolder() override { fs::remove_all(home_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(code_ + "/" + name) << content;
  }
  // program -> k, with this file of the program; `outputs` of the whole.
  std::string said(const std::string& program,
                   const std::string& outputs = R"([{"name": "out", "from": "k.y"}])") const {
    write("pipeline.json",
          R"({"version": 1, "inputs": [{"name": "in", "type": "f32", "shape": [4]}], "outputs": )" + outputs +
              R"(, "components": [{"name": "p", "program": ")" + program +
              R"(", "inputs": {"x": "input.in"}, "outputs": [{"name": "y", "type": "f32", "shape": [4]}]},
              {"name": "k", "task": "k", "inputs": {"x": "p.y"}, "outputs": [{"name": "y", "type": "f32", "shape": [4]}]}]})");
    read_ = read_pipeline(code_, "acme");
    return read_ ? "" : read_.error().message;
  }

  std::string home_, code_;
  mutable Result<BundledTask> read_ = fail(Errc::kNotFound, "nothing was read");
};

TEST_F(PipelineFolder, AProgramHasItsInputsThenItsOutputsAsBuffersAndNoTimeOfASlice) {
  ASSERT_EQ(said("steps.py:f"), "");
  const PipelineProgram& program = *read_->pipeline;
  EXPECT_EQ(program.tasks[0].spec, nullptr);
  EXPECT_EQ(program.tasks[0].inputs, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(program.tasks[0].outputs, (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(program.dag.components[0].times.empty());
  EXPECT_EQ(program.dag.components[0].peak, Bytes(0));
}

// Without a time no slice would fit.
TEST_F(PipelineFolder, WhereNobodySaidWhatComponentsTakeAllAreTakenForEqual) {
  ASSERT_EQ(said("steps.py:f"), "");
  const PipelineProgram& program = *read_->pipeline;
  std::map<std::string, Duration> times;
  for (const SliceTime& time : program.dag.components[1].times) {
    times[time.slice] = time.mean;
    EXPECT_EQ(time.seen, 0u) << "it is predicted";
  }
  EXPECT_EQ(times.size(), 5u);
  EXPECT_EQ(times["1g"], 7 * times["7g"]);
  EXPECT_EQ(program.tasks[1].kind.content.size(), 64u);
  EXPECT_FALSE(program.tasks[1].kind.is_said);
  const auto others = read_pipeline(code_, "other");
  ASSERT_TRUE(others);
  EXPECT_NE(others->pipeline->tasks[1].kind.content, program.tasks[1].kind.content) << "each tenant has its own";
  EXPECT_EQ(program.tasks[0].kind.content, "") << "a program takes what it takes on the host";
}

TEST_F(PipelineFolder, AProgramIsAFileOfTheBundle) {
  std::ofstream(home_ + "/outside.py") << "def f(x): return x\n";
  EXPECT_THAT(said("../outside.py:f"),
              HasSubstr("component p: program's file is '../outside.py', which is not in the code bundle"));
  EXPECT_THAT(said("/etc/passwd:f"), HasSubstr("which is not in the code bundle"));
  fs::create_symlink(home_ + "/outside.py", code_ + "/link.py");
  EXPECT_THAT(said("link.py:f"), HasSubstr("which is not in the code bundle"));
  EXPECT_THAT(said("gone.py:f"), HasSubstr("which is no file of the code bundle"));
  EXPECT_THAT(said("k:f"), HasSubstr("which is no file of the code bundle"));
  write("binary", "#!/bin/sh\n");
  EXPECT_THAT(said("binary:f"), HasSubstr("which is neither Python (.py) nor executable by everybody"));
  fs::permissions(code_ + "/binary", fs::perms(0755));
  EXPECT_EQ(said("binary:f"), "");
}

TEST_F(PipelineFolder, AnOutputThatJoinsIsOneBufferOfTheInterface) {
  ASSERT_EQ(
      said("steps.py:f", R"([{"name": "out", "from": ["k.y", "p.y", "input.in"]}, {"name": "also", "from": "p.y"}])"),
      "");
  const KernelTask& interface = read_->pipeline->interface;
  ASSERT_EQ(interface.buffers.size(), 3U);
  EXPECT_EQ(interface.buffers[1].name, "out");
  EXPECT_EQ(interface.buffers[2].name, "also");
  EXPECT_EQ(read_->pipeline->dag.outputs.size(), 4U);
}

TEST_F(PipelineFolder, ABundleWithoutAKernelTaskIsAFunctionOfItsOwn) {
  write(
      "pipeline.json",
      R"({"version": 1, "inputs": [{"name": "in", "type": "f32", "shape": [4]}], "outputs": [{"name": "out", "from": "p.y"}],
            "components": [{"name": "p", "program": "steps.py:f", "inputs": {"x": "input.in"}, "outputs": [{"name": "y", "type": "f32", "shape": [4]}]}]})");
  EXPECT_THAT(read_pipeline(code_, "acme").error().message,
              AllOf(HasSubstr("none of its 1 components needs a GPU, p among them")));
}

}  // namespace
}  // namespace fairlead
