#include "chaos/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"

namespace fairlead::chaos {
namespace {

using State = Incarnation::State;

std::string word_of(const std::string& payload) {
  return payload.substr(0, payload.find(' '));
}

bool is_event(const std::string& word) {
  return word.starts_with('e');
}

}  // namespace

int Book::add_incarnation(const std::string& name, const std::string& tenant) {
  incarnations_.push_back({name, tenant});
  return static_cast<int>(incarnations_.size()) - 1;
}

int Book::named(const std::string& name) const {
  for (std::size_t i = incarnations_.size(); i > 0; --i) {
    const Incarnation& one = incarnations_[i - 1];
    if (one.name == name && one.state != State::kGone && one.state != State::kRefused) return static_cast<int>(i) - 1;
  }
  return -1;
}

void Book::sent(const std::string& payload, int incarnation) {
  const std::string word = word_of(payload);
  spdlog::info("{} is sent to incarnation {}", word, incarnation);
  if (!is_event(word)) {
    calls_[word] = incarnation;
    return;
  }
  PromisedEvent& event = events_[word];
  event.incarnation = incarnation;
  event.runs_left = incarnation < 0 ? 0 : incarnations_.at(static_cast<std::size_t>(incarnation)).retries + 1;
}

void Book::acknowledged(const std::string& word, const std::string& id) {
  spdlog::info("{} is acknowledged: {}", word, id);
  events_[word].id = id;
}

PromisedEvent* Book::event_of(const std::string& payload) {
  const auto found = events_.find(word_of(payload));
  return found == events_.end() ? nullptr : &found->second;
}

void Book::delivered(const std::string& payload, int incarnation) {
  const std::string word = word_of(payload);
  spdlog::info("{} runs as incarnation {}", word, incarnation);
  PromisedEvent* const event = event_of(payload);
  const int meant = event != nullptr ? event->incarnation : calls_.contains(word) ? calls_.at(word) : -1;
  expect(meant == incarnation,
         fmt::format("I2: {} was sent to incarnation {} and runs as {}", word, meant, incarnation));
  if (event == nullptr) return;
  --event->runs_left;
  expect(event->runs_left >= 0 || !is_exact_, fmt::format("I3: {} runs once more than it may", word));
}

void Book::succeeded(const std::string& payload) {
  spdlog::info("{} has succeeded", word_of(payload));
  if (PromisedEvent* const event = event_of(payload)) event->has_succeeded = true;
}

void Book::failed(const std::string& payload) {
  spdlog::info("{} has failed", word_of(payload));
  if (PromisedEvent* const event = event_of(payload)) ++event->failures;
}

void Book::failed_by_node(const std::string& payload) {
  spdlog::info("{} has been failed by the node", word_of(payload));
  if (PromisedEvent* const event = event_of(payload)) ++event->runs_left;
}

void Book::settled() {
  for (auto& [word, event] : events_) event.failures_on_disk = event.failures;
}

void Book::check_start(const std::vector<int>& functions, const std::vector<QueuedEvent>& events,
                       const std::vector<DeadLetter>& letters) {
  const std::set<int> found(functions.begin(), functions.end());
  for (std::size_t i = 0; i < incarnations_.size(); ++i) {
    Incarnation& one = incarnations_[i];
    const bool is_found = found.contains(static_cast<int>(i));
    if (one.state == State::kThere) expect(is_found, fmt::format("I6: incarnation {} of {} is lost", i, one.name));
    if (one.state == State::kGone) expect(!is_found, fmt::format("I6: incarnation {} of {} is back", i, one.name));
    one.state = is_found ? State::kThere : State::kGone;
  }
  std::map<std::string, int> waiting;  // attempts, by word
  for (const QueuedEvent& record : events) {
    const std::string word = word_of(record.invocation.payload);
    waiting[word] = record.attempts;
    PromisedEvent* const event = event_of(word);
    if (event == nullptr) {
      expect(false, fmt::format("I1: {} was found and never sent", word));
      continue;
    }
    const State state = event->incarnation < 0 ? State::kGone : incarnation(event->incarnation).state;
    expect(state != State::kGone, fmt::format("I5: {} of a deleted function waits on disk", word));
    expect(!is_exact_ || record.attempts >= event->failures_on_disk,
           fmt::format("I4: {} has failed {} times, the disk says {}", word, event->failures_on_disk, record.attempts));
    event->failures = event->failures_on_disk = record.attempts;
    if (state != State::kGone) event->runs_left = incarnation(event->incarnation).retries + 1 - record.attempts;
  }
  is_exact_ = true;
  check_letters(letters);
  check_kept(waiting, letters, "after a start");
}

void Book::check_letters(const std::vector<DeadLetter>& letters) {
  for (const DeadLetter& letter : letters) {
    const std::string word = word_of(letter.payload);
    const PromisedEvent* const event = event_of(word);
    if (event == nullptr || event->incarnation < 0) {
      expect(false, fmt::format("I5: a dead letter of {}, which was never accepted", word));
      continue;
    }
    const Incarnation& one = incarnation(event->incarnation);
    expect(one.name == letter.function, fmt::format("I5: {} is a dead letter of {}", word, letter.function));
    expect(one.state != State::kGone,
           fmt::format("I5: {} is a dead letter of incarnation {}, which is deleted", word, event->incarnation));
  }
}

void Book::check_kept(const std::map<std::string, int>& waiting, const std::vector<DeadLetter>& letters,
                      const char* when) {
  std::set<std::string> dead;
  for (const DeadLetter& letter : letters) dead.insert(word_of(letter.payload));
  for (const auto& [word, event] : events_) {
    if (event.id.empty() || event.has_succeeded || event.incarnation < 0) continue;
    const Incarnation& one = incarnation(event.incarnation);
    if (one.state != State::kThere) continue;
    expect(waiting.contains(word) || dead.contains(word), fmt::format("I1: {} of {} is lost {}", word, one.name, when));
  }
}

void Book::check_rest(const std::vector<DeadLetter>& letters, std::size_t waiting, std::size_t held_bytes) {
  expect(waiting == 0, fmt::format("I7: {} events wait at rest", waiting));
  expect(held_bytes == 0, fmt::format("I7: {} bytes are held at rest", held_bytes));
  check_letters(letters);
}

std::size_t Book::promised() const {
  const auto is = [](const auto& entry) { return !entry.second.id.empty(); };
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), is));
}

std::size_t Book::successes() const {
  const auto is = [](const auto& entry) { return entry.second.has_succeeded; };
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), is));
}

}  // namespace fairlead::chaos
