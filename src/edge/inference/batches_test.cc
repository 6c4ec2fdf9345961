#include "edge/inference/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/clock.h"
#include "edge/testing/fake_node.h"
#include "wire/safetensors.h"

namespace fairlead::inference {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Answers when the test says so.
class SlowNode : public FakeNode {
 public:
  struct Called {
    Invocation invocation;
    Callback<Outcome> done;
    bool cancelled = false;
  };
  std::vector<std::shared_ptr<Called>> calls;

  CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) override {
    const auto call = std::make_shared<Called>(Called{std::move(request.invocation), std::move(done)});
    calls.push_back(call);
    return [call] {  // as a node does: nothing is heard of it
      call->cancelled = true;
      call->done = nullptr;
    };
  }
};

class BatchesTest : public testing::Test {
 protected:
  static Model model(std::size_t rows = 8) {
    Model model{.name = "sum", .tenant = "", .signature = {}, .batch = BatchRule{.rows = rows, .most_wait = {}}};
    model.signature = {.inputs = {{.name = "x", .type = ElementType::kU8, .shape = {kAnySize, 2}},
                                  {.name = "n", .type = ElementType::kU8, .shape = {kAnySize}, .buffer = 1}},
                       .outputs = {{.name = "y", .type = ElementType::kU8, .shape = {kAnySize}}},
                       .form = CallForm::kSafetensors};
    return model;
  }
  // Of rows of x "ab", "cd" and of n "1", "2"; the inputs in an order of the client's.
  static InferRequest request(const std::string& x, const std::string& n) {
    InferRequest request;
    request.call.inputs = {{.buffer = 1, .bytes = n}, {.buffer = 0, .bytes = x}};
    request.shapes = {{n.size()}, {x.size() / 2, 2}};
    request.outputs = {{.output = 0, .is_binary = true}};
    return request;
  }
  // Its number among the answers.
  std::size_t ask(const std::string& x, const std::string& n, const Model& of,
                  std::optional<std::int64_t> deadline_ms = {}) {
    InferRequest asked = request(x, n);
    auto inference = Batches::take_from(of, asked);
    EXPECT_TRUE(inference);
    inference->deadline_ms = deadline_ms;
    answers.emplace_back();
    cancels.push_back(batches.call(of, *std::move(inference), [this, at = answers.size() - 1](Result<Answered> answer) {
      EXPECT_EQ(answers[at], "") << "answered once";
      if (!answer) return void(answers[at] = "error: " + answer.error().message);
      answers[at] = answer->answer.outputs.at(0).bytes;
      EXPECT_THAT(answer->outputs.at(0).shape, ElementsAre(answers[at].size()));
    }));
    return answers.size() - 1;
  }
  std::size_t ask(const std::string& x, const std::string& n) { return ask(x, n, model()); }
  void answer(std::size_t call, const std::string& y) {
    finish(call, Outcome{.payload = wire::write_safetensors({{"y", ElementType::kU8, {y.size()}, y}})});
  }
  void finish(std::size_t call, Result<Outcome> outcome) {
    const auto done = std::exchange(node.calls.at(call)->done, nullptr);
    done(std::move(outcome));
  }
  std::string sent(std::size_t call, std::size_t tensor) const {
    return std::string(wire::read_safetensors(node.calls.at(call)->invocation.payload)->at(tensor).bytes);
  }
  void pass(Duration time) {
    now += time;
    auto due = std::exchange(timers, {});
    for (auto& [at, then] : due) at <= now ? then() : void(timers.emplace_back(at, then));
  }

  SlowNode node;
  Instant now{1h};
  std::vector<std::pair<Instant, std::function<void()>>> timers;
  Batches batches{node,
                  {.now = [this] { return now; },
                   .after = [this](Duration wait,
                                   std::function<void()> then) { timers.emplace_back(now + wait, std::move(then)); }}};
  std::vector<std::string> answers;
  std::vector<NodeService::CancelHandle> cancels;
};

