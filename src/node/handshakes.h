// The certificate of --tls-certificate, for each server of the node.
#pragma once

#include <memory>

#include "base/result.h"
#include "net/tls_handshakes.h"
#include "node/serve_options.h"

namespace fairlead {

// What a server speaks TLS with; null: it does not. Says in the log when the files were written anew.
Result<std::unique_ptr<net::TlsHandshakes>> make_handshakes(const ServeOptions& options, net::TlsProtocol protocol);

}  // namespace fairlead
