// The structure of graphs, against small examples and a naive model.
#include "softgpu/driver/graph/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

using softgpu::graph::Edge;
using softgpu::graph::NodeId;
using softgpu::graph::Topology;

bool add(Topology& graph, std::vector<Edge> edges) {
  return graph.add_edges(edges);
}

TEST(Topology, OrdersByDependencyThenAge) {
  Topology graph;
  const NodeId a = graph.add_node();
  const NodeId b = graph.add_node();
  const NodeId c = graph.add_node();
  EXPECT_TRUE(add(graph, {{c, a}, {b, a}}));
  EXPECT_EQ(graph.roots(), (std::vector<NodeId>{b, c}));
  EXPECT_EQ(*graph.order(), (std::vector<NodeId>{b, c, a}));
  EXPECT_EQ(graph.dependencies(a).size(), 2U);
  EXPECT_EQ(graph.dependencies(a)[0].node, c);  // in the order of addition
}

TEST(Topology, ACycleHasNoOrderAndIsNamed) {
  Topology graph;
  const NodeId a = graph.add_node();
  const NodeId b = graph.add_node();
  const NodeId c = graph.add_node();
  NodeId culprit = a;
  EXPECT_TRUE(add(graph, {{a, b}, {b, c}, {c, b}}));
  EXPECT_FALSE(graph.order(&culprit).has_value());
  EXPECT_EQ(culprit, b);
  EXPECT_TRUE(graph.remove_edges(std::vector<Edge>{{c, b}}));
  EXPECT_TRUE(graph.order().has_value());
}

TEST(Topology, WrongEdgesChangeNothing) {
  Topology graph;
  const NodeId a = graph.add_node();
  const NodeId b = graph.add_node();
  const NodeId c = graph.add_node();
  EXPECT_FALSE(add(graph, {{a, b}, {a, a}}));
  EXPECT_FALSE(add(graph, {{a, b}, {a, b}}));
  EXPECT_FALSE(add(graph, {{a, b}, {a, 7}}));
  EXPECT_TRUE(graph.edges().empty());
  EXPECT_TRUE(add(graph, {{a, b, {1, 0, 1}}}));
  EXPECT_FALSE(add(graph, {{a, b}}));                           // connected already
  EXPECT_FALSE(graph.remove_edges(std::vector<Edge>{{a, b}}));  // other data
  EXPECT_FALSE(graph.remove_edges(std::vector<Edge>{{a, b, {1, 0, 1}}, {b, c}}));
  EXPECT_EQ(graph.edges().size(), 1U);
}

TEST(Topology, RemovingANodeSeversItAndItsNumberIsNotUsedAgain) {
  Topology graph;
  const NodeId a = graph.add_node();
  const NodeId b = graph.add_node();
  const NodeId c = graph.add_node();
  add(graph, {{a, b}, {b, c}});
  graph.remove_node(b);
  EXPECT_TRUE(graph.edges().empty());
  EXPECT_EQ(graph.roots(), (std::vector<NodeId>{a, c}));
  EXPECT_EQ(graph.add_node(), 3U);
}

TEST(Topology, AncestorsAreWhatATargetComesAfter) {
  Topology graph;
  for (int i = 0; i < 5; ++i) graph.add_node();
  add(graph, {{0, 1}, {1, 2}, {3, 2}});
  EXPECT_EQ(graph.ancestors(std::vector<NodeId>{2}), (std::vector<NodeId>{0, 1, 2, 3}));
  EXPECT_EQ(graph.ancestors(std::vector<NodeId>{1, 4}), (std::vector<NodeId>{0, 1, 4}));
}

TEST(Topology, EveryOrderOfRandomGraphsKeepsEveryEdge) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Topology graph;
    const NodeId size = 1 + random() % 30;
    for (NodeId i = 0; i < size; ++i) graph.add_node();
    std::vector<NodeId> shuffled = graph.nodes();
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (NodeId i = 0; i < size; ++i) {
      for (NodeId j = i + 1; j < size; ++j) {
        if (random() % 4 == 0) add(graph, {{shuffled[i], shuffled[j]}});
      }
    }
    const std::vector<NodeId> order = *graph.order();
    ASSERT_EQ(order.size(), size);
    const auto place = [&](NodeId node) { return std::find(order.begin(), order.end(), node) - order.begin(); };
    for (const Edge& edge : graph.edges()) EXPECT_LT(place(edge.from), place(edge.to));
  }
}

}  // namespace
