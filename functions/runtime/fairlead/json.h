// As much JSON as a function with a handful of parameters needs: read a flat object, write an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// The parameters of a request: a JSON object whose values are numbers, strings, booleans or null. An empty payload and
// `null` are an object without members. Not thread-safe.
//
// Every accessor takes the default for an absent member and throws Error("Runtime.InvalidParameter") whose text names
// the field, its value and the bound. check_all_used() does the same for members nobody asked for, which are usually
// misspelt.
class Parameters {
 public:
  struct Range {
    std::int64_t min;
    std::int64_t max;
  };

  explicit Parameters(std::string_view json);

  std::int64_t integer(std::string_view name, std::int64_t fallback, Range range);
  std::int64_t multiple_of(std::int64_t step, std::string_view name, std::int64_t fallback, Range range);
  std::int64_t power_of_two(std::string_view name, std::int64_t fallback, Range range);
  std::string text(std::string_view name, std::string_view fallback, std::size_t max_length);
  void check_all_used() const;

 private:
  enum class Kind { kNumber, kString, kBoolean, kNull };
  struct Member {
    std::string name;
    Kind kind = Kind::kNull;
    std::string value;  // unescaped text of a string, spelling of anything else
    bool used = false;
  };
  class Parser;

  const Member* use(std::string_view name);

  std::vector<Member> members_;
};

// Writes one flat object: JsonObject().add("n", 4096).add("name", "fft").str() is {"n":4096,"name":"fft"}.
class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::int64_t value);
  JsonObject& add(std::string_view name, int value) { return add(name, static_cast<std::int64_t>(value)); }
  JsonObject& add(std::string_view name, double value);  // not a finite number: null
  JsonObject& add(std::string_view name, std::string_view value);
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  std::string str() const { return text_ + "}"; }

 private:
  void begin(std::string_view name);

  std::string text_ = "{";
};

// `text` as a JSON string with its quotes.
std::string json_quote(std::string_view text);

}  // namespace fairlead
