// JSON of others, read without exceptions: a document that says where it is broken, and values that know where in it they
// stand, so that each refusal names its path: "kernels[2].grid[0] is 0, it must be between 1 and 4294967295".
//
// Threads: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_bounds.h"
#include "base/result.h"

namespace fairlead::wire {

inline constexpr std::size_t kMaxJsonDepth = 64;
// Numbers of a kernel task's call are text: 4 MiB of them in one buffer, and as many launches as a task may have.
inline constexpr JsonBounds kDocumentBounds{.depth = kMaxJsonDepth, .values = std::size_t{1} << 22};

// kInvalidArgument: not JSON (line and column), beyond `bounds`, a name twice in one object. `what` names the document.
// Nothing is built of a document beyond its bounds.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what,
                                  const JsonBounds& bounds = kDocumentBounds);

// One value of a document. The first refusal is kept in `status`; after it, what is read is nothing, and nobody need ask.
class JsonValue {
 public:
  // The whole document. REQUIRES: `root` and `status` outlive it.
  JsonValue(const nlohmann::json& root, Status& status) : value_(&root), status_(&status) {}

  const nlohmann::json& json() const { return *value_; }

  // An object with no other members than these; else refused, as is one of another name.
  bool has_only(std::initializer_list<std::string_view> names) const;
  // Its member. Absent or null: nothing, or refused. REQUIRES: this value outlives the member's.
  std::optional<JsonValue> find(std::string_view name) const;
  std::optional<JsonValue> require(std::string_view name) const;
  JsonValue at(const std::string& name, const nlohmann::json& member) const { return {*this, name, member}; }
  JsonValue at(std::size_t index) const;

  bool is_list(std::size_t most) const;  // else refused
  std::uint64_t number(std::uint64_t least, std::uint64_t most) const;
  bool boolean() const;
  std::string_view text(std::size_t most) const;  // into the document
  std::string bytes() const;                      // of base64

  template <typename... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    if (*status_)
      *status_ = fail(Errc::kInvalidArgument, "{} {}", path(), fmt::format(format, std::forward<Args>(args)...));
  }
  bool ok() const { return status_->has_value(); }
  std::string path() const;

 private:
  JsonValue(const JsonValue& parent, std::string_view name, const nlohmann::json& value)
      : value_(&value), parent_(&parent), name_(name), status_(parent.status_) {}

  const nlohmann::json* value_;
  const JsonValue* parent_ = nullptr;
  std::string_view name_;             // of a member; empty:
  std::optional<std::size_t> index_;  // of an element
  Status* status_;
};

}  // namespace fairlead::wire
