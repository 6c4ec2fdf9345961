// How much work of a stream is in flight, in estimated time of the device, and how long pieces of work take. It decides what the leash
// (leash.h) does, and knows nothing of events.
//
// A stream's kernels are tied together in links, each with an event behind its last kernel. A link is tied off when it is worth an eighth
// of a millisecond, so an event costs every twelfth kernel of 10 us something, and a longer one no more than itself.
//
//   launches   k k k k k k k k k k k k |event| k k k k k k k k k k k k |event| k k k ...
//   in flight  ──── 0.4 ms of what has not ended, and one piece: then wait ────────
//
// How long a piece takes is known from one of the same function and grid. Of a link that began when the one before it ended, the time
// between their events is divided among its pieces, unless the program took so long to launch them that the stream may have been idle
// in between. A piece that is not known is a link of its own, with an event before it where nothing else is in flight.
//
// What runs now is taken for as much shorter as it has run: a kernel of 2 ms has another behind it for its last 0.4 ms, and the device
// never waits for the program.
//
// A time that was longer than ever may have been so for once: the device was somebody else's meanwhile, or the host slept. Such an
// estimate is doubted until the next time, and a doubted piece that is alone in flight has one behind it. What is in flight is estimated
// anew whenever something was learnt, in both directions.
//
// Bound: where pieces take what they took, at most 0.4 ms and one piece are in flight. A piece that takes longer for the first time has
// behind it what was let go for the time before, and nothing more once that has been seen, or one more piece where it was alone.
//
// Example: 300 launches of 10 us and no wait. The first is measured, 40 are let through, and then as many as end.
//
// Threads: not thread-safe. Pure.
#pragma once

#include <cstdint>

namespace fairlead::shim {

inline constexpr std::uint64_t kLeashNs = 400'000;         // in flight, of a stream, before another piece is
inline constexpr std::uint64_t kLinkNs = 125'000;          // worth an event
inline constexpr std::uint64_t kUnknownNs = kLeashNs / 2;  // what a piece is taken for that was never measured

// Names a piece of work: a function or a graph, and its grid. Never 0.
std::uint64_t piece_key(const void* function, std::uint64_t blocks, std::uint64_t threads);

// One that takes longer than it did is believed at once, one that takes less a quarter at a time: what was let go for too little cannot be
// taken back. One that took longer once, and then what it had taken before, is as it was. Of pieces that fall on one entry the last one
// stays.
class PieceTimes {
 public:
  static constexpr std::uint64_t kEntries = 1024;
  std::uint64_t estimate(std::uint64_t key) const {  // 0: not known
    const Entry& entry = entries_[key % kEntries];
    return entry.key == key ? entry.ns : 0;
  }
  // It took longer the last time than ever before.
  bool is_doubted(std::uint64_t key) const {
    const Entry& entry = entries_[key % kEntries];
    return entry.key == key && entry.before_ns != 0;
  }
  void learn(std::uint64_t key, std::uint64_t ns);

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t ns = 0;
    std::uint64_t before_ns = 0;  // the estimate before one that was longer; 0: that was confirmed
  };
  Entry entries_[kEntries] = {};
};

class Strand {
 public:
  static constexpr int kLinks = 16;  // tied off and not ended, at most
  static constexpr int kPieces = 8;  // different ones of a link, at most

  // For how long the next piece has to wait, if all takes as long as estimated; 0: not at all. REQUIRES: what has ended was told.
  std::uint64_t wait_ns(const PieceTimes& times, std::uint64_t key, std::uint64_t now_ns) const;
  // The next piece begins a link: it is worth asking what has ended.
  bool begins_link() const { return open_.pieces == 0; }

  // A piece is about to be launched. True: the begin event belongs before it. REQUIRES: a link that is open and does not suit it was tied
  // off (suits).
  bool add(const PieceTimes& times, std::uint64_t key, std::uint64_t now_ns);
  // Whether the piece may join the open link.
  bool suits(const PieceTimes& times, std::uint64_t key) const;
  // After it was launched: whether the link is long enough.
  bool is_full() const {
    return open_.pieces > 0 && (open_.ns >= kLinkNs || open_.is_unknown || open_.pieces == kPieces);
  }
  // An event is behind the open link: it is the event of this number. REQUIRES: !begins_link().
  int tie_off();

  // The oldest link that was tied off; its event's number. -1: there is none.
  int oldest() const { return count_ > 0 ? first_ : -1; }
  // Where its time begins.
  enum class Begin { kUnknown, kBeginEvent, kEventBefore };
  Begin begin_of_oldest() const { return links_[first_].begin; }
  int event_before_oldest() const { return (first_ + kLinks - 1) % kLinks; }
  // It has ended, `ns` after its beginning; 0: not known. What is in flight is estimated anew.
  void oldest_ended(PieceTimes& times, std::uint64_t ns, std::uint64_t now_ns);
  // Nothing is in flight any more, or nothing of it counts.
  void clear();

  std::uint64_t in_flight_ns() const { return in_flight_; }

 private:
  struct Piece {
    std::uint64_t key = 0;
    std::uint64_t count = 0;
    std::uint64_t ns = 0;  // of all of them, as estimated when they were launched
  };
  struct Link {
    std::uint64_t ns = 0;  // estimated
    int pieces = 0;        // different ones
    Piece piece[kPieces] = {};
    Begin begin = Begin::kUnknown;
    bool is_unknown = false;
    std::uint64_t backlog = 0;                // in flight when it began
    std::uint64_t first_ns = 0, last_ns = 0;  // when its first and its last piece were launched
  };
  static bool had_no_gaps(const Link& link, std::uint64_t ns);
  static void learn(PieceTimes& times, const Link& link, std::uint64_t ns);
  static std::uint64_t estimate_again(const PieceTimes& times, Link& link);
  bool has_one_piece() const;
  static std::uint64_t cost(const PieceTimes& times, std::uint64_t key) {
    const std::uint64_t known = times.estimate(key);
    return known != 0 ? known : kUnknownNs;
  }

  Link links_[kLinks] = {};
  int first_ = 0, count_ = 0;
  Link open_;
  std::uint64_t in_flight_ = 0;
  std::uint64_t began_ns_ = 0;  // when the oldest link in flight did, or a little later
};

}  // namespace fairlead::shim
