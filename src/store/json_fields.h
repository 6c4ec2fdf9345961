// Reads JSON that others wrote (images, the database) without exceptions: a field that is absent or null leaves its
// value alone, one of another type is an error that names it.
//
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead::store {

// kCorrupt: not JSON, not an object, or beyond JsonBounds. `what` names the document.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view what);

class FieldReader {
 public:
  // REQUIRES: object.is_object(), and it outlives the reader. `path` prefixes names in errors.
  FieldReader(const nlohmann::json& object, std::string path) : object_(object), path_(std::move(path)) {}

  FieldReader& read(const char* name, std::string& value);
  FieldReader& read(const char* name, std::int64_t& value);
  FieldReader& read(const char* name, std::vector<std::string>& value);

  // The member objects; null when absent or of another type, which status() then says.
  const nlohmann::json* object(const char* name);
  const nlohmann::json* array(const char* name);

  // The first error.
  const Status& status() const { return status_; }

 private:
  const nlohmann::json* find(const char* name) const;
  void wrong_type(const char* name, std::string_view expected);

  const nlohmann::json& object_;
  std::string path_;
  Status status_;
};

}  // namespace fairlead::store
