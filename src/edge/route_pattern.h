// The path of a route: literal segments, and named parameters, each in the place of a whole segment.
//
//   /v2/models/{model}/versions/{version}/infer    parameters stand anywhere
//   /v1/objects/{key*}                             the last one may take all segments that follow, at least one, with "/" between
//
// Segments are compared after percent-decoding, which is done once, by net::parse_target: "%2541" is the text "%41".
//
// Plain value. Threads: const after parse().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fairlead {

// By name, decoded.
using PathParameters = std::vector<std::pair<std::string, std::string>>;

// How the paths that one pattern matches lie to those of another.
enum class PatternOrder {
  kApart,     // no path matches both
  kSame,      // every path that matches one matches the other
  kNarrower,  // all that match the first match the second, and not the other way round
  kWider,
  kCrossing,  // some match both, some only the first, some only the second
};

class RoutePattern {
 public:
  // kInvalidArgument names what is wrong: no "/" at the front, a parameter without a name, with a name that is there twice, in a
  // part of a segment, or with "*" before the end.
  static Result<RoutePattern> parse(std::string_view text);

  bool matches(const std::vector<std::string>& segments) const;
  // REQUIRES: matches(segments).
  PathParameters parameters(std::vector<std::string> segments) const;
  PatternOrder compare(const RoutePattern& other) const;
  // Whether all paths of the pattern begin with these segments.
  bool begins_with(const std::vector<std::string>& prefix) const;
  const std::string& text() const { return text_; }

 private:
  struct Segment {
    bool is_parameter = false;
    std::string text;  // the literal, or the parameter's name
  };

  Status add_segment(std::string_view segment, bool is_last);
  // The literal that a path must have there; null: anything will do.
  const std::string* literal_at(std::size_t index) const;

  std::string text_;
  std::vector<Segment> segments_;
  bool takes_rest_ = false;  // the last segment stands for one or more
};

}  // namespace fairlead
