// Stands between the router and the handlers: who asks, and may they?
//
// A request is known by its Authorization (an API key, as a bearer token or by SigV4). Without one it is the operator's if it
// comes over a Unix socket from the node's own user or root; and, on a node that is open, if it comes over loopback and from no
// web page: a page that a browser on this machine shows can send requests to loopback, also under another name (DNS rebinding),
// but not without an Origin, or not with a Host that is loopback's.
//
// The console in a browser has a session cookie instead of a key (edge/session_cookie.h). It counts only beside the header
// X-Fairlead-Console, which no page of another origin can send and no link, form or image brings along; for GET, HEAD and POST; and
// not with an Origin that is another one.
//
// Threads: the io_context's. Bodies that are large are hashed elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "edge/node_service.h"
#include "edge/permission.h"
#include "identity/keyring.h"
#include "model/principal.h"
#include "net/http_server.h"

namespace fairlead {

// One change that somebody asked for, and how it ended.
struct AuditEntry {
  std::string who;  // Principal::name
  std::optional<std::string> tenant;
  std::string method, path;
  unsigned status = 0;
};

struct GuardOptions {
  bool is_open = false;            // loopback is the operator
  std::uint32_t operator_uid = 0;  // who may use the operator's socket, beside root
};

// What the guard needs of its surroundings.
struct GuardPorts {
  std::function<std::int64_t()> wall_clock_ms;
  // NodeService::run_elsewhere
  std::function<Status(const std::string& tenant, Bytes bytes, NodeService::Job job)> elsewhere;
  std::function<void(const AuditEntry&)> audit;
};

class Guard {
 public:
  // `keyring` outlives the guard and may change meanwhile.
  Guard(identity::Keyring& keyring, GuardOptions options, GuardPorts ports)
      : keyring_(keyring), options_(options), ports_(std::move(ports)) {}

  // Who asks, if they may; else why not. Where the answer is to be written down, `exchange` becomes one that does so.
  // REQUIRES: takes_long() is false.
  Result<Principal> admit(net::HttpExchange& exchange, Permission wanted);

  // A signature over a large body, which is hashed elsewhere first: then `next` is called with what admit() would return.
  static bool takes_long(net::HttpRequest& request);
  using Next = std::function<void(net::HttpExchange, Result<Principal>)>;
  void admit_later(net::HttpExchange exchange, Permission wanted, const Next& next);

  // Of a request whose body has yet to arrive: who sends it, if it may do that and what it shows says so without the body (a
  // signature covers the body). Else nothing, and admit() says why.
  std::optional<Principal> admit_head(net::HttpRequest& head, Permission wanted);

  // Of a request whose body grows: whose it is to count as, before all of it is there. A signature cannot be checked yet, so the
  // key that it names counts. kUnauthenticated: nobody's, and what is still to come need not be kept.
  Result<std::string> holder_of(net::HttpRequest& head);

 private:
  Result<Principal> identify(net::HttpRequest& request, const std::function<std::string()>& payload_sha256);
  Result<Principal> by_session(net::HttpRequest& request) const;
  Result<Principal> without_credential(net::HttpRequest& request) const;
  // `body`: what was taken out of the exchange; empty: nothing.
  Result<Principal> decide(net::HttpExchange& exchange, Permission wanted, Result<Principal> who,
                           std::shared_ptr<std::string> body);

  identity::Keyring& keyring_;
  const GuardOptions options_;
  const GuardPorts ports_;
};

}  // namespace fairlead
