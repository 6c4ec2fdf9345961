#include "identity/sigv4.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

namespace fairlead::identity {
namespace {

constexpr std::size_t kMostSignedHeaders = 64;
constexpr std::string_view kTerminator = "aws4_request";

// Headers that change what a request means: where they are there, they are signed.
constexpr std::array<std::string_view, 6> kMeaningful = {"x-amz-invocation-type", "x-amz-log-type",
                                                         "x-amz-client-context",  "x-amz-content-sha256",
                                                         "x-fairlead-tenant",     "x-fairlead-deadline-ms"};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string encode(std::string_view text, bool keeps_slashes) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || (keeps_slashes && c == '/')) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string canonical_query(std::string_view query) {
  if (query.empty()) return {};
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string_view field : split(query, '&')) {
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string_view value = equals == field.size() ? std::string_view() : field.substr(equals + 1);
    fields.emplace_back(encode(decode(field.substr(0, equals)), false), encode(decode(value), false));
  }
  std::sort(fields.begin(), fields.end());
  std::string out;
  for (const auto& [name, value] : fields) out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  return out;
}

// Without spaces at the ends, and one where there are several.
std::string trimmed(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string canonical_request(const Sigv4& parts, const SignedRequest& request, std::string_view payload_sha256,
                              std::string_view path) {
  const std::size_t mark = std::min(request.target.find('?'), request.target.size());
  const std::string_view query = mark == request.target.size() ? std::string_view() : request.target.substr(mark + 1);
  std::string text = fmt::format("{}\n{}\n{}\n", request.method, path, canonical_query(query));
  for (const std::string_view name : split(parts.signed_headers, ';')) {
    text += fmt::format("{}:{}\n", name, trimmed(request.header(name)));
  }
  return text + fmt::format("\n{}\n{}", parts.signed_headers, payload_sha256);
}

std::string signature_of(const Sigv4& parts, const Digest& key, const SignedRequest& request,
                         std::string_view payload_sha256, std::string_view path) {
  const std::string canonical = canonical_request(parts, request, payload_sha256, path);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kSigv4Scheme, request.header("x-amz-date"), parts.scope(),
                                       to_hex(as_text(sha256(canonical))));
  return to_hex(as_text(hmac_sha256(as_text(key), text)));
}

std::string_view path_of(const SignedRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

// "20260131T235959Z"
std::optional<std::int64_t> milliseconds_of(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  if (!std::all_of(text.begin(), text.begin() + 8, is_digit) ||
      !std::all_of(text.begin() + 9, text.begin() + 15, is_digit)) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t size) { return std::stoi(std::string(text.substr(at, size))); };
  using std::chrono::day, std::chrono::month, std::chrono::year;
  const std::chrono::year_month_day date(year(number(0, 4)), month(static_cast<unsigned>(number(4, 2))),
                                         day(static_cast<unsigned>(number(6, 2))));
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (days * 86'400 + number(9, 2) * 3'600 + number(11, 2) * 60 + number(13, 2)) * 1'000;
}

bool is_signed(const Sigv4& parts, std::string_view header) {
  const auto names = split(parts.signed_headers, ';');
  return std::find(names.begin(), names.end(), header) != names.end();
}

Status check_signed_headers(const Sigv4& parts, const SignedRequest& request) {
  for (const std::string_view name : {"host", "x-amz-date"}) {
    if (!is_signed(parts, name)) return fail(Errc::kUnauthenticated, "Authorization: {} must be a signed header", name);
  }
  for (const std::string_view name : kMeaningful) {
    if (!request.header(name).empty() && !is_signed(parts, name)) {
      return fail(Errc::kUnauthenticated, "Authorization: the request has {}, so it must be a signed header", name);
    }
  }
  return {};
}

