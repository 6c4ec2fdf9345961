#include "edge/console/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edge/error_document.h"

namespace fairlead {
namespace {

constexpr std::string_view kIndex = "index.html";

std::vector<net::Header> safety_headers() {
  return {{"Content-Security-Policy", kContentPolicy},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"}};
}

// "gzip;q=0" refuses it; other weights do not matter where there are two.
bool takes_gzip(std::string_view accepted) {
  const std::size_t at = accepted.find("gzip");
  if (at == std::string_view::npos) return false;
  const std::string_view one = accepted.substr(at, accepted.find(',', at) - at);
  return one.find("q=0") == std::string_view::npos || one.find("q=0.") != std::string_view::npos;
}

void send(net::HttpExchange exchange, const SiteFile& file) {
  const net::HttpRequest& request = exchange.request();
  std::vector<net::Header> headers = safety_headers();
  headers.push_back({"ETag", std::string(file.etag)});
  headers.push_back({"Cache-Control", "no-cache"});  // kept, and asked for again with its ETag
  headers.push_back({"Vary", "Accept-Encoding"});
  if (request.header("If-None-Match").find(file.etag) != std::string_view::npos) {
    return exchange.respond({.status = 304, .headers = std::move(headers)});
  }
  headers.push_back({"Content-Type", std::string(file.type)});
  const bool is_packed = takes_gzip(request.header("Accept-Encoding"));
  if (is_packed) headers.push_back({"Content-Encoding", "gzip"});
  exchange.respond({.headers = std::move(headers), .body = std::string(is_packed ? file.gzip : file.plain)});
}

// What is missing are names and versions of this repository's: nothing in the page is a stranger's.
void say_what_is_missing(net::HttpExchange exchange, std::span<const std::string_view> missing) {
  std::string names;
  for (const std::string_view name : missing) names += fmt::format("<li>{}</li>", name);
  std::vector<net::Header> headers = safety_headers();
  headers.push_back({"Content-Type", "text/html; charset=utf-8"});
  headers.push_back({"Cache-Control", "no-store"});
  exchange.respond({.status = 501,
                    .headers = std::move(headers),
                    .body = fmt::format(
                        "<!doctype html><html lang=en><title>Fairlead: no console</title><h1>This fairlead was built "
                        "without its console</h1><p>These were not there when it was built:</p><ul>{}</ul><p>To "
                        "have the console, in the source tree, with the network:</p><pre>tools/console-vendor\n"
                        "make build</pre><p>All else works: <code>fairlead top</code>, <code>fairlead status</code>, "
                        "<code>/metrics</code>.</p></html>\n",
                        names)});
}

}  // namespace

void add_site_routes(Routes& routes, std::span<const SiteFile> files, std::span<const std::string_view> missing) {
  const auto serve = [files, missing](RouteCall call, std::string_view path) {
    if (!missing.empty()) return say_what_is_missing(std::move(call.exchange), missing);
    const auto file = std::find_if(files.begin(), files.end(), [&](const SiteFile& one) { return one.path == path; });
    if (file == files.end()) return respond_unknown_operation(std::move(call.exchange), "");
    send(std::move(call.exchange), *file);
  };
  // With a slash, so that the page's own addresses are below it.
  routes.add(
      "GET", "/console",
      [serve](RouteCall call) {
        const std::string_view target = call.exchange.request().target();
        if (target.substr(0, target.find('?')).ends_with('/')) return serve(std::move(call), kIndex);
        call.exchange.respond({.status = 308, .headers = {{"Location", "/console/"}}});
      },
      Permission::kAnyone);
  routes.add(
      "GET", "/console/{path*}",
      [serve](RouteCall call) {
        const std::string path = call.parameter("path");
        serve(std::move(call), path.empty() ? kIndex : std::string_view(path));
      },
      Permission::kAnyone);
}

}  // namespace fairlead
