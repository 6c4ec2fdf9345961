// Sends one callback: resolves the host, looks at every address, connects to one that was looked at, posts.
//
// A name is resolved once and connected to as resolved, so that one that means another address a moment later (DNS rebinding) gains
// nothing; redirects are answers like others and not followed. A name server that is slow delays the callbacks to its names and nothing
// else (net/host_resolver.h).
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>

#include "edge/openfaas/callbacks.h"
#include "model/registry_rules.h"
#include "net/host_resolver.h"

namespace fairlead::openfaas {

inline constexpr Duration kCallbackPatience = std::chrono::seconds(15);  // of a try, from its name to the answer

// `io` must outlive what it returns. Errors: kForbidden: an address is not global and the rules do not name the host; else those of
// net::HttpChannel.
SendCallback callback_sender(boost::asio::io_context& io, RegistryRules rules,
                             net::HostResolver::LookUp look_up = net::look_up_host);

}  // namespace fairlead::openfaas
