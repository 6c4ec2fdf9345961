#include "node/own_address.h"

#include "net/http_channel.h"

namespace fairlead {

std::string own_address(const ServeOptions& options) {
  for (const std::string& address : options.listen) {
    const auto endpoint = net::parse_endpoint(address);
    if (!endpoint || endpoint->host == "0.0.0.0" || endpoint->host == "::") continue;
    const char* const web = options.tls_certificate.empty() ? "http://" : "https://";
    return address.starts_with("unix:") ? address : web + address;
  }
  return "";
}

}  // namespace fairlead
