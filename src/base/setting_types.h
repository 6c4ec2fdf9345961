// The types that a setting can have: how a value is written, which values there are, and what an error says of others. A bound
// stands here once; help, errors and documentation take it from here.
//
// Example: whole_number<int>(1, 64) reads "3", refuses "0" and "3x" with "it must be a whole number from 1 to 64".
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fairlead {

template <typename T>
struct SettingType {
  std::string form;                                   // of a value, in help: "SIZE"; empty: a flag, which needs none
  std::string bound;                                  // completes "it must be"
  std::function<Result<T>(const std::string&)> read;  // kInvalidArgument: why not, as a clause
  std::function<std::string(const T&)> write;         // what read() takes; "": there is no value
};

// What every type says of a value that is none of its own.
inline tl::unexpected<Error> out_of_bound(const std::string& bound) {
  return fail(Errc::kInvalidArgument, "it must be {}", bound);
}

// The whole of `text` as a decimal number within the bounds; empty: it is none.
template <typename Number>
std::optional<Number> bounded_number(std::string_view text, Number least, Number most) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= least && number <= most ? std::optional(number) : std::nullopt;
}

template <typename Number>
SettingType<Number> number_in(std::string kind, Number least, Number most) {
  const std::string bound = fmt::format("{} from {} to {}", kind, least, most);
  return {.form = "N",
          .bound = bound,
          .read = [=](const std::string& text) -> Result<Number> {
            const auto number = bounded_number(text, least, most);
            if (!number) return out_of_bound(bound);
            return *number;
          },
          .write = [](const Number& number) { return fmt::format("{}", number); }};
}

template <typename Number>
SettingType<Number> whole_number(Number least, Number most) {
  return number_in("a whole number", least, most);
}

SettingType<double> seconds_number(double least, double most);  // "SECONDS"
SettingType<double> factor_number(double least, double most);

// Bytes, with a unit of 1024: "8GiB", "8GB", "8 g", "512". With `or_none` 0 as well, whatever the least is.
struct SizeBounds {
  std::uint64_t least = 0;
  std::uint64_t most = std::uint64_t{1} << 60;
  bool or_none = false;
};
SettingType<std::uint64_t> size_in(const SizeBounds& bounds);
std::optional<std::uint64_t> size_from(std::string_view text);  // empty: it is no size, or more than 64 bits hold
std::string size_text(std::uint64_t bytes);                     // "8GiB"; in bytes where no unit divides it

SettingType<bool> yes_or_no();  // a flag; also true, false, yes, no, on, off, 1, 0

// Anything, even nothing.
SettingType<std::string> any_text(std::string form, std::string bound);
SettingType<std::string> existing_folder();

// One of a few words, each with what it stands for.
template <typename T>
SettingType<T> one_of(std::vector<std::pair<std::string, T>> words) {
  std::string joined, form;
  for (const auto& [word, meaning] : words) {
    joined += (joined.empty() ? "" : ", ") + word;
    form += (form.empty() ? "" : "|") + word;
  }
  constexpr std::size_t kMostInForm = 5;
  const std::string bound = "one of " + joined;
  return {.form = words.size() > kMostInForm ? "NAME" : form,
          .bound = bound,
          .read = [=](const std::string& text) -> Result<T> {
            for (const auto& [word, meaning] : words) {
              if (word == text) return meaning;
            }
            return out_of_bound(bound);
          },
          .write = [=](const T& value) -> std::string {
            for (const auto& [word, meaning] : words) {
              if (meaning == value) return word;
            }
            return "";
          }};
}
SettingType<std::string> one_of(const std::vector<std::string>& words);

// The same, where nothing was said until somebody says it.
template <typename T>
SettingType<std::optional<T>> optional(SettingType<T> type) {
  return {.form = type.form,
          .bound = type.bound,
          .read = [read = type.read](const std::string& text) -> Result<std::optional<T>> {
            auto value = read(text);
            if (!value) return fail(std::move(value.error()));
            return std::optional<T>(*std::move(value));
          },
          .write = [write = type.write](const std::optional<T>& value) { return value ? write(*value) : ""; }};
}

}  // namespace fairlead
