#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "gpu/fence/call_graph.h"

namespace fairlead::fence {
namespace {

TEST(CallGraph, TheDeepestChainCounts) {
  CallGraph graph;
  const std::size_t entry = graph.add(16), a = graph.add(32), b = graph.add(0), c = graph.add(100);
  graph.add_call(entry, a);
  graph.add_call(a, b);
  graph.add_call(b, b);
  EXPECT_EQ(graph.depth().bytes, 100u);  // c alone
  graph.add_call(a, c);
  EXPECT_EQ(graph.depth().bytes, 148u);
  EXPECT_FALSE(graph.depth().unbounded);
  graph.add_call(c, entry);
  EXPECT_TRUE(graph.depth().unbounded);
}

TEST(CallGraph, AChainMayBeAsLongAsAModule) {
  CallGraph graph;
  for (std::size_t i = 0; i < 1'000'000; ++i) graph.add(1);
  for (std::size_t i = 0; i + 1 < 1'000'000; ++i) graph.add_call(i, i + 1);
  EXPECT_EQ(graph.depth().bytes, 1'000'000u);
}

// The definition: the longest path, where nothing with a frame lies on a circle.
RC_GTEST_PROP(CallGraphProp, AgreesWithASearchOfAllPaths, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 8);
  const auto edges = *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, count), rc::gen::inRange<std::size_t>(0, count)));
  CallGraph graph;
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(*rc::gen::weightedElement<std::uint64_t>({{2, 0}, {1, 16}, {1, 48}}));
    graph.add(bytes.back());
  }
  for (const auto& [caller, callee] : edges) graph.add_call(caller, callee);
  std::vector<bool> on_path(count);
  std::uint64_t deepest = 0;
  bool unbounded = false;
  const std::function<void(std::size_t, std::uint64_t)> walk = [&](std::size_t node, std::uint64_t depth) {
    deepest = std::max(deepest, depth + bytes[node]);
    on_path[node] = true;
    for (const auto& [caller, callee] : edges) {
      if (caller == node && !on_path[callee]) walk(callee, depth + bytes[node]);
    }
    on_path[node] = false;
  };
  std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count));
  for (const auto& [caller, callee] : edges) reaches[caller][callee] = true;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    unbounded |= reaches[i][i] && bytes[i] > 0;
    walk(i, 0);
  }
  const CallGraph::Depth depth = graph.depth();
  RC_ASSERT(depth.unbounded.has_value() == unbounded);
  if (unbounded) RC_ASSERT(reaches[*depth.unbounded][*depth.unbounded] && bytes[*depth.unbounded] > 0);
  if (!unbounded) RC_ASSERT(depth.bytes == deepest);
}

}  // namespace
}  // namespace fairlead::fence
