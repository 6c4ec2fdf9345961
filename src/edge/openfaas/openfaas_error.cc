#include "edge/openfaas/openfaas_error.h"

#include <fmt/format.h>

#include <utility>

#include "edge/error_document.h"

namespace fairlead::openfaas {
namespace {

constexpr const char* kRealm = "Basic realm=\"Restricted\"";

net::HttpResponse text(unsigned status, std::string line) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::move(line) + "\n"};
}

}  // namespace

net::HttpResponse refusal(const Error& error) {
  const ErrorDocument document = error_document(error);
  net::HttpResponse response = text(document.status, document.message);
  if (document.status == 401) response.headers.push_back({"WWW-Authenticate", kRealm});
  if (document.status == 429 || document.status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

void refuse(net::HttpExchange exchange, const Error& error) {
  exchange.respond(refusal(error));
}

EdgeErrors errors() {
  return {.error = refuse, .unknown = [](net::HttpExchange exchange, std::string allowed) {
            const net::HttpRequest& request = exchange.request();
            const std::string what = fmt::format("{} {}", request.method(), request.target().substr(0, 256));
            const bool is_known = !allowed.empty();
            net::HttpResponse response =
                is_known ? text(405, fmt::format("{}: this path allows {}", what, allowed))
                         : text(404, fmt::format("{}: OpenFaaS's API has nothing there, or this node does not", what));
            if (is_known) response.headers.push_back({"Allow", std::move(allowed)});
            exchange.respond(std::move(response));
          }};
}

}  // namespace fairlead::openfaas
