// A message between nodes as a list of fields: a letter, the number of bytes, ':' and the bytes.
//
//   n5:alpha t1:2 b4:0.25          (without the spaces)
//
// Nothing is nested, nothing escaped, and what is not read is not copied. A letter that a reader does not know is skipped: a newer
// node may say
// more. Of a letter that stands twice the first counts.
//
// Thread-safe: values.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/result.h"

namespace fairlead {

class FieldWriter {
 public:
  FieldWriter& text(char letter, std::string_view value) {
    char size[24];
    const auto end = std::to_chars(size, size + sizeof size, value.size()).ptr;
    out_ += letter;
    out_.append(size, end).append(":").append(value);
    return *this;
  }
  template <typename T>
  FieldWriter& number(char letter, T value) {
    char digits[64];
    return text(letter,
                {digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits)});
  }
  FieldWriter& flag(char letter, bool value) { return value ? text(letter, "1") : *this; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Fields {
 public:
  static constexpr std::size_t kMost = 32;  // in one message

  // kCorrupt: `message` is no list of fields, or one of more than kMost. The bytes outlive the fields.
  static Result<Fields> parse(std::string_view message) {
    Fields fields;
    const std::size_t whole = message.size();
    while (!message.empty()) {
      const char letter = message.front();
      std::size_t size = 0;
      const auto [end, error] = std::from_chars(message.data() + 1, message.data() + message.size(), size);
      const auto head = static_cast<std::size_t>(end - message.data()) + 1;
      if (error != std::errc() || head > message.size() || *end != ':' || size > message.size() - head) {
        return fail(Errc::kCorrupt, "a message between nodes is damaged at byte {} of {}", whole - message.size(),
                    whole);
      }
      if (fields.count_ == kMost) return fail(Errc::kCorrupt, "a message between nodes has more than {} fields", kMost);
      fields.fields_[fields.count_++] = {letter, message.substr(head, size)};
      message.remove_prefix(head + size);
    }
    return fields;
  }

  bool has(char letter) const { return find(letter) != nullptr; }
  std::string_view text(char letter) const {  // "": it is not there
    const Field* field = find(letter);
    return field == nullptr ? std::string_view() : field->value;
  }
  bool flag(char letter) const { return text(letter) == "1"; }
  // Absent: `absent`. kCorrupt names the letter: it is no number of that type.
  template <typename T>
  Result<T> number(char letter, T absent) const {
    const Field* field = find(letter);
    if (field == nullptr) return absent;
    T value{};
    const char* const last = field->value.data() + field->value.size();
    const auto [end, error] = std::from_chars(field->value.data(), last, value);
    if (error == std::errc() && end == last && !field->value.empty()) return value;
    return fail(Errc::kCorrupt, "field '{}' of a message between nodes is '{}', which is no number of its kind", letter,
                field->value.substr(0, 32));
  }

 private:
  struct Field {
    char letter;
    std::string_view value;
  };
  const Field* find(char letter) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (fields_[i].letter == letter) return &fields_[i];
    }
    return nullptr;
  }

  Field fields_[kMost] = {};
  std::size_t count_ = 0;
};

}  // namespace fairlead
