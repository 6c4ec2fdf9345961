// Which change of each function a node has seen last, so that nodes without a common store agree: the last writer wins.
//
// A version is (time, node): the wall clock of the node that took the change, in ms, and that node's name where two are equal. The
// time is at least one
// above that of any version of the function that the node has seen, so whoever has seen a change comes after it, however wrong its
// clock is.
// Functions that were there before the cluster have the time at which they were changed.
//
// Example. A creates f at 100 (A). B, whose clock is an hour behind, has seen that and updates f: (101, B). A deletes f while C,
// which is cut off, updates
// it: (200, A, deleted) and (150, C). When C is back, the deletion wins on all.
//
// The digest is the same where the same versions are known, in whatever order they came.
//
// What is deleted is kept as long as there is room for kMostDeleted of them: beyond, a node that was away for that long brings the
// function back.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead {

struct FunctionVersion {
  std::int64_t ms = 0;
  std::string node;
  bool is_deleted = false;

  friend bool operator<(const FunctionVersion& a, const FunctionVersion& b) {
    return a.ms != b.ms ? a.ms < b.ms : a.node < b.node;
  }
  bool operator==(const FunctionVersion&) const = default;
};

// Versions that are further ahead of a clock than what others say is believed.
struct TooFarAhead {
  std::size_t count = 0;
  std::string function;       // of the furthest
  std::int64_t ahead_ms = 0;  // how far that is

  void add(const std::string& of, std::int64_t by_ms);
  // "function f has a version 30 hours ahead of this node's clock, the furthest of 2". REQUIRES: count > 0
  std::string text() const;
};

class FunctionVersions {
 public:
  static constexpr std::size_t kMost = 20'000, kMostDeleted = 10'000;
  // Ahead of this node's clock, for what peers say: else one wrong clock would win for ever.
  static constexpr std::int64_t kMostAheadMs = std::int64_t{24} * 3600 * 1000;

  // What this node changed itself, now.
  FunctionVersion next(const std::string& function, std::int64_t now_ms, const std::string& node) const;
  void set(const std::string& function, FunctionVersion version);
  const FunctionVersion* find(const std::string& function) const;
  const std::map<std::string, FunctionVersion>& all() const { return versions_; }
  std::uint64_t digest() const { return digest_; }

  // Those of `theirs` that are newer than what is known here, by name, but for what is too far ahead of `now_ms`.
  struct Missing {
    std::vector<std::string> names;
    TooFarAhead refused;
  };
  Missing missing(const FunctionVersions& theirs, std::int64_t now_ms) const;
  // Of what is known here: it stays, since a clock that was set back undoes no change.
  TooFarAhead too_far_ahead(std::int64_t now_ms) const;

  // A line for each. Reading: kCorrupt or kInvalidArgument names the line; whatever the clocks say.
  std::string text() const;
  static Result<FunctionVersions> parse(std::string_view text);

 private:
  void forget_oldest_deleted();

  std::map<std::string, FunctionVersion> versions_;
  std::size_t deleted_ = 0;
  std::uint64_t digest_ = 0;
};

}  // namespace fairlead
