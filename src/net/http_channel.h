// One kept-alive HTTP/1.1 connection to another server, on the event loop: what http_client.h is for those who may not block.
//
//   channel->send({.method = "POST", .target = "/x", .body = "..."}, patience, [](Result<ClientResponse> answer) { ... });
//
// One request at a time, no pipelining. The first send() connects. What cannot be known is said: kUnavailable means that the server was
// not reached or closed the connection before any byte of the request was handed to the network, so that the request may be sent elsewhere;
// kIo and kDeadlineExceeded mean that the request may have been read. A request is never sent twice.
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "net/body_taker.h"
#include "net/http_client.h"
#include "net/http_listener.h"
#include "net/tls.h"

namespace fairlead::net {

// Where a channel leads: "http://HOST:PORT", "https://HOST:PORT", "HOST:PORT" or "unix:/PATH".
struct Endpoint {
  std::string text;       // as given
  std::string authority;  // "HOST:PORT" or "unix:/PATH"
  std::string host;       // without the port; whose name the certificate must have
  bool speaks_tls = false;

  bool is_local() const;  // a Unix socket, a loopback address or localhost
};
// kInvalidArgument names the text and what is wrong. Resolves nothing.
Result<Endpoint> parse_endpoint(std::string_view text);
// Blocks where the host is a name: never on an io_context's thread.
Result<SocketAddress> resolve_endpoint(const Endpoint& endpoint);

struct ChannelOptions {
  Duration connect_timeout = std::chrono::milliseconds(500);
  std::size_t response_bytes = 8 << 20;  // larger answers are kTooLarge
};

class HttpChannel : public std::enable_shared_from_this<HttpChannel> {
 public:
  using Done = std::function<void(Result<ClientResponse>)>;

  // `trust`: whom to believe, for https; outlives the channel.
  static std::shared_ptr<HttpChannel> create(boost::asio::io_context& io, Endpoint endpoint, SocketAddress address,
                                             const TlsTrust* trust, ChannelOptions options);
  virtual ~HttpChannel() = default;

  // `prefix` goes before the body, so that a large body is not copied. No patience: the answer may take as long as it takes.
  // `taker`: gets the body of an answer that it wants, however long; null: nobody does. REQUIRES then: ChannelOptions::response_bytes >= 64 KiB,
  // the most that is read at a time.
  // `done` is called once from the event loop, unless the channel is closed before. REQUIRES: !is_busy().
  virtual void send(ClientRequest request, std::string prefix, std::optional<Duration> patience, Done done,
                    std::shared_ptr<BodyTaker> taker = nullptr) = 0;
  virtual bool is_busy() const = 0;
  // Not connected, or idle on a connection that the server has not closed.
  virtual bool is_usable() = 0;
  virtual bool is_connected() const = 0;
  virtual void close() = 0;  // now; the server sees its client go. `done` of what is under way is not called.
};

}  // namespace fairlead::net
