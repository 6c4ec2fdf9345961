// Answers that are dear to make, and that anybody may ask for as often as they like, by what was asked. Making them takes at most a tenth of the
// serving thread, and what was saved up, at most 50 ms (as edge/kept_text.h, which has one text); who asks beyond that gets the answer of before to
// the same question, if there is one.
//
// Example: an answer takes 5 ms. Asked for once a second by ten viewers it is always fresh; in a flood it is made every 50 ms.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"

namespace fairlead {

class KeptAnswers {
 public:
  static constexpr std::size_t kMost = 16;
  static constexpr int kShare = 10;
  static constexpr Duration kMostSaved = std::chrono::milliseconds(50);

  explicit KeptAnswers(std::function<Instant()> clock = monotonic_now) : clock_(std::move(clock)) {}

  // Null: there is no time for it now, and nobody has asked it lately.
  const std::string* get(const std::string& question, const std::function<std::string()>& make) {
    const Instant before = clock_();
    saved_ = std::min(kMostSaved, saved_ + (before - seen_at_) / kShare);
    seen_at_ = before;
    const auto known = answers_.find(question);
    if (saved_ <= Duration(0)) return known == answers_.end() ? nullptr : &known->second.text;
    if (known == answers_.end() && answers_.size() >= kMost) forget_oldest();
    Answer& answer = answers_[question];
    answer = {make(), before};
    saved_ -= clock_() - before;
    return &answer.text;
  }
  std::size_t size() const { return answers_.size(); }

 private:
  struct Answer {
    std::string text;
    Instant made_at;
  };

  void forget_oldest() {
    answers_.erase(std::min_element(answers_.begin(), answers_.end(),
                                    [](const auto& a, const auto& b) { return a.second.made_at < b.second.made_at; }));
  }

  const std::function<Instant()> clock_;
  std::map<std::string, Answer> answers_;
  Duration saved_ = kMostSaved;  // of the thread's time; below 0: the last one was dearer than what there was
  Instant seen_at_{};
};

}  // namespace fairlead
