// What a client of the node was promised, and what happened since: the invariants of the chaos.
//
//   a function is an incarnation: "f" of tenant a, deleted, is another one than "f" of tenant b that comes after it
//   an event is accepted for one incarnation; acknowledged once its caller has read 202
//
// I1 An acknowledged event of a function that is there ran with success, waits, or is a dead letter: after every start, and at rest.
// I2 Nothing runs as another incarnation than the one that it was sent to.
// I3 An event runs no more often than its function's attempts, but for faults of the node and for what a power cut undid.
// I4 Attempts that were on disk are counted after a start.
// I5 A dead letter is of a function that is there, and of its incarnation. After a function's deletion nothing of its is left.
// I6 What was acknowledged of functions is so after a start: there, or gone.
// I7 At rest nothing waits, and bodies and answers hold no byte.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace fairlead::chaos {

struct Incarnation {
  // kRefused: a disk that failed was the answer. It is not there, and after a start it may be: what a failed commit had written is found
  // by the next start, unless another one has written over it.
  // kLeaving: deleted and not answered yet, or answered so. After a start it is there, or not.
  enum class State { kAsked, kThere, kLeaving, kRefused, kGone };
  std::string name, tenant;
  State state = State::kAsked;
  int retries = 2;
};

struct PromisedEvent {
  int incarnation = -1;
  std::string id;  // once acknowledged
  bool has_succeeded = false;
  int runs_left = 0;
  int failures = 0, failures_on_disk = 0;  // by its function's fault, while it ran
};

class Book {
 public:
  // What went wrong first; "": nothing.
  const std::string& violation() const { return violation_; }
  void expect(bool holds, const std::string& what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  int add_incarnation(const std::string& name, const std::string& tenant);
  Incarnation& incarnation(int number) { return incarnations_.at(static_cast<std::size_t>(number)); }
  // The one that has this name, or may have; -1: none.
  int named(const std::string& name) const;

  // The word that a payload begins with names what was sent; `incarnation`: that has the name now.
  void sent(const std::string& payload, int incarnation);
  void acknowledged(const std::string& word, const std::string& id);
  void delivered(const std::string& payload, int incarnation);
  void succeeded(const std::string& payload);
  void failed(const std::string& payload);
  void failed_by_node(const std::string& payload);
  // A redrive or a failing disk makes attempts a matter of chance, until a start reads them again.
  void lose_count() { is_exact_ = false; }
  void settled();  // all that happened is on disk

  // After a start. `functions`: incarnations that were found.
  void check_start(const std::vector<int>& functions, const std::vector<QueuedEvent>& events,
                   const std::vector<DeadLetter>& letters);
  // When nothing happens any more.
  void check_rest(const std::vector<DeadLetter>& letters, std::size_t waiting, std::size_t held_bytes);

  // I1 alone. `waiting`: words of what waits.
  void check_kept(const std::map<std::string, int>& waiting, const std::vector<DeadLetter>& letters, const char* when);

  std::size_t promised() const;  // events acknowledged
  std::size_t successes() const;

 private:
  PromisedEvent* event_of(const std::string& payload);
  void check_letters(const std::vector<DeadLetter>& letters);

  std::string violation_;
  bool is_exact_ = true;  // attempts are known
  std::vector<Incarnation> incarnations_;
  std::map<std::string, PromisedEvent> events_;  // by word
  std::map<std::string, int> calls_;             // synchronous: the incarnation, by word
};

}  // namespace fairlead::chaos