TEST_F(BatchesTest, WhatArrivesDuringACallIsOneCallAndEverybodyHasItsRows) {
  ask("ab", "1");
  ask("cdef", "23");
  ask("gh", "4");
  ASSERT_THAT(node.calls, SizeIs(1));
  EXPECT_EQ(sent(0, 0) + sent(0, 1), "1ab") << "n and x, by name";
  answer(0, "A");
  ASSERT_THAT(node.calls, SizeIs(2));
  EXPECT_EQ(sent(1, 0) + sent(1, 1), "234cdefgh");
  EXPECT_EQ(node.calls[1]->invocation.function, "sum");
  EXPECT_THAT(answers, ElementsAre("A", "", ""));
  answer(1, "BCD");
  EXPECT_THAT(answers, ElementsAre("A", "BC", "D"));
  answers.clear();
  ask("ab", "1");
  EXPECT_THAT(node.calls, SizeIs(3)) << "nothing is under way";
}

TEST_F(BatchesTest, NobodyWaitsForACallThatHangs) {
  ask("ab", "1");
  ask("cd", "2");
  pass(14ms);
  EXPECT_THAT(node.calls, SizeIs(1));
  pass(1ms);
  EXPECT_THAT(node.calls, SizeIs(2));
  answer(1, "B");
  EXPECT_THAT(answers, ElementsAre("", "B"));
  Model hasty = model();
  hasty.batch->most_wait = 2ms;
  ask("ef", "3", hasty);
  pass(2ms);
  EXPECT_THAT(node.calls, SizeIs(3));
}

TEST_F(BatchesTest, AnotherSizeOrAnotherFunctionIsAnotherCall) {
  Model wide = model(), other = model();
  wide.signature.inputs[0].shape = {kAnySize, 1};
  other.name = "other";
  InferRequest narrow;
  narrow.call.inputs = {{.buffer = 0, .bytes = "a"}, {.buffer = 1, .bytes = "1"}};
  narrow.shapes = {{1, 1}, {1}};
  ask("ab", "1");
  ask("ab", "1", other);
  batches.call(wide, *Batches::take_from(wide, narrow), [](const auto&) {});
  EXPECT_THAT(node.calls, SizeIs(3));
}

TEST_F(BatchesTest, OnesErrorIsNotAnothers) {
  ask("ab", "1");
  for (const char* n : {"2", "3", "4", "5"}) ask(*n == '4' ? "!!" : "cd", n);
  answer(0, "A");
  finish(1, Outcome{.kind = OutcomeKind::kFunctionError, .payload = "bad row"});
  ASSERT_THAT(node.calls, SizeIs(4)) << "each half";
  EXPECT_EQ(sent(2, 0) + " " + sent(3, 0), "23 45");
  answer(2, "BC");
  finish(3, Outcome{.kind = OutcomeKind::kCrashed, .failure = {.text = "bad row"}});
  ASSERT_THAT(node.calls, SizeIs(6));
  finish(4, Outcome{.kind = OutcomeKind::kFunctionError, .payload = "bad row"});
  answer(5, "E");
  EXPECT_THAT(answers, ElementsAre("A", "B", "C", HasSubstr("bad row"), "E"));
  EXPECT_THAT(node.calls, SizeIs(6)) << "alone it is its own error";
  ask("ab", "1");
  EXPECT_THAT(node.calls, SizeIs(7)) << "nothing is left of it";
}

TEST_F(BatchesTest, AnAnswerThatTheModelDoesNotSayIsAnErrorOfOne) {
  const std::string none = "{}", lacks = wire::write_safetensors({}),
                    wide = wire::write_safetensors({{"y", ElementType::kU8, {2, 1}, "BB"}}),
                    short_of = wire::write_safetensors({{"y", ElementType::kU8, {1}, "B"}});
  for (const std::string& payload : {none, lacks, wide, short_of}) {
    answers.clear();
    node.calls.clear();
    ask("ab", "1");
    ask("cd", "2");
    ask("!!", "3");
    answer(0, "A");
    finish(1, Outcome{.payload = payload});
    ASSERT_THAT(node.calls, SizeIs(4));
    answer(2, "B");
    finish(3, Outcome{.payload = none});
    EXPECT_THAT(answers, ElementsAre("A", "B", HasSubstr("no safetensors file")));
  }
}

TEST_F(BatchesTest, WhatIsNobodysFaultIsToldToAll) {
  for (Result<Outcome> outcome :
       {Result<Outcome>(fail(Errc::kResourceExhausted, "the queue is full")),
        Result<Outcome>(Outcome{.kind = OutcomeKind::kTimeout, .failure = {.text = "the queue is full"}})}) {
    answers.clear();
    ask("ab", "1");
    ask("cd", "2");
    ask("ef", "3");
    answer(node.calls.size() - 1, "A");
    finish(node.calls.size() - 1, std::move(outcome));
    EXPECT_THAT(answers, ElementsAre("A", HasSubstr("the queue is full"), HasSubstr("the queue is full")));
  }
}

