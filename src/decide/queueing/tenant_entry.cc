#include "decide/queueing/tenant_entry.h"

#include <charconv>

#include "model/function.h"

namespace fairlead {
namespace {

constexpr double kLeastWeight = 0.01, kMostWeight = 100;
constexpr std::size_t kMostInFlight = 1024;

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<TenantEntry> tenant_from(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  TenantEntry entry{.name = text.substr(0, first), .share = {}};
  if (Status valid = validate_tenant(entry.name); !valid) return fail(valid.error());
  const std::string weight = first == std::string::npos ? "" : text.substr(first + 1, second - first - 1);
  if (!read(weight, entry.share.weight) || !(entry.share.weight >= kLeastWeight && entry.share.weight <= kMostWeight)) {
    return fail(Errc::kInvalidArgument, "weight of tenant {} is '{}'; it must be a number between {} and {}",
                entry.name, weight, kLeastWeight, kMostWeight);
  }
  if (second == std::string::npos) return entry;
  const std::string most = text.substr(second + 1);
  std::size_t in_flight = 0;
  if (!read(most, in_flight) || in_flight < 1 || in_flight > kMostInFlight) {
    return fail(Errc::kInvalidArgument,
                "invocations in flight of tenant {} are '{}'; it must be a number between 1 and {}", entry.name, most,
                kMostInFlight);
  }
  entry.share.max_concurrency = in_flight;
  return entry;
}

}  // namespace fairlead
