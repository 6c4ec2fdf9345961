#include <gmock/gmock.h>

#include "core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2);

class Gpus : public CoreTest {};

// ---- tokens

TEST_F(Gpus, EachHasTokensOfItsOwn) {
  use({.tokens_per_gpu = 2}, /*gpus=*/0);
  core_->add_gpu({.gpu = GpuId(1), .tokens = 1});
  core_->add_gpu({.gpu = GpuId(2)});
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(arrive(2, kA), ElementsAre("start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(arrive(3, kA), ElementsAre("start instance=3 flow=1 gpu=2"));
  EXPECT_THAT(arrive(4, kA), IsEmpty());
  EXPECT_EQ(core_->gpus()[0].tokens, 1u);
  EXPECT_EQ(core_->gpus()[1].tokens, 2u);
}

TEST_F(Gpus, OneMoreTokenDispatchesWhatWaits) {
  use({.tokens_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  arrive(2, kA);
  arrive(3, kA);
  EXPECT_THAT(set_tokens(1, 2), ElementsAre("start instance=2 flow=1 gpu=1"));
}

TEST_F(Gpus, OneTokenLessTakesEffectAtTheNextAnswer) {
  use({.tokens_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA);
  arrive(2, kA);
  arrive(3, kB);
  ready(1);
  ready(2);
  EXPECT_THAT(set_tokens(1, 1), IsEmpty()) << "nothing that runs is stopped";
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success"));
  EXPECT_THAT(answered(2), ElementsAre("complete invocation=2 success", "start instance=3 flow=2 gpu=1"));
}

// ---- a GPU that fails

TEST_F(Gpus, ADrainedOneStopsIdleInstancesAndLetsOthersAnswer) {
  use({.tokens_per_gpu = 2});
  add(kA);
  add(kB);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);
  arrive(2, kB);
  ready(2);
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_THAT(arrive(3, kA), IsEmpty());
  EXPECT_THAT(answered(2, 2s, {}, /*is_error=*/true),
              ElementsAre("complete invocation=2 function_error", "stop instance=2 gpu_drained"));
  EXPECT_FALSE(core_->gpus()[0].serves);
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=3 flow=1 gpu=1"));
  EXPECT_TRUE(core_->gpus()[0].serves);
}

TEST_F(Gpus, AHangingInvocationOfADrainedOneEndsAtItsDeadline) {
  use({.tokens_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  drain_gpu(1);
  EXPECT_THAT(wake(60s), ElementsAre("stop instance=1 timeout", "complete invocation=1 timeout"));
}

TEST_F(Gpus, WhatHadNotStartedOnADrainedOneMovesToAnother) {
  use({.tokens_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  EXPECT_THAT(arrive(1, kA), ElementsAre("start instance=1 flow=1 gpu=1"));
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained", "start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(ready(1), IsEmpty());
  ready(2, 3s);
  EXPECT_THAT(answered(1, 4s), ElementsAre("complete invocation=1 success"));
}

TEST_F(Gpus, WhatWaitsForAReturningInstanceOfADrainedOneIsQueuedAgain) {
  use({.tokens_per_gpu = 1});
  add(kA);
  arrive(1, kA);
  ready(1);
  arrive(2, kA);
  answered(1);  // 2 waits for the instance to ask
  EXPECT_THAT(drain_gpu(1), ElementsAre("stop instance=1 gpu_drained"));
  EXPECT_EQ(core_->flow(kA).queued, 1u);
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=2 flow=1 gpu=1"));
}

TEST_F(Gpus, TheOthersGoOnWhileOneIsDrained) {
  use({.tokens_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  add(kB);
  arrive(1, kA);
  run_to_idle(1, 1, 1s);  // warm on GPU 1
  drain_gpu(1);
  EXPECT_THAT(arrive(2, kA, 2s), ElementsAre("start instance=2 flow=1 gpu=2"));
  EXPECT_THAT(arrive(3, kB), IsEmpty());
  EXPECT_THAT(restore_gpu(1), ElementsAre("start instance=3 flow=2 gpu=1"));
}

TEST_F(Gpus, ARequeuedInvocationIsChargedOnce) {
  use({.tokens_per_gpu = 1}, /*gpus=*/2);
  add(kA);
  arrive(1, kA);
  drain_gpu(1);
  ready(2, 1s);
  answered(1, 3s);
  EXPECT_EQ(core_->flow(kA).virtual_time, Duration(2s));
}

}  // namespace
}  // namespace fairlead