// Its author's business, where nobody asks for it.
TEST_F(BatchesTest, AnOutputThatNobodyWantsNeedNotBeThere) {
  Model two = model();
  two.signature.outputs.push_back({.name = "z", .type = ElementType::kU8, .shape = {kAnySize}, .buffer = 1});
  ask("ab", "1", two);
  ask("cd", "2", two);
  ask("ef", "3", two);
  answer(0, "A");
  answer(1, "BC");
  EXPECT_THAT(answers, ElementsAre("A", "B", "C"));
}

TEST_F(BatchesTest, ADeadlineThatIsMetLeavesNoTimer) {
  const std::int64_t now_ms = wall_clock_ms();
  for (int i = 0; i < 1000; ++i) {
    ask("ab", "1", model(), now_ms + 3'600'000);
    answer(node.calls.size() - 1, "A");
  }
  EXPECT_LT(timers.size(), 3U);
  pass(2s);
  EXPECT_THAT(timers, IsEmpty()) << "nobody has a deadline any more";
}

TEST_F(BatchesTest, RefusalsSayNothingOfHowLongCallsTake) {
  ask("ab", "1");  // under way all the time
  for (int i = 0; i < 100; ++i) {
    ask("cd", "2");
    pass(15ms);
    finish(node.calls.size() - 1, fail(Errc::kResourceExhausted, "the queue is full"));
  }
  ASSERT_THAT(node.calls, SizeIs(101));
  ask("cd", "2");
  pass(14ms);
  EXPECT_THAT(node.calls, SizeIs(101)) << "it waits as before";
}

TEST_F(BatchesTest, WhoHasGoneIsNotCalledNorAnswered) {
  ask("ab", "1");
  const auto waits = ask("cd", "2"), stays = ask("ef", "3");
  cancels[waits]();
  answer(0, "A");
  EXPECT_EQ(sent(1, 0), "3");
  ask("gh", "4");
  cancels[stays]();
  EXPECT_TRUE(node.calls[1]->cancelled) << "nobody wants it any more";
  ASSERT_THAT(node.calls, SizeIs(3)) << "and it is over for those who wait";
  answer(2, "D");
  answers.pop_back();
  cancels.pop_back();
  EXPECT_THAT(answers, ElementsAre("A", "", ""));
  const auto first = ask("ab", "1"), second = ask("cd", "2"), third = ask("ef", "3");
  answer(3, "A");
  cancels[second]();
  cancels[first]();  // long answered
  EXPECT_FALSE(node.calls[4]->cancelled);
  finish(4, Outcome{.kind = OutcomeKind::kFunctionError, .payload = "no"});
  ASSERT_THAT(node.calls, SizeIs(6)) << "made again for the one that is there";
  answer(5, "C");
  EXPECT_EQ(answers[third], "C");
  EXPECT_EQ(answers[second], "");
}

