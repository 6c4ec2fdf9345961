#include "edge/console/kept_answers.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

class KeptAnswersTest : public ::testing::Test {
 protected:
  // "question 3": the third that was made.
  std::string ask(const std::string& question) {
    const std::string* answer = answers_.get(question, [&] {
      now_ += cost_;
      return question + " " + std::to_string(++made_);
    });
    return answer == nullptr ? "none" : *answer;
  }

  Instant now_{1h};
  Duration cost_ = 20ms;
  int made_ = 0;
  KeptAnswers answers_{[this] { return now_; }};
};

TEST_F(KeptAnswersTest, WhoAsksNowAndThenGetsAFreshOne) {
  for (int i = 1; i <= 10; ++i, now_ += 1s) EXPECT_EQ("a " + std::to_string(i), ask("a"));
}

TEST_F(KeptAnswersTest, AFloodGetsTheAnswerOfBeforeAndTakesATenth) {
  const Instant began = now_;
  while (now_ - began < 10s) {
    EXPECT_NE("none", ask("a"));
    now_ += 1ms;
  }
  EXPECT_LE(made_ * cost_, (now_ - began) / 10 + KeptAnswers::kMostSaved + cost_);
  EXPECT_GE(made_ * cost_, (now_ - began) / 20);
}

TEST_F(KeptAnswersTest, QuestionsAreNotMixedUpAndAFloodOfThemIsRefused) {
  EXPECT_EQ("a 1", ask("a"));
  EXPECT_EQ("b 2", ask("b"));
  cost_ = 1s;
  EXPECT_EQ("c 3", ask("c"));
  EXPECT_EQ("a 1", ask("a"));
  EXPECT_EQ("none", ask("d"));
}

TEST_F(KeptAnswersTest, ThereIsABoundOnWhatIsKept) {
  for (int i = 0; i < 1000; ++i, now_ += 1s) ask(std::to_string(i));
  EXPECT_EQ(KeptAnswers::kMost, answers_.size());
}

}  // namespace
}  // namespace fairlead
