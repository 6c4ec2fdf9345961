#include "edge/route_pattern.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::string_view kBraces = "{}*";

}  // namespace

Result<RoutePattern> RoutePattern::parse(std::string_view text) {
  RoutePattern pattern;
  pattern.text_ = text;
  if (text.empty() || text.front() != '/') {
    return fail(Errc::kInvalidArgument, "route '{}': a path begins with '/'", text);
  }
  std::string_view rest = text.substr(1);
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const bool is_last = slash == std::string_view::npos;
    if (Status added = pattern.add_segment(rest.substr(0, slash), is_last); !added) return fail(added.error());
    rest = is_last ? std::string_view() : rest.substr(slash + 1);
  }
  return pattern;
}

Status RoutePattern::add_segment(std::string_view segment, bool is_last) {
  const bool is_parameter = segment.size() >= 2 && segment.front() == '{' && segment.back() == '}';
  std::string_view name = is_parameter ? segment.substr(1, segment.size() - 2) : segment;
  const bool takes_rest = is_parameter && name.ends_with('*');
  if (takes_rest) name.remove_suffix(1);
  if (name.find_first_of(kBraces) != std::string_view::npos) {
    return fail(Errc::kInvalidArgument, "route '{}': '{}' must be a literal or a parameter as a whole", text_, segment);
  }
  if (is_parameter && name.empty()) {
    return fail(Errc::kInvalidArgument, "route '{}': '{}' has no name", text_, segment);
  }
  if (takes_rest && !is_last) {
    return fail(Errc::kInvalidArgument, "route '{}': '{}' takes all that follow, it must be the last", text_, segment);
  }
  const auto is_it = [&](const Segment& other) { return other.is_parameter && other.text == name; };
  if (is_parameter && std::any_of(segments_.begin(), segments_.end(), is_it)) {
    return fail(Errc::kInvalidArgument, "route '{}': '{}' is there twice", text_, segment);
  }
  segments_.push_back({is_parameter, std::string(name)});
  takes_rest_ = takes_rest;
  return {};
}

bool RoutePattern::matches(const std::vector<std::string>& segments) const {
  if (takes_rest_ ? segments.size() < segments_.size() : segments.size() != segments_.size()) return false;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (!segments_[i].is_parameter && segments_[i].text != segments[i]) return false;
  }
  return true;
}

PathParameters RoutePattern::parameters(std::vector<std::string> segments) const {
  FL_CHECK(matches(segments), "{}", text_);
  PathParameters parameters;
  const std::size_t single = segments_.size() - (takes_rest_ ? 1 : 0);
  for (std::size_t i = 0; i < single; ++i) {
    if (segments_[i].is_parameter) parameters.emplace_back(segments_[i].text, std::move(segments[i]));
  }
  if (takes_rest_) {
    const auto first = segments.begin() + static_cast<std::ptrdiff_t>(single);
    parameters.emplace_back(segments_.back().text, fmt::format("{}", fmt::join(first, segments.end(), "/")));
  }
  return parameters;
}

const std::string* RoutePattern::literal_at(std::size_t index) const {
  return index < segments_.size() && !segments_[index].is_parameter ? &segments_[index].text : nullptr;
}

// The lengths of paths first, then segment by segment: each place where one has a literal and the other none makes it narrower.
PatternOrder RoutePattern::compare(const RoutePattern& other) const {
  const std::size_t mine = segments_.size(), theirs = other.segments_.size();
  if ((!takes_rest_ && mine < theirs) || (!other.takes_rest_ && theirs < mine)) return PatternOrder::kApart;
  bool narrower = other.takes_rest_ && (!takes_rest_ || mine > theirs);
  bool wider = takes_rest_ && (!other.takes_rest_ || theirs > mine);
  for (std::size_t i = 0; i < std::max(mine, theirs); ++i) {
    const std::string* const a = literal_at(i);
    const std::string* const b = other.literal_at(i);
    if (a != nullptr && b != nullptr && *a != *b) return PatternOrder::kApart;
    narrower |= a != nullptr && b == nullptr;
    wider |= a == nullptr && b != nullptr;
  }
  if (narrower && wider) return PatternOrder::kCrossing;
  if (narrower) return PatternOrder::kNarrower;
  return wider ? PatternOrder::kWider : PatternOrder::kSame;
}

bool RoutePattern::begins_with(const std::vector<std::string>& prefix) const {
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    const std::string* const literal = literal_at(i);
    if (literal == nullptr || *literal != prefix[i]) return false;
  }
  return true;
}

}  // namespace fairlead
