#include "edge/openfaas/callback_url.h"

#include <algorithm>
#include <cctype>

namespace fairlead::openfaas {
namespace {

constexpr std::size_t kQuoted = 256;
constexpr std::uint16_t kHttpPort = 80;

bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

bool is_target(std::string_view target) {
  return std::all_of(target.begin(), target.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

Error wrong(std::string_view text) {
  return {Errc::kInvalidArgument,
          fmt::format(
              "X-Callback-Url is '{}'; it must be http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH, without a user "
              "and a fragment, of at most {} bytes",
              text.substr(0, kQuoted), kMostCallbackUrlBytes)};
}

}  // namespace

std::string CallbackUrl::authority() const {
  return host.host.find(':') == std::string::npos ? fmt::format("{}:{}", host.host, host.port)
                                                  : fmt::format("[{}]:{}", host.host, host.port);
}

Result<CallbackUrl> parse_callback_url(std::string_view text, const RegistryRules& rules) {
  CallbackUrl url;
  std::string_view rest = text;
  url.speaks_tls = rest.starts_with("https://");
  if (!url.speaks_tls && !rest.starts_with("http://")) return fail(wrong(text));
  rest.remove_prefix(url.speaks_tls ? 8 : 7);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  url.host = split_host_port(authority);
  const bool names_port = authority.ends_with(']') ? false : authority.rfind(':') != std::string_view::npos;
  if (!names_port && !url.speaks_tls) url.host.port = kHttpPort;
  url.target = rest.substr(end).starts_with('/') ? std::string(rest.substr(end)) : "/" + std::string(rest.substr(end));
  if (text.size() > kMostCallbackUrlBytes || url.host.port == 0 || !is_host(url.host.host) || !is_target(url.target)) {
    return fail(wrong(text));
  }
  // At 443 without TLS only where an operator names the host: what is public is public over TLS.
  const bool is_allowed = rules.allows(url.host) && (url.speaks_tls || !rules.needs_global_addresses(url.host));
  if (is_allowed) return url;
  return fail(
      Errc::kForbidden,
      "X-Callback-Url leads to {}, where this node sends no callbacks{}; to allow it the operator adds '{}' to the "
      "setting callbacks",
      url.authority(), url.speaks_tls ? "" : " in the clear", url.authority());
}

}  // namespace fairlead::openfaas
