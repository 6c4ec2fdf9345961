#include "node/handshakes.h"

#include <utility>

#include "base/log.h"

namespace fairlead {

Result<std::unique_ptr<net::TlsHandshakes>> make_handshakes(const ServeOptions& options, net::TlsProtocol protocol) {
  if (options.tls_certificate.empty()) return nullptr;
  auto identity = net::TlsIdentity::load(
      {.certificate = options.tls_certificate, .key = options.tls_key, .client_ca = options.tls_client_ca}, protocol);
  if (!identity) return fail(identity.error());
  return std::make_unique<net::TlsHandshakes>(*std::move(identity), [](const Status& renewed) {
    if (renewed) return spdlog::info("TLS: the files were written anew and are in use");
    spdlog::error("{}; new connections see the certificate that was there before", renewed.error().message);
  });
}

}  // namespace fairlead
