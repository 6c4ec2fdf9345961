// pipeline.json: what it may say, where it is refused, and that it reads back.
#include "wire/pipeline_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fairlead::wire {
namespace {

using nlohmann::json;

json example() {
  return json::parse(R"({"version": 1, "name": "depth", "objective_ms": 250,
    "inputs": [{"name": "image", "type": "f32", "shape": [1, 3, 64, 64]}],
    "outputs": [{"name": "depth", "from": "depth.y"}],
    "components": [
      {"name": "decode", "program": "decode.py:decode", "inputs": {"x": "input.image"}, "outputs": [{"name": "y", "type": "f32", "shape": [1, 3, 64, 64]}],
       "profile": {"ms": {"host": [2, 0.5, 7]}}},
      {"name": "deblur", "task": "deblur", "inputs": {"x": "decode.y"},
       "outputs": [{"name": "y", "type": "f32", "shape": [1, 3, 64, 64]}, {"name": "is_low", "type": "u8", "shape": [1]}],
       "profile": {"memory_mib": {"weights": 900, "peak": 2100}, "ms": {"1g": [80, 2.5, 40], "2g": [44, 0, 0]}}},
      {"name": "sr", "task": "sr", "inputs": {"x": "deblur.y"}, "outputs": [{"name": "y", "type": "f32", "shape": [1, 3, 64, 64]}],
       "when": {"value": "deblur.is_low", "is": true, "part": 0.4}},
      {"name": "depth", "task": "depth", "inputs": {"x": ["sr.y", "deblur.y"]}, "outputs": [{"name": "y", "type": "f32", "shape": [1, 1, 64, 64]}]}]})");
}

std::string refusal(const json& document);

TEST(PipelineJson, AnOutputOfSeveralSourcesIsAnEntryForEachAndReadsBack) {
  json document = example();
  document["outputs"] =
      json::array({{{"name", "y"}, {"from", {"sr.y", "deblur.y"}}}, {{"name", "low"}, {"from", "deblur.is_low"}}});
  const auto dag = pipeline_from_json(document.dump());
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->outputs, (std::vector<DagOutput>{{"y", {2, 0}}, {"y", {1, 0}}, {"low", {1, 1}}}));
  EXPECT_EQ(pipeline_from_json(pipeline_to_json(*dag)).value(), *dag);
  document["outputs"][1]["name"] = "y";
  EXPECT_EQ(refusal(document), "outputs[1] has the name of another output");
  document["outputs"][1] = {{"name", "low"}, {"from", {"sr.y", "deblur.is_low"}}};
  EXPECT_EQ(refusal(document), "the pipeline, edge low <- deblur.is_low: is u8 of 1 bytes, where sr.y is f32 of 49152");
  document["outputs"][1] = {{"name", "low"}, {"from", json::array()}};
  EXPECT_EQ(refusal(document), "outputs[1].from has 0 sources, 1 to 16 are possible");
  document["outputs"][1] = {{"name", "low"}, {"from", std::vector<std::string>(17, "sr.y")}};
  EXPECT_THAT(refusal(document), testing::HasSubstr("16"));
  document["outputs"][1] = {{"name", "low"}, {"from", {"sr.y"}}};
  EXPECT_EQ(refusal(document),
            "output low from sr.y does not always come: not when deblur.is_low is false; join what comes then");
}

TEST(PipelineJson, AProgramGetsNoGpuWhateverItAsksFor) {
  json document = example();
  document["components"][0]["needs_gpu"] = true;
  EXPECT_EQ(refusal(document),
            "component decode: needs_gpu is true, and it is a program: a program runs on the host and gets no GPU, a "
            "kernel task needs one");
  document["components"][0]["needs_gpu"] = false;
  EXPECT_EQ(refusal(document), "");
  document["components"][0]["profile"] = {{"ms", {{"1g", {1, 0, 1}}}}};
  EXPECT_EQ(refusal(document),
            "component decode: it needs no GPU and has a time of slice \"1g\"; one of \"host\" is possible");
  document["components"][0]["profile"] = {{"memory_mib", {{"weights", 0}, {"peak", 1}}}, {"ms", {{"host", {1, 0, 1}}}}};
  EXPECT_EQ(refusal(document),
            "component decode: it needs no GPU and asks for 1048576 bytes of a slice's memory, 0 are possible");
  document = example();
  document["components"][2]["needs_gpu"] = false;
  EXPECT_THAT(refusal(document), testing::HasSubstr("component sr: needs_gpu is false, and it is a kernel task"));
}

std::string refusal(const json& document) {
  const auto dag = pipeline_from_json(document.dump());
  return dag ? "" : dag.error().message;
}

TEST(PipelineJson, SaysWhatIsMadeOfWhat) {
  const auto dag = pipeline_from_json(example().dump());
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->objective, std::chrono::milliseconds(250));
  EXPECT_FALSE(dag->components[0].needs_gpu);
  EXPECT_EQ(dag->components[1].peak, mib(2100));
  EXPECT_EQ(dag->components[1].times[0].mean, std::chrono::milliseconds(80));
  EXPECT_EQ(dag->components[1].times[0].seen, 40u);
  EXPECT_EQ(dag->components[2].when->part, 0.4);
  EXPECT_EQ(dag->components[3].inputs[0].sources, (std::vector<TensorSource>{{2, 0}, {1, 0}}));
  EXPECT_EQ(dag->outputs[0].from, (TensorSource{3, 0}));
}

