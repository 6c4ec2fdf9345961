// Which tensors are in rings. Planted and caught: a program's output that nobody beyond its stage reads, without a ring.
#include "runtime/pipeline/tensor_places.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using Tensors = TensorPlaces::Tensors;

// a -> b -> c -> d, answered is d.
Dag chain() {
  Dag dag{.name = "chain"};
  dag.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {4}}};
  for (std::size_t at = 0; at < 4; ++at) {
    Component one{.name = std::string(1, static_cast<char>('a' + at)), .task = "t"};
    one.inputs = {{.name = "x", .sources = {at == 0 ? TensorSource{} : TensorSource{at - 1, 0}}}};
    one.outputs = {{.name = "y", .type = ElementType::kF32, .shape = {4}}};
    dag.components.push_back(one);
  }
  dag.outputs = {{.name = "out", .from = {3, 0}}};
  return dag;
}

TEST(TensorPlaces, KernelTasksOfAStageHandOverOnTheDevice) {
  const Dag dag = chain();
  const TensorPlaces one(dag, {{0, 1, 2, 3}}), two(dag, {{0, 1}, {2, 3}});
  EXPECT_EQ(one.in_rings(), (Tensors{{3, 0}}));
  EXPECT_EQ(two.in_rings(), (Tensors{{1, 0}, {3, 0}}));
  EXPECT_EQ(two.rings_of({0, 1}), (Tensors{{1, 0}}));
  EXPECT_EQ(two.rings_of({2, 3}), (Tensors{{1, 0}, {3, 0}}));
  EXPECT_EQ(two.stage_of(2), 1u);
  EXPECT_FALSE(two.leaves_device(0, 1));
  EXPECT_TRUE(two.leaves_device(1, 2));
}

// The example of the header.
TEST(TensorPlaces, WhatAProgramReadsOrWritesIsInARing) {
  Dag dag = chain();
  dag.components[2].needs_gpu = false;
  const TensorPlaces places(dag, {{0, 1, 2}, {3}});
  EXPECT_EQ(places.in_rings(), (Tensors{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_EQ(places.rings_of({0, 1}), (Tensors{{1, 0}}));
  EXPECT_EQ(places.rings_of({2}), (Tensors{{1, 0}, {2, 0}}));
  EXPECT_EQ(places.rings_of({3}), (Tensors{{2, 0}, {3, 0}}));
}

TEST(TensorPlaces, WhatNobodyReadsOfAProgramHasAPlaceAllTheSame) {
  Dag dag = chain();
  dag.components[0].needs_gpu = false;
  dag.components[0].outputs.push_back({.name = "z", .type = ElementType::kU8, .shape = {1}});
  dag.components[1].outputs.push_back({.name = "z", .type = ElementType::kU8, .shape = {1}});
  EXPECT_EQ(TensorPlaces(dag, {{0, 1, 2, 3}}).in_rings(), (Tensors{{0, 0}, {0, 1}, {3, 0}}));
}

TEST(TensorPlaces, WhatDecidesAndEachSourceOfAJoinedOutputIsInARing) {
  Dag dag = chain();
  dag.components[1].outputs[0].shape = {1};
  dag.components[3].when = BranchCondition{.value = {1, 0}, .is = true};
  dag.outputs = {{.name = "out", .from = {3, 0}}, {.name = "out", .from = {0, 0}}};
  EXPECT_EQ(TensorPlaces(dag, {{0, 1, 2, 3}}).in_rings(), (Tensors{{0, 0}, {1, 0}, {3, 0}}));
}

}  // namespace
}  // namespace fairlead
