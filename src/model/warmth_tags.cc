#include "model/warmth_tags.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/function.h"

namespace fairlead {
namespace {

const std::string kReplicas = "gpu:replicas";

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// MIN and MAX of "N" or "MIN:MAX"; {0, kMaxReplicas} where nobody said.
std::pair<int, int> replicas(const Tags& tags) {
  const auto tag = tags.find(kReplicas);
  if (tag == tags.end()) return {0, kMaxReplicas};
  const std::size_t colon = tag->second.find(':');
  const std::string first = tag->second.substr(0, colon);
  const std::string second = colon == std::string::npos ? first : tag->second.substr(colon + 1);
  return {number(first), number(second)};
}

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

}  // namespace

Result<std::chrono::seconds> read_keep(std::string_view what, std::string_view text) {
  const char* const last = text.data() + text.size();
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), last, count);
  std::int64_t unit = error == std::errc() && end == last ? 1 : 0;
  for (const Unit& known : kUnits) {
    if (error == std::errc() && end + 1 == last && *end == known.letter) unit = known.seconds;
  }
  if (unit == 0 || count < 0 || count > kLongestKeep.count() / unit) {
    return fail(Errc::kInvalidArgument, "{} is '{}'; it must be a time from 0 to {} such as 90s, 10m or 2h", what,
                text.substr(0, 64), keep_text(kLongestKeep));
  }
  return std::chrono::seconds(count * unit);
}

std::string keep_text(std::chrono::seconds keep) {
  for (const Unit& unit : kUnits) {
    if (keep.count() % unit.seconds == 0 && keep.count() > 0) {
      return fmt::format("{}{}", keep.count() / unit.seconds, unit.letter);
    }
  }
  return "0s";
}

Result<WarmHold> held_as(const Tags& tags) {
  WarmHold held;
  const auto keep = tags.find(std::string(kKeepTag));
  if (keep != tags.end()) {
    const auto time = read_keep(fmt::format("tag {}", kKeepTag), keep->second);
    if (!time) return fail(time.error());
    held.keep = *time;
    held.pin = PinKind::kHost;
  }
  const auto pin = tags.find(std::string(kPinTag));
  if (pin == tags.end()) return held;
  if (pin->second == "device") {
    held.pin = PinKind::kDevice;
  } else if (pin->second == "host") {
    held.pin = PinKind::kHost;
  } else if (pin->second == "none") {
    held.pin = PinKind::kNone;
  } else {
    return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be device, host or none", kPinTag,
                pin->second.substr(0, 64));
  }
  return held;
}

Result<Tags> with_instances_kept(Tags tags, int least) {
  if (least < 0 || least > kMaxReplicas) {
    return fail(Errc::kInvalidArgument, "{} instances cannot be kept started; it must be 0 to {}", least, kMaxReplicas);
  }
  const int most = std::max(replicas(tags).second, least);
  if (least == 0 && most == kMaxReplicas) {  // what it is without the tag
    tags.erase(kReplicas);
    return tags;
  }
  tags[kReplicas] = fmt::format("{}:{}", least, most);
  return tags;
}

int instances_kept(const Tags& tags) {
  return replicas(tags).first;
}

}  // namespace fairlead
