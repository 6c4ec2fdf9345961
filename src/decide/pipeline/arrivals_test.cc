#include "decide/pipeline/arrivals.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

// image ──> probe ──(probe.y)──> sr ; cut reads sr or the image
Dag example() {
  Dag dag{.name = "p"};
  dag.inputs = {{.name = "image", .type = ElementType::kF32, .shape = {4}}};
  const auto add = [&](const std::string& name, std::vector<ComponentInput> inputs, std::vector<std::uint64_t> shape) {
    dag.components.push_back({.name = name,
                              .task = name,
                              .inputs = std::move(inputs),
                              .outputs = {{.name = "y", .type = ElementType::kF32, .shape = std::move(shape)}}});
  };
  add("probe", {{"x", {{std::nullopt, 0}}}}, {1});
  add("sr", {{"x", {{std::nullopt, 0}}}}, {4});
  dag.components[1].when = BranchCondition{.value = {0, 0}, .is = true};
  add("cut", {{"x", {{1, 0}, {std::nullopt, 0}}}}, {4});
  dag.outputs = {{"y", {2, 0}}};
  return dag;
}

TEST(Arrivals, AJoinThatAlwaysHasOneComes) {
  ASSERT_FALSE(check_dag(example()));
  EXPECT_EQ(what_may_not_come(example()), std::nullopt);
}

TEST(Arrivals, AnOutputOfABranchDoesNot) {
  Dag dag = example();
  dag.outputs[0].from = {1, 0};
  EXPECT_EQ(what_may_not_come(dag).value_or(""),
            "output y from sr.y does not always come: not when probe.y is false; join what comes then");
}

TEST(Arrivals, NorOneThatStandsOnABranchAlone) {
  Dag dag = example();
  dag.components[2].inputs[0].sources.pop_back();
  EXPECT_NE(what_may_not_come(dag).value_or("").find("output y from cut.y"), std::string::npos);
}

TEST(Arrivals, AJoinedOutputDoesWhereOneOfItsSourcesComesInEveryWorld) {
  Dag dag = example();
  dag.components.push_back(dag.components[1]);
  dag.components[3].name = dag.components[3].task = "plain";
  dag.components[3].when->is = false;
  dag.outputs = {{.name = "y", .from = {1, 0}}, {.name = "y", .from = {3, 0}}};
  ASSERT_FALSE(check_dag(dag));
  EXPECT_EQ(what_may_not_come(dag), std::nullopt);
  dag.outputs[1].from = {std::nullopt, 0};
  EXPECT_EQ(what_may_not_come(dag), std::nullopt) << "the request always comes";
  dag.components[3].when->is = true;
  dag.outputs[1].from = {3, 0};
  EXPECT_EQ(what_may_not_come(dag).value_or(""),
            "output y from sr.y or plain.y does not always come: not when probe.y is false; join what comes then");
}

TEST(Arrivals, BothBranchesTogetherDo) {
  Dag dag = example();
  dag.components.push_back(dag.components[1]);
  dag.components[3].name = dag.components[3].task = "plain";
  dag.components[3].when->is = false;
  dag.components[2].inputs[0].sources = {{1, 0}, {3, 0}};
  EXPECT_EQ(what_may_not_come(dag), std::nullopt);
  dag.components[3].when->is = true;
  EXPECT_TRUE(what_may_not_come(dag));
}

TEST(Arrivals, DecidersAreBounded) {
  Dag dag = example();
  for (std::size_t i = 0; i < kMaxDeciders; ++i) {
    dag.components[0].outputs.push_back({.name = "d" + std::to_string(i), .type = ElementType::kU8, .shape = {1}});
    dag.components.push_back(dag.components[1]);
    dag.components.back().name = "b" + std::to_string(i);
    dag.components.back().when->value = {0, i + 1};
  }
  EXPECT_EQ(what_may_not_come(dag).value_or(""), "13 values decide about branches, 12 are possible");
}

}  // namespace
}  // namespace fairlead
