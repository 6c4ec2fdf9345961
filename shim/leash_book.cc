#include "shim/leash_book.h"

#include <algorithm>

namespace fairlead::shim {

std::uint64_t piece_key(const void* function, std::uint64_t blocks, std::uint64_t threads) {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(function);
  for (const std::uint64_t part : {blocks, threads}) key = (key ^ part) * 0x9e3779b97f4a7c15U;
  key ^= key >> 32;
  return std::max<std::uint64_t>(key, 1);
}

void PieceTimes::learn(std::uint64_t key, std::uint64_t ns) {
  Entry& entry = entries_[key % kEntries];
  ns = std::max<std::uint64_t>(ns, 1);
  if (entry.key != key || ns > entry.ns) {
    entry = {key, ns};
  } else {
    entry.ns -= (entry.ns - ns) / 4;
  }
}

std::uint64_t Strand::wait_ns(std::uint64_t now_ns) const {
  if (count_ == kLinks - 1) return kLinkNs;
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
    begin_event = is_unknown && count_ == 0;
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

void Strand::oldest_ended(PieceTimes& times, std::uint64_t ns, std::uint64_t now_ns) {
  const Link& link = links_[first_];
  in_flight_ -= std::min(in_flight_, link.ns);
  began_ns_ = now_ns;
  if (ns > 0 && link.is_unknown) times.learn(link.piece[0].key, ns);
  const bool is_telling = ns > 0 && !link.is_unknown && had_no_gaps(link, ns);
  for (int i = 0; is_telling && i < link.pieces; ++i) {
    const Piece& piece = link.piece[i];
    const auto part = static_cast<unsigned __int128>(piece.ns) * ns / link.ns;
    times.learn(piece.key, static_cast<std::uint64_t>(part) / piece.count);
  }
  first_ = (first_ + 1) % kLinks;
  --count_;
}

void Strand::clear() {
  first_ = (first_ + count_) % kLinks;
  count_ = 0;
  open_ = {};
  in_flight_ = 0;
}

}  // namespace fairlead::shim