TEST(PipelineJson, AProgramIsAFunctionOfAFile) {
  json document = example();
  document["components"][0]["task"] = nullptr;  // as the Python package writes it
  document["components"][0]["program"] = {{"file", "decode/steps.py"}, {"function", "decode"}};
  const auto dag = pipeline_from_json(document.dump());
  ASSERT_TRUE(dag) << dag.error().message;
  EXPECT_EQ(dag->components[0].program, "decode/steps.py:decode");
  EXPECT_FALSE(dag->components[0].needs_gpu);
  document["components"][0]["program"] = {{"file", "decode/steps.py"}};
  EXPECT_EQ(refusal(document), "components[0].program has no 'function'; it is required");
}

TEST(PipelineJson, WhatNobodyCouldRunIsRefused) {
  json document = example();
  document["components"][0]["program"] = "decode.py";
  EXPECT_EQ(refusal(document), "component decode: program is \"decode.py\"; it must be FILE:FUNCTION");
  document = example();
  document["components"][0]["inputs"] = json::object();
  EXPECT_EQ(refusal(document), "component decode: is a program and has 0 inputs, 1 to 16 are possible");
  document = example();
  document["components"][1]["task"] = "../deblur";
  EXPECT_NE(refusal(document).find("component deblur: task is \"../deblur\""), std::string::npos);
  document = example();
  document["components"][2]["outputs"] = json::array();
  EXPECT_NE(refusal(document).find("components[3].inputs.x[0]"), std::string::npos) << "who reads it comes first";
  document = example();
  document["outputs"][0]["name"] = "image";
  EXPECT_NE(refusal(document).find("output image: an input has that name"), std::string::npos);
  document = example();
  document["outputs"][0]["from"] = "sr.y";
  EXPECT_NE(refusal(document).find("does not always come: not when deblur.is_low is false"), std::string::npos);
  document = example();
  document["outputs"][0]["from"] = 3;
  EXPECT_NE(refusal(document).find("outputs[0].from must be"), std::string::npos);
}

TEST(PipelineJson, ReadsBackAsItWas) {
  const auto dag = pipeline_from_json(example().dump());
  ASSERT_TRUE(dag);
  const auto again = pipeline_from_json(pipeline_to_json(*dag));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *dag);
}

TEST(PipelineJson, AComponentMayReadOneThatIsListedLater) {
  json document = example();
  std::swap(document["components"][0], document["components"][3]);
  EXPECT_EQ(refusal(document), "");
}

TEST(PipelineJson, EachRefusalNamesItsPlace) {
  json document = example();
  document["components"][1]["inputs"]["x"] = "decode.z";
  EXPECT_EQ(refusal(document),
            "components[1].inputs.x is \"decode.z\"; it must be COMPONENT.OUTPUT or input.NAME, and exist");
  document = example();
  document["components"][3]["inputs"]["x"][0] = "nobody";
  EXPECT_NE(refusal(document).find("components[3].inputs.x[0] is \"nobody\""), std::string::npos);
  document = example();
  document["components"][1]["profile"]["ms"]["1g"] = {80, 2};
  EXPECT_NE(refusal(document).find("components[1].profile.ms.1g has 2 numbers"), std::string::npos);
  document["components"][1]["profile"]["ms"]["1g"] = {-1, 2, 3};
  EXPECT_NE(refusal(document).find("components[1].profile.ms.1g[0] must be a number between 0"), std::string::npos);
  document = example();
  document["components"][1]["tsk"] = "deblur";
  EXPECT_NE(refusal(document).find("tsk"), std::string::npos);
  document = example();
  document["version"] = 2;
  EXPECT_NE(refusal(document).find("version is 2"), std::string::npos);
}

TEST(PipelineJson, WhatTheDagIsRefusedForNamesComponentAndEdge) {
  json document = example();
  document["components"][1]["inputs"]["x"] = "depth.y";
  EXPECT_EQ(refusal(document), "component deblur, edge deblur <- depth: is in a cycle: deblur <- depth <- deblur");
  document = example();
  document["components"][2]["outputs"][0]["shape"] = {1, 3, 32, 64};
  EXPECT_EQ(refusal(document),
            "component depth, edge depth.x <- deblur.y: is f32 of 49152 bytes, where sr.y is f32 of 24576");
  document = example();
  document["components"][2]["when"]["value"] = "deblur.y";
  EXPECT_EQ(refusal(document), "component sr, edge sr.when <- deblur.y: has 12288 elements, a condition has one");
}

TEST(PipelineJson, HostileSizesAreRefusedBeforeAnythingIsBuilt) {
  EXPECT_EQ(pipeline_from_json(std::string(kMaxPipelineBytes + 1, ' ')).error().code, Errc::kTooLarge);
  EXPECT_FALSE(pipeline_from_json(std::string(1000, '[')));
  json document = example();
  document["inputs"][0]["shape"] = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_NE(refusal(document).find("more bytes than"), std::string::npos);
  document = example();
  for (int i = 0; i < 100; ++i) document["components"].push_back(document["components"][0]);
  EXPECT_NE(refusal(document).find("components"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::wire
