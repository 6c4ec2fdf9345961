#include "shim/leash_book.h"

#include <algorithm>

namespace fairlead::shim {
namespace {

// Not longer than the other by more than a quarter.
bool is_about(std::uint64_t ns, std::uint64_t other) {
  return ns <= other + other / 4;
}

}  // namespace

std::uint64_t piece_key(const void* function, std::uint64_t blocks, std::uint64_t threads) {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(function);
  for (const std::uint64_t part : {blocks, threads}) key = (key ^ part) * 0x9e3779b97f4a7c15U;
  key ^= key >> 32;
  return std::max<std::uint64_t>(key, 1);
}

void PieceTimes::learn(std::uint64_t key, std::uint64_t ns) {
  Entry& entry = entries_[key % kEntries];
  ns = std::max<std::uint64_t>(ns, 1);
  const std::uint64_t before = entry.before_ns;
  if (entry.key != key) {
    entry = {key, ns, 0};
  } else if (ns > entry.ns) {
    entry = {key, ns, is_about(ns, entry.ns) ? 0 : entry.ns};
  } else if (before != 0 && is_about(ns, before)) {
    entry = {key, std::max(ns, before - before / 4), 0};
  } else {
    entry = {key, entry.ns - (entry.ns - ns) / 4, 0};
  }
}

std::uint64_t Strand::wait_ns(const PieceTimes& times, std::uint64_t key, std::uint64_t now_ns) const {
  if (count_ == kLinks - 1) return kLinkNs;
  if (times.is_doubted(key) && has_one_piece()) return 0;
  const std::uint64_t oldest = count_ > 0 ? links_[first_].ns : open_.ns;
  const std::uint64_t ran = std::min(now_ns - std::min(now_ns, began_ns_), oldest);
  const std::uint64_t left = in_flight_ - std::min(in_flight_, ran);
  return left < kLeashNs ? 0 : left - kLeashNs + 1;
}

bool Strand::suits(const PieceTimes& times, std::uint64_t key) const {
  return open_.pieces == 0 || (!open_.is_unknown && times.estimate(key) != 0 && !is_full());
}

bool Strand::add(const PieceTimes& times, std::uint64_t key, std::uint64_t now_ns) {
  const bool is_unknown = times.estimate(key) == 0;
  const std::uint64_t ns = cost(times, key);
  if (in_flight_ == 0) began_ns_ = now_ns;
  bool begin_event = false;
  if (open_.pieces == 0) {
    // Of one that is known for long nothing would be in flight when the next begins, and its time would never be learnt again.
    begin_event = count_ == 0 && (is_unknown || ns >= kLeashNs);
    open_.begin = count_ > 0 ? Begin::kEventBefore : begin_event ? Begin::kBeginEvent : Begin::kUnknown;
    open_.is_unknown = is_unknown;
    open_.backlog = in_flight_;
    open_.first_ns = now_ns;
  }
  open_.last_ns = now_ns;
  open_.ns += ns;
  in_flight_ += ns;
  Piece* const end = open_.piece + open_.pieces;
  Piece* const found = std::find_if(open_.piece, end, [key](const Piece& piece) { return piece.key == key; });
  if (found == end) {
    ++open_.pieces;
    *found = {key, 0, 0};
  }
  ++found->count;
  found->ns += ns;
  return begin_event;
}

int Strand::tie_off() {
  const int index = (first_ + count_) % kLinks;
  links_[index] = open_;
  ++count_;
  open_ = {};
  return index;
}

// Where launching took less than what was in flight, there was always something to do; where it took little of the time, a gap was little.
bool Strand::had_no_gaps(const Link& link, std::uint64_t ns) {
  return link.last_ns - link.first_ns <= std::max(link.backlog / 2, ns / 8);
}

void Strand::learn(PieceTimes& times, const Link& link, std::uint64_t ns) {
  if (link.is_unknown) return times.learn(link.piece[0].key, ns);
  if (!had_no_gaps(link, ns)) return;
  for (int i = 0; i < link.pieces; ++i) {
    const Piece& piece = link.piece[i];
    const auto part = static_cast<unsigned __int128>(piece.ns) * ns / link.ns;
    times.learn(piece.key, static_cast<std::uint64_t>(part) / piece.count);
  }
}

std::uint64_t Strand::estimate_again(const PieceTimes& times, Link& link) {
  link.ns = 0;
  for (int i = 0; i < link.pieces; ++i) {
    Piece& piece = link.piece[i];
    piece.ns = piece.count * cost(times, piece.key);
    link.ns += piece.ns;
  }
  return link.ns;
}

bool Strand::has_one_piece() const {
  if (count_ + (open_.pieces > 0 ? 1 : 0) != 1) return false;
  const Link& link = count_ > 0 ? links_[first_] : open_;
  return link.pieces == 1 && link.piece[0].count == 1;
}

// The next began when this one ended: `ns` after its beginning, or now at the latest.
void Strand::oldest_ended(PieceTimes& times, std::uint64_t ns, std::uint64_t now_ns) {
  began_ns_ = ns > 0 ? std::min(now_ns, began_ns_ + ns) : now_ns;
  if (ns > 0) learn(times, links_[first_], ns);
  first_ = (first_ + 1) % kLinks;
  --count_;
  in_flight_ = estimate_again(times, open_);
  for (int i = 0; i < count_; ++i) in_flight_ += estimate_again(times, links_[(first_ + i) % kLinks]);
}

void Strand::clear() {
  first_ = (first_ + count_) % kLinks;
  count_ = 0;
  open_ = {};
  in_flight_ = 0;
}

}  // namespace fairlead::shim
