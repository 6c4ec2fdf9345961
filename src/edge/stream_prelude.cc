#include "edge/stream_prelude.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_bounds.h"
#include "edge/session_cookie.h"

namespace fairlead {
namespace {

using nlohmann::json;

constexpr std::size_t kNuls = 8;
constexpr unsigned kLeastStatus = 200, kMostStatus = 599;

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// How the message ends, and what the node says of the call, is not the function's to say.
bool is_the_nodes(const std::string& name) {
  constexpr std::array<std::string_view, 10> kOfConnections = {
      "connection", "content-length",    "date",    "keep-alive", "proxy-connection",
      "server",     "transfer-encoding", "trailer", "te",         "upgrade"};
  if (std::find(kOfConnections.begin(), kOfConnections.end(), name) != kOfConnections.end()) return true;
  return name.starts_with("x-amz") || name.starts_with("x-gpu-") || name.starts_with("x-fairlead-");
}

Error bad(std::string_view what) {
  return {Errc::kInvalidArgument, fmt::format("the function's answer is of the type {}, but {}", kPreludeType, what)};
}

Status add_header(StreamPrelude& prelude, const std::string& name, const std::string& value) {
  if (!is_token(name) || !is_field_value(value)) {
    return fail(bad(fmt::format("the header '{}' has bytes that no header may have", name.substr(0, 64))));
  }
  if (lower(name) == "set-cookie" && value.starts_with(kSessionCookie)) return {};  // nobody is signed in by a function
  if (!is_the_nodes(lower(name))) prelude.headers.push_back({name, value});
  return {};
}

Status read_headers(const json& said, StreamPrelude& prelude) {
  if (said.is_null()) return {};
  if (!said.is_object()) return fail(bad("headers is no object"));
  for (const auto& [name, value] : said.items()) {
    if (!value.is_string()) return fail(bad(fmt::format("the header '{}' is no text", name.substr(0, 64))));
    if (Status added = add_header(prelude, name, value.get<std::string>()); !added) return added;
  }
  return {};
}

Status read_cookies(const json& said, StreamPrelude& prelude) {
  if (said.is_null()) return {};
  if (!said.is_array()) return fail(bad("cookies is no list"));
  for (const json& cookie : said) {
    if (!cookie.is_string()) return fail(bad("one of the cookies is no text"));
    if (Status added = add_header(prelude, "Set-Cookie", cookie.get<std::string>()); !added) return added;
  }
  return {};
}

Result<StreamPrelude> parse(std::string_view text) {
  if (!check_json_bounds(text, "the prelude")) return fail(bad("what is before its 8 NUL bytes is too deep"));
  const json said = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) return fail(bad("what is before its 8 NUL bytes is no JSON object"));
  StreamPrelude prelude;
  if (const auto status = said.find("statusCode"); status != said.end()) {
    const bool is_valid = status->is_number_unsigned() && *status >= kLeastStatus && *status <= kMostStatus;
    if (!is_valid) {
      return fail(bad(fmt::format("statusCode is {}; it must be a number between {} and {}",
                                  status->dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 64),
                                  kLeastStatus, kMostStatus)));
    }
    prelude.status = status->get<unsigned>();
  }
  const auto field = [&](const char* name) { return said.contains(name) ? said.at(name) : json(); };
  if (Status read = read_headers(field("headers"), prelude); !read) return fail(read.error());
  if (Status read = read_cookies(field("cookies"), prelude); !read) return fail(read.error());
  return prelude;
}

}  // namespace

Result<std::optional<StreamPrelude>> PreludeReader::feed(std::string_view bytes) {
  const std::size_t seen = collected_.size() < kNuls ? 0 : collected_.size() - (kNuls - 1);
  collected_ += bytes;
  const std::size_t end = collected_.find(std::string(kNuls, '\0'), seen);
  if (std::min(end, collected_.size()) > kMaxPreludeBytes) {
    return fail(bad(fmt::format("its first {} bytes have no 8 NUL bytes that end the prelude", kMaxPreludeBytes)));
  }
  if (end == std::string::npos) return std::nullopt;
  auto prelude = parse(std::string_view(collected_).substr(0, end));
  collected_.erase(0, end + kNuls);
  if (!prelude) return fail(prelude.error());
  return std::optional(*std::move(prelude));
}

}  // namespace fairlead
