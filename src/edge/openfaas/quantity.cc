#include "edge/openfaas/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace fairlead::openfaas {
namespace {

using Wide = unsigned __int128;

constexpr std::size_t kMostDigits = 18;  // what fits 64 bits with room to multiply
constexpr std::size_t kQuoted = 64;

Wide power(unsigned base, unsigned exponent) {
  Wide result = 1;
  for (unsigned i = 0; i < exponent; ++i) result *= base;
  return result;
}

// "1.50": 150 hundredths.
struct Decimal {
  std::uint64_t digits = 0;
  unsigned places = 0;
};

// Takes it from the front of `text`. None: there is none, or it has too many digits.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal value;
  std::size_t at = 0, count = 0;
  bool has_point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !has_point) {
      has_point = true;
    } else if (c >= '0' && c <= '9') {
      if (++count > kMostDigits) return std::nullopt;
      value.digits = value.digits * 10 + static_cast<std::uint64_t>(c - '0');
      value.places += has_point ? 1 : 0;
    } else {
      break;
    }
  }
  if (count == 0) return std::nullopt;
  text.remove_prefix(at);
  return value;
}

struct Factor {
  Wide times = 1, over = 1;
};

// Of a suffix; none: it is none.
std::optional<Factor> factor_of(std::string_view suffix) {
  if (suffix.empty()) return Factor{};
  if (suffix == "m") return Factor{1, 1000};
  constexpr std::array<std::string_view, 6> kDecimal{"k", "M", "G", "T", "P", "E"};
  constexpr std::array<std::string_view, 6> kBinary{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  for (unsigned i = 0; i < kDecimal.size(); ++i) {
    if (suffix == kDecimal[i]) return Factor{power(1000, i + 1), 1};
    if (suffix == kBinary[i]) return Factor{power(1024, i + 1), 1};
  }
  if (suffix.front() != 'e' && suffix.front() != 'E') return std::nullopt;
  suffix.remove_prefix(1);
  unsigned exponent = 0;
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (error != std::errc() || end != suffix.data() + suffix.size() || exponent > kMostDigits) return std::nullopt;
  return Factor{power(10, exponent), 1};
}

Wide divided_up(Wide value, Wide by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

}  // namespace

Result<std::int64_t> parse_quantity(std::string_view field, std::string_view text) {
  std::string_view rest = text;
  const auto value = take_decimal(rest);
  const auto factor = value ? factor_of(rest) : std::nullopt;
  if (factor) {
    const Wide whole = divided_up(Wide{value->digits} * factor->times, power(10, value->places) * factor->over);
    if (whole <= static_cast<Wide>(kMostQuantity)) return static_cast<std::int64_t>(whole);
  }
  return fail(Errc::kInvalidArgument,
              "{} is '{}'; it must be a quantity between 0 and {}, such as 128Mi, 1.5Gi, 2G or 1000000", field,
              text.substr(0, kQuoted), kMostQuantity);
}

Result<Duration> parse_go_duration(std::string_view field, std::string_view text) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ns", 1},      {"us", 1000},        {"\xc2\xb5s", 1000},  {"ms", 1'000'000},
      {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}};
  constexpr Wide kMost = Wide{10 * 365} * 24 * 3600 * kSecond;
  std::string_view rest = text;
  Wide sum = 0;
  bool is_valid = !rest.empty();
  while (is_valid && !rest.empty()) {
    const auto value = take_decimal(rest);
    const std::size_t end = std::min(rest.find_first_of("0123456789."), rest.size());
    const std::string_view unit = rest.substr(0, end);
    const bool is_bare = unit.empty() && rest.empty() && sum == 0;  // seconds
    const auto known =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& entry) { return entry.first == unit; });
    is_valid = value && (is_bare || known != std::end(kUnits));
    if (!is_valid) break;
    sum += divided_up(Wide{value->digits} * static_cast<Wide>(is_bare ? kSecond : known->second),
                      power(10, value->places));
    is_valid = sum <= kMost;
    rest.remove_prefix(end);
  }
  if (is_valid) return std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(static_cast<std::int64_t>(sum)));
  return fail(Errc::kInvalidArgument,
              "{} is '{}'; it must be a duration of at most ten years, such as 90s, 1m30s or 500ms", field,
              text.substr(0, kQuoted));
}

}  // namespace fairlead::openfaas
