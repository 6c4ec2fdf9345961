#include "shim/requests.h"

#include <time.h>

namespace fairlead::shim {

Requests::Question* Requests::find(std::uint64_t request) {
  for (Question& question : questions_) {
    if (question.state != State::kFree && question.request == request) return &question;
  }
  return nullptr;
}

std::uint64_t Requests::open() {
  const Guard guard(lock_);
  for (Question& question : questions_) {
    if (question.state != State::kFree) continue;
    question.state = State::kOpen;
    question.request = ++last_;
    return question.request;
  }
  return 0;
}

bool Requests::wait(std::uint64_t request, wire::Frame* answer, int limit_ms) {
  timespec until = {};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += limit_ms / 1000;
  until.tv_nsec += limit_ms % 1000 * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    ++until.tv_sec;
  }
  const Guard guard(lock_);
  Question* const question = find(request);
  if (question == nullptr) return false;
  while (question->state == State::kOpen) {
    if (::pthread_cond_clockwait(&changed_, lock_.native(), CLOCK_MONOTONIC, &until) != 0) break;
  }
  const bool answered = question->state == State::kAnswered;
  if (answered) *answer = question->answer;
  question->state = State::kFree;
  return answered;
}

void Requests::cancel(std::uint64_t request) {
  const Guard guard(lock_);
  if (Question* const question = find(request)) question->state = State::kFree;
}

void Requests::answer(std::uint64_t request, const wire::Frame& frame) {
  const Guard guard(lock_);
  Question* const question = find(request);
  if (question == nullptr || question->state != State::kOpen) return;
  question->answer = frame;
  question->state = State::kAnswered;
  ::pthread_cond_broadcast(&changed_);
}

void Requests::fail_all() {
  const Guard guard(lock_);
  for (Question& question : questions_) {
    if (question.state == State::kOpen) question.state = State::kFailed;
  }
  ::pthread_cond_broadcast(&changed_);
}

void Requests::reset() {
  lock_.reset();
  changed_ = PTHREAD_COND_INITIALIZER;
  for (Question& question : questions_) question.state = State::kFree;
}

}  // namespace fairlead::shim
