#include "wire/json_value.h"

#include <algorithm>
#include <vector>

#include "base/base64.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kShownBytes = 64;  // of what is quoted in a message

// Builds the document from its tokens. The library's own builder keeps the last of two members of one name.
class DocumentBuilder final : public json::json_sax_t {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [member, is_new] = open_.back()->get_ref<json::object_t&>().emplace(std::move(name), nullptr);
    if (!is_new) {
      problem_ = fmt::format("'{}' is there twice in one object", member->first.substr(0, kShownBytes));
      return false;
    }
    member_ = &member->second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view text = error.what();
    problem_ = text.substr(std::min(text.find("] ") + 2, text.size()), 4 * kShownBytes);
    return false;
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  json& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->get_ref<json::array_t&>().emplace_back();
  }
  bool add(json value) {
    place() = std::move(value);
    return true;
  }
  bool open(json container) {
    json& value = place();
    value = std::move(container);
    open_.push_back(&value);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;
  json* member_ = nullptr;
  std::string problem_;
};

std::string joined(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view what, const JsonBounds& bounds) {
  if (Status bounded = check_json_bounds(text, what, bounds); !bounded) return fail(bounded.error());
  DocumentBuilder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  return fail(Errc::kInvalidArgument, "{}: {}", what, builder.problem());
}

std::string JsonValue::path() const {
  if (parent_ == nullptr) return "the document";
  if (index_) return fmt::format("{}[{}]", parent_->path(), *index_);
  const std::string_view shown = name_.substr(0, kShownBytes);
  return parent_->parent_ == nullptr ? std::string(shown) : fmt::format("{}.{}", parent_->path(), shown);
}

bool JsonValue::has_only(std::initializer_list<std::string_view> names) const {
  if (!value_->is_object()) {
    refuse("must be an object with {}", joined(names));
    return false;
  }
  for (const auto& [name, member] : value_->items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    refuse("has '{}', which is not known; known are {}", std::string_view(name).substr(0, kShownBytes), joined(names));
    return false;
  }
  return true;
}

std::optional<JsonValue> JsonValue::find(std::string_view name) const {
  if (!ok() || !value_->is_object()) return std::nullopt;
  const auto& members = value_->get_ref<const json::object_t&>();
  const auto member = members.find(name);
  if (member == members.end() || member->second.is_null()) return std::nullopt;
  return at(member->first, member->second);
}

std::optional<JsonValue> JsonValue::require(std::string_view name) const {
  auto member = find(name);
  if (!member) refuse("has no '{}'; it is required", name);
  return member;
}

JsonValue JsonValue::at(std::size_t index) const {
  JsonValue element(*this, {}, value_->get_ref<const json::array_t&>()[index]);
  element.index_ = index;
  return element;
}

bool JsonValue::is_list(std::size_t most) const {
  if (!value_->is_array()) {
    refuse("must be a list");
  } else if (value_->size() > most) {
    refuse("has {} elements; at most {} are possible", value_->size(), most);
  }
  return ok();
}

std::uint64_t JsonValue::number(std::uint64_t least, std::uint64_t most) const {
  const bool is_unsigned = value_->is_number_unsigned();
  if (is_unsigned && value_->get<std::uint64_t>() >= least && value_->get<std::uint64_t>() <= most) {
    return value_->get<std::uint64_t>();
  }
  if (value_->is_number()) {
    refuse("is {}, it must be a whole number between {} and {}", value_->dump(), least, most);
  } else {
    refuse("must be a whole number between {} and {}", least, most);
  }
  return least;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) refuse("must be true or false");
  return value_->is_boolean() && value_->get<bool>();
}

std::string_view JsonValue::text(std::size_t most) const {
  const auto* text = value_->get_ptr<const std::string*>();
  if (text == nullptr) {
    refuse("must be a string");
  } else if (text->size() > most) {
    refuse("has {} bytes; at most {} are possible", text->size(), most);
  } else {
    return *text;
  }
  return {};
}

std::string JsonValue::bytes() const {
  const auto* text = value_->get_ptr<const std::string*>();
  if (text == nullptr) {
    refuse("must be a string of base64");
    return {};
  }
  auto decoded = base64_decode("", *text);
  if (!decoded) refuse("has {} characters that are not base64 with padding", text->size());
  return decoded.value_or("");
}

}  // namespace fairlead::wire