TEST_F(BatchesTest, ADeadlineIsEachOnesOwn) {
  const std::int64_t now_ms = wall_clock_ms();
  ask("ab", "1");
  const auto soon = ask("cd", "2", model(), now_ms + 60'000), never = ask("ef", "3");
  const auto late = ask("gh", "4", model(), now_ms + 3'600'000);
  answer(0, "A");
  ASSERT_THAT(node.calls, SizeIs(2));
  EXPECT_EQ(node.calls[1]->invocation.deadline_ms, std::nullopt) << "one of them waits for as long as it takes";
  pass(1min);
  EXPECT_EQ(answers[soon], "error: the deadline has passed") << "though the call goes on";
  answer(1, "BCD");
  EXPECT_EQ(answers[never] + answers[late], "CD");
  EXPECT_EQ(answers[soon], "error: the deadline has passed");
}

TEST_F(BatchesTest, ACallHasTheLastDeadlineOfItsOwnAndIsGivenUpWithIt) {
  const std::int64_t now_ms = wall_clock_ms();
  const auto first = ask("ab", "1", model(), now_ms + 60'000);
  EXPECT_EQ(node.calls[0]->invocation.deadline_ms, now_ms + 60'000);
  ask("ef", "3", model(), now_ms + 90'000);
  pass(1min);
  EXPECT_TRUE(node.calls[0]->cancelled);
  EXPECT_EQ(answers[first], "error: the deadline has passed");
  ASSERT_THAT(node.calls, SizeIs(2)) << "which was free then";
  const auto no_time = ask("gh", "4", model(), now_ms - 1);
  ASSERT_THAT(node.calls, SizeIs(3)) << "it cannot wait";
  pass(0ms);
  EXPECT_EQ(answers[no_time], "error: the deadline has passed");
}

TEST_F(BatchesTest, NoCallIsLargerThanAPayload) {
  Model large = model(65536);
  large.signature.inputs.pop_back();
  large.signature.inputs[0].shape = {kAnySize, 1 << 20};
  const auto of = [&](std::size_t rows) {
    InferRequest asked;
    asked.call.inputs = {{.buffer = 0, .bytes = std::string(rows << 20, 'x')}};
    asked.shapes = {{rows, 1 << 20}};
    return asked;
  };
  for (int i = 0; i < 8; ++i) {
    InferRequest asked = of(1);
    batches.call(large, *Batches::take_from(large, asked), [](const auto&) {});
  }
  EXPECT_THAT(node.calls, SizeIs(2)) << "one, then five that fill a call; two wait";
  for (const auto& call : node.calls) EXPECT_LE(call->invocation.payload.size(), kMaxSyncPayloadBytes);
  InferRequest asked = of(6);
  EXPECT_FALSE(Batches::take_from(large, asked)) << "alone, and refused as any that is too large";
  EXPECT_EQ(asked.call.inputs[0].bytes.size(), 6U << 20) << "it keeps what it has";
}

TEST_F(BatchesTest, NoCallHasALargerAnswerThanAPayload) {
  Model large = model(65536);
  large.signature.outputs[0].shape = {kAnySize, 2 << 20};
  InferRequest three = request("abcdef", "123"), two = request("abcd", "12");
  EXPECT_FALSE(Batches::take_from(large, three));
  EXPECT_TRUE(Batches::take_from(large, two));
}

TEST_F(BatchesTest, WhatIsNotOfRowsGoesAlone) {
  InferRequest none = request("", ""), uneven = request("abcd", "1"), many = request("abcdef", "123");
  EXPECT_FALSE(Batches::take_from(model(), none));
  EXPECT_FALSE(Batches::take_from(model(), uneven));
  EXPECT_FALSE(Batches::take_from(model(2), many)) << "more than a call has";
  Model task = model();
  task.signature.form = CallForm::kBuffers;
  EXPECT_FALSE(Batches::take_from(task, many)) << "its buffers are numbered in another way";
  Model alone = model();
  alone.batch.reset();
  EXPECT_FALSE(Batches::take_from(alone, many));
}

TEST_F(BatchesTest, ARefusalAtOnceLeavesNothing) {
  class Refuses : public FakeNode {
   public:
    CancelHandle invoke(InvokeRequest, Callback<Outcome> done) override {
      return done(fail(Errc::kNotFound, "gone")), CancelHandle();
    }
  } refuses;
  Batches at_once(refuses,
                  {.now = [] { return Instant(); }, .after = [](Duration, const auto&) { FAIL() << "nothing waits"; }});
  for (int i = 0; i < 3; ++i) {
    InferRequest asked = request("ab", "1");
    std::string said;
    at_once.call(model(), *Batches::take_from(model(), asked),
                 [&](const Result<Answered>& answer) { said = answer.error().message; });
    EXPECT_EQ(said, "gone");
  }
}

TEST_F(BatchesTest, WhatComesAfterItsEndIsNotHeard) {
  auto ends = std::make_unique<Batches>(
      node,
      LoopClock{.now = [this] { return now; },
                .after = [this](Duration wait, std::function<void()> then) { timers.emplace_back(now + wait, then); }});
  for (int i = 0; i < 2; ++i) {
    InferRequest asked = request("ab", "1");
    cancels.push_back(ends->call(model(), *Batches::take_from(model(), asked), [](const auto&) { FAIL(); }));
  }
  ends.reset();
  cancels[0]();
  answer(0, "A");
  pass(1s);
  EXPECT_THAT(node.calls, SizeIs(1));
}

}  // namespace
}  // namespace fairlead::inference
