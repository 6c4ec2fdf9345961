#include "store/json_fields.h"

#include <algorithm>

#include "base/json_bounds.h"

namespace fairlead::store {

using nlohmann::json;

Result<json> parse_json_object(std::string_view text, std::string_view what) {
  if (Status bounded = check_json_bounds(text, what); !bounded)
    return fail(Errc::kCorrupt, "{}", bounded.error().message);
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) return parsed;
  return fail(Errc::kCorrupt, "{} of {} bytes is {}", what, text.size(),
              parsed.is_discarded() ? "not JSON" : "not a JSON object");
}

const json* FieldReader::find(const char* name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void FieldReader::wrong_type(const char* name, std::string_view expected) {
  if (status_) status_ = fail(Errc::kCorrupt, "{}{} is not {}", path_, name, expected);
}

FieldReader& FieldReader::read(const char* name, std::string& value) {
  const json* found = find(name);
  if (found == nullptr) return *this;
  if (const auto* text = found->get_ptr<const std::string*>()) {
    value = *text;
  } else {
    wrong_type(name, "a string");
  }
  return *this;
}

FieldReader& FieldReader::read(const char* name, std::int64_t& value) {
  const json* found = find(name);
  if (found == nullptr) return *this;
  if (found->is_number_integer()) {
    value = found->get<std::int64_t>();
  } else {
    wrong_type(name, "an integer");
  }
  return *this;
}

FieldReader& FieldReader::read(const char* name, std::vector<std::string>& value) {
  const json* list = array(name);
  if (list == nullptr) return *this;
  if (!std::all_of(list->begin(), list->end(), [](const json& item) { return item.is_string(); })) {
    wrong_type(name, "a list of strings");
    return *this;
  }
  value.clear();
  for (const json& item : *list) value.push_back(*item.get_ptr<const std::string*>());
  return *this;
}

const json* FieldReader::object(const char* name) {
  const json* found = find(name);
  if (found == nullptr || found->is_object()) return found;
  wrong_type(name, "an object");
  return nullptr;
}

const json* FieldReader::array(const char* name) {
  const json* found = find(name);
  if (found == nullptr || found->is_array()) return found;
  wrong_type(name, "a list");
  return nullptr;
}

}  // namespace fairlead::store
