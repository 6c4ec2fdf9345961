#include "edge/json_body.h"

#include <limits>
#include <utility>

#include "base/json_bounds.h"

namespace fairlead {

using nlohmann::json;

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void respond_json(net::HttpExchange exchange, unsigned status, const json& value) {
  exchange.respond({.status = status, .headers = {{"Content-Type", "application/json"}}, .body = to_text(value)});
}

Result<json> parse_object(std::string_view body) {
  if (body.empty()) return json::object();
  if (Status bounded = check_json_bounds(body, "request body"); !bounded) return fail(bounded.error());
  json value = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return fail(Errc::kInvalidArgument, "request body: its {} bytes are not valid JSON in UTF-8", body.size());
  }
  if (!value.is_object()) return fail(Errc::kInvalidArgument, "request body: must be a JSON object");
  return value;
}

JsonFields::JsonFields(const json& object, Status& status, std::string path)
    : object_(object), status_(status), path_(std::move(path)) {}

const json* JsonFields::find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void JsonFields::wrong_type(const char* name, std::string_view expected) {
  if (status_) status_ = fail(Errc::kInvalidArgument, "{}{} must be {}", path_, name, expected);
}

bool JsonFields::is_set(const char* name) const {
  const json* value = find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (const auto* text = value->get_ptr<const std::string*>()) return !text->empty();
  return !value->empty();
}

std::optional<std::string_view> JsonFields::string(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = value->get_ptr<const std::string*>()) return std::string_view(*text);
  wrong_type(name, "a string");
  return std::nullopt;
}

std::optional<int> JsonFields::integer(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  constexpr auto kLeast = std::numeric_limits<int>::min();
  constexpr auto kMost = std::numeric_limits<int>::max();
  const bool fits = value->is_number_unsigned() ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost)
                                                : value->is_number_integer() && value->get<std::int64_t>() >= kLeast;
  if (fits) return value->get<int>();
  wrong_type(name, fmt::format("an integer between {} and {}", kLeast, kMost));
  return std::nullopt;
}

std::optional<std::map<std::string, std::string>> JsonFields::strings(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::map<std::string, std::string> result;
  bool are_strings = value->is_object();
  for (auto it = value->begin(); are_strings && it != value->end(); ++it) {
    const auto* text = it->get_ptr<const std::string*>();
    are_strings = text != nullptr;
    if (are_strings) result[it.key()] = *text;
  }
  if (are_strings) return result;
  wrong_type(name, "an object of strings");
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonFields::string_list(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> result;
  bool are_strings = value->is_array();
  for (auto it = value->begin(); are_strings && it != value->end(); ++it) {
    const auto* text = it->get_ptr<const std::string*>();
    are_strings = text != nullptr;
    if (are_strings) result.push_back(*text);
  }
  if (are_strings) return result;
  wrong_type(name, "a list of strings");
  return std::nullopt;
}

std::optional<JsonFields> JsonFields::object(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return JsonFields(*value, status_, fmt::format("{}{}.", path_, name));
  wrong_type(name, "an object");
  return std::nullopt;
}

}  // namespace fairlead
