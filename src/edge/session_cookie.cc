#include "edge/session_cookie.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace fairlead {
namespace {

constexpr std::size_t kMostShown = 128;

// "fairlead_console_9001": the port of the Host, where it has one.
std::string cookie_name(const net::HttpRequest& request) {
  const std::string_view host = request.header("Host");
  const std::size_t colon = host.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? std::string_view() : host.substr(colon + 1);
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit))
    return std::string(kSessionCookie);
  return fmt::format("{}_{}", kSessionCookie, port);
}

// "a=1; b=2"
std::string_view cookie_of(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return one.substr(name.size() + 1);
  }
  return {};
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && !host.empty() && origin.substr(scheme + 3) == host;
}

}  // namespace

std::string_view session_of(const net::HttpRequest& request) {
  if (request.header(kConsoleHeader).empty()) return {};
  return cookie_of(request.header("Cookie"), cookie_name(request));
}

Status check_sent_by_console(const net::HttpRequest& request) {
  const std::string_view method = request.method();
  if (method != "GET" && method != "HEAD" && method != "POST") {
    return fail(Errc::kForbidden, "{} with the console's cookie: it is for GET and POST; use an API key", method);
  }
  const std::string_view origin = request.header("Origin");
  if (!origin.empty() && !is_same_origin(origin, request.header("Host"))) {
    return fail(Errc::kForbidden, "Origin is '{}': the console's cookie is for this node's own pages",
                origin.substr(0, kMostShown));
  }
  const std::string_view site = request.header("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin") {
    return fail(Errc::kForbidden, "Sec-Fetch-Site is '{}': the console's cookie is for this node's own pages",
                site.substr(0, kMostShown));
  }
  return {};
}

std::string session_cookie(const net::HttpRequest& request, std::string_view session, bool is_secure) {
  const auto seconds = session.empty() ? 0 : std::chrono::duration_cast<std::chrono::seconds>(kSessionLife).count();
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", cookie_name(request), session, seconds,
                     is_secure ? "; Secure" : "");
}

}  // namespace fairlead
