// JSON at the edge: text that cannot fail to be written, bodies that cannot throw when read.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"

namespace fairlead {

// Bytes that are not UTF-8 become U+FFFD: names and messages come from functions too.
std::string to_text(const nlohmann::json& json);

void respond_json(net::HttpExchange exchange, unsigned status, const nlohmann::json& json);

// Reads the fields of a JSON object. A field of a wrong type reads as absent and is reported in `status`, the first one
// only. JSON null is absent. `path` prefixes field names in errors: "Code.ZipFile".
// REQUIRES: the object and `status` outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, Status& status, std::string path = "");

  bool is_set(const char* name) const;                       // present and neither null, false nor empty
  std::optional<std::string_view> string(const char* name);  // into the JSON
  std::optional<int> integer(const char* name);
  std::optional<std::map<std::string, std::string>> strings(const char* name);  // an object whose values are strings
  std::optional<std::vector<std::string>> string_list(const char* name);
  std::optional<JsonFields> object(const char* name);

 private:
  const nlohmann::json* find(const char* name) const;
  void wrong_type(const char* name, std::string_view expected);

  const nlohmann::json& object_;
  Status& status_;
  std::string path_;
};

// The body as a JSON object; an empty body is an empty object. kInvalidArgument: not JSON, or beyond JsonBounds, of which
// nothing is built.
Result<nlohmann::json> parse_object(std::string_view body);

}  // namespace fairlead