Status check_time(const Sigv4& parts, std::string_view date, std::int64_t now_ms) {
  const auto signed_ms = milliseconds_of(date);
  if (!signed_ms || !date.starts_with(parts.date)) {
    return fail(Errc::kUnauthenticated,
                "x-amz-date is '{}'; it must be a time as 20260131T235959Z, of the day in the credential ('{}')",
                date.substr(0, 32), parts.date);
  }
  const std::int64_t away_ms = now_ms > *signed_ms ? now_ms - *signed_ms : *signed_ms - now_ms;
  const std::int64_t most_ms = std::chrono::duration_cast<std::chrono::milliseconds>(kClockSkew).count();
  if (away_ms <= most_ms) return {};
  return fail(
      Errc::kUnauthenticated,
      "x-amz-date is '{}', {} s from the node's clock; at most {} s are accepted: set the clocks, and sign again", date,
      away_ms / 1'000, most_ms / 1'000);
}

}  // namespace

std::string Sigv4::scope() const {
  return fmt::format("{}/{}/{}/{}", date, region, service, kTerminator);
}

Result<Sigv4> parse_sigv4(std::string_view authorization) {
  Sigv4 parts;
  std::string_view credential;
  authorization.remove_prefix(kSigv4Scheme.size());
  for (std::string_view field : split(authorization, ',')) {
    while (field.starts_with(' ')) field.remove_prefix(1);
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (name == "Credential") credential = value;
    if (name == "SignedHeaders") parts.signed_headers = value;
    if (name == "Signature") parts.signature = value;
  }
  const auto scope = split(credential, '/');
  if (scope.size() != 5 || scope[4] != kTerminator || scope[1].size() != 8) {
    return fail(Errc::kInvalidArgument,
                "Authorization: Credential is '{}'; it must be KEY/20260131/REGION/SERVICE/aws4_request",
                credential.substr(0, 128));
  }
  parts.key_id = scope[0];
  parts.date = scope[1];
  parts.region = scope[2];
  parts.service = scope[3];
  if (parts.signature.size() != 64 || !std::all_of(parts.signature.begin(), parts.signature.end(), is_hex)) {
    return fail(Errc::kInvalidArgument, "Authorization: Signature must have 64 hexadecimal digits");
  }
  const auto headers =
      static_cast<std::size_t>(std::count(parts.signed_headers.begin(), parts.signed_headers.end(), ';'));
  if (headers >= kMostSignedHeaders) {
    return fail(Errc::kInvalidArgument, "Authorization: SignedHeaders names {} headers; at most {} are read",
                headers + 1, kMostSignedHeaders);
  }
  return parts;
}

Digest signing_key(std::string_view secret, const Sigv4& parts) {
  Digest key = hmac_sha256(fmt::format("AWS4{}", secret), parts.date);
  for (const std::string_view part : {parts.region, parts.service, kTerminator}) key = hmac_sha256(as_text(key), part);
  return key;
}

Status verify(const Sigv4& parts, const Digest& signing_key, const SignedRequest& request, std::int64_t now_ms) {
  if (Status complete = check_signed_headers(parts, request); !complete) return complete;
  if (Status timely = check_time(parts, request.header("x-amz-date"), now_ms); !timely) return timely;
  const std::string payload = request.payload_sha256();
  const std::string_view claimed = request.header("x-amz-content-sha256");
  if (!claimed.empty() && claimed != payload) {
    return fail(Errc::kUnauthenticated, "x-amz-content-sha256 is '{}', the body's SHA-256 is {}", claimed.substr(0, 64),
                payload);
  }
  // AWS encodes the path once more for every service but S3, and not every client does. Either binds the path that was sent.
  const std::string_view path = path_of(request);
  const std::string again = encode(path, true);
  if (are_equal(signature_of(parts, signing_key, request, payload, again), parts.signature)) return {};
  if (again != path && are_equal(signature_of(parts, signing_key, request, payload, path), parts.signature)) return {};
  return fail(
      Errc::kUnauthenticated,
      "the request's signature is not that of key {}: the secret is another one, or something changed what was signed "
      "({}) on the way",
      parts.key_id, parts.signed_headers);
}

std::string sign(const Sigv4& parts, const Digest& signing_key, const SignedRequest& request) {
  const std::string signature =
      signature_of(parts, signing_key, request, request.payload_sha256(), encode(path_of(request), true));
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kSigv4Scheme, parts.key_id, parts.scope(),
                     parts.signed_headers, signature);
}

}  // namespace fairlead::identity
