// The state machine of a capture, without streams.
#include "softgpu/driver/graph/capture_state.h"

#include <gtest/gtest.h>

namespace {

using softgpu::graph::CaptureMode;
using softgpu::graph::CaptureState;
using softgpu::graph::Edge;
using softgpu::graph::Links;
using softgpu::graph::NodeId;
using softgpu::graph::Topology;
using End = CaptureState::End;

const int kS = 0;
const int kT = 0;
constexpr softgpu::graph::ThreadKey kThread = 1;
constexpr softgpu::graph::ThreadKey kOther = 2;

struct Example {
  Topology graph;
  CaptureState state{CaptureMode::kGlobal, &kS, kThread};

  // An operation on the stream.
  NodeId operate(const int* stream) {
    const NodeId node = graph.add_node();
    for (const auto& link : state.next(stream)) graph.add_edges(std::vector<Edge>{{link.node, node, link.data}});
    state.advance(stream, node);
    return node;
  }
  End end() { return state.end(&kS, kThread, graph); }
};

TEST(CaptureState, OperationsOfAStreamFollowEachOther) {
  Example e;
  e.operate(&kS);
  const NodeId second = e.operate(&kS);
  EXPECT_EQ(e.graph.dependencies(second)[0].node, 0U);
  EXPECT_EQ(e.end(), End::kDone);
}

TEST(CaptureState, AForkMustBeJoined) {
  Example e;
  e.operate(&kS);
  e.state.join(&kT, e.state.next(&kS));
  EXPECT_EQ(e.end(), End::kDone);  // T takes part, and has done nothing
  e.operate(&kS);
  e.operate(&kT);
  EXPECT_EQ(e.end(), End::kUnjoined);
  e.state.join(&kS, e.state.next(&kT));
  EXPECT_EQ(e.end(), End::kDone);
  EXPECT_EQ(e.graph.dependencies(e.operate(&kS)).size(), 2U);
  EXPECT_EQ(e.end(), End::kDone);
}

TEST(CaptureState, WhatTheProgramTakesOutNeedNotBeJoined) {
  Example e;
  e.operate(&kS);
  e.state.set_next(&kS, {});
  const NodeId root = e.operate(&kS);
  EXPECT_TRUE(e.graph.dependencies(root).empty());
  EXPECT_EQ(e.end(), End::kDone);
}

TEST(CaptureState, EndsOnlyWhereAndByWhomItBegan) {
  Example e;
  e.state.join(&kT, {});
  EXPECT_EQ(e.state.end(&kT, kThread, e.graph), End::kUnmatched);
  EXPECT_EQ(e.state.end(&kS, kOther, e.graph), End::kWrongThread);
  const CaptureState relaxed(CaptureMode::kRelaxed, &kS, kThread);
  EXPECT_EQ(relaxed.end(&kS, kOther, e.graph), End::kDone);
  e.state.invalidate();
  EXPECT_EQ(e.end(), End::kInvalidated);
}

TEST(CaptureState, ADestroyedStreamInvalidates) {
  Example e;
  e.state.forget(&kS);
  EXPECT_EQ(e.end(), End::kInvalidated);
}

TEST(CaptureState, ProhibitsAsTheModesSay) {
  const auto prohibits = [](CaptureMode capture, bool same_thread, CaptureMode thread) {
    return CaptureState(capture, &kS, kThread).prohibits(same_thread ? kThread : kOther, thread);
  };
  EXPECT_TRUE(prohibits(CaptureMode::kGlobal, true, CaptureMode::kGlobal));
  EXPECT_TRUE(prohibits(CaptureMode::kGlobal, true, CaptureMode::kThreadLocal));
  EXPECT_FALSE(prohibits(CaptureMode::kGlobal, true, CaptureMode::kRelaxed));
  EXPECT_TRUE(prohibits(CaptureMode::kGlobal, false, CaptureMode::kGlobal));
  EXPECT_FALSE(prohibits(CaptureMode::kGlobal, false, CaptureMode::kThreadLocal));
  EXPECT_TRUE(prohibits(CaptureMode::kThreadLocal, true, CaptureMode::kGlobal));
  EXPECT_FALSE(prohibits(CaptureMode::kThreadLocal, false, CaptureMode::kGlobal));
  EXPECT_FALSE(prohibits(CaptureMode::kRelaxed, true, CaptureMode::kGlobal));
}

}  // namespace
