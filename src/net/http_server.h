// An HTTP/1.1 server on one io_context thread: the only server in the product. Edges and every instance's Runtime
// API are handlers behind it. Built on Asio and Beast; no other header of the project includes Beast.
//
// Contract: handlers run on the io_context's thread and never block. A request is answered now or later, on that
// thread, exactly once; answers of pipelined requests leave in request order. The body of an answer may be written later and on
// any thread (net/http_stream.h). A connection that sends more than
// `limits` allow is answered 413, 431 or 400 and closed. All buffers are bounded. Threads: everything on the
// io_context's thread, except where said.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {
class ByteBudget;
}

namespace fairlead::net {

struct HttpLimits {
  std::size_t header_bytes = 64 << 10;
  std::size_t body_bytes = 8 << 20;
  std::size_t pipelined_requests = 16;
  Duration idle_timeout = std::chrono::minutes(5);       // between requests
  Duration transfer_timeout = std::chrono::seconds(60);  // a begun request must arrive, a blocked answer must move on
  std::size_t connections = 10'000;                      // and 64 more over Unix sockets
  std::size_t requests_per_turn = 16;                    // of a connection, before others have theirs,
  Duration turn = std::chrono::microseconds(100);        // and after which its next request waits for another turn
  std::size_t unsent_bytes = 1 << 20;                    // of a connection's answers: beyond, its next request waits
};

struct Header {
  std::string name;
  std::string value;
};

class BodySink;
class TlsHandshakes;

// Valid until the exchange is answered or dropped.
class HttpRequest {
 public:
  virtual ~HttpRequest() = default;
  virtual std::string_view method() const = 0;
  virtual std::string_view target() const = 0;                       // as sent, percent-encoded, with the query
  virtual std::string_view header(std::string_view name) const = 0;  // case-insensitive; empty when absent
  // All of them, in their order, with names and values as sent.
  virtual std::vector<Header> all_headers() const { return {}; }
  virtual std::string_view body() const = 0;
  virtual std::string take_body() = 0;  // moves the body out
  // What the body went to (BodySinks), then body() is empty; null: it was collected. Moves it out.
  virtual std::shared_ptr<BodySink> take_sink() { return nullptr; }
  // Why its body was not kept (RequestMemory), then body() is empty; null: it was. To be answered, as an error.
  virtual const Error* refusal() const { return nullptr; }
  virtual bool peer_is_local() const = 0;  // a Unix socket, or a loopback address
  // Who connected, as an address without its port: "10.0.0.7". Empty: over a Unix socket.
  virtual std::string peer_address() const { return {}; }
  // Whose process connected, over a Unix socket, as the kernel says (SO_PEERCRED); empty: over another address.
  virtual std::optional<std::uint32_t> peer_uid() const = 0;
  // Whose process sends it, also over a loopback address: with whose rights it may ask for files of this machine. No credential:
  // peer_uid() is. Empty: another machine's, or the kernel does not know. Looks through the machine's connections.
  virtual std::optional<std::uint32_t> caller_uid() const { return peer_uid(); }
};

class BodyStream;

struct HttpResponse {
  unsigned status = 200;
  std::vector<Header> headers = {};  // Content-Length, Transfer-Encoding and Connection are the server's
  std::string body = {};
  std::shared_ptr<BodyStream> stream = {};  // instead of `body`: one that is made while it is sent (net/http_stream.h)
};

// One request and the right to answer it. Move-only. Destroyed unanswered: the server answers 500.
class HttpExchange {
 public:
  // What stands behind an exchange: a slot of a connection, or a fake in a test.
  class Impl {
   public:
    virtual ~Impl() = default;
    virtual HttpRequest& request() = 0;
    virtual void respond(HttpResponse response) = 0;
    virtual void on_disconnect(std::function<void()> callback) = 0;
    virtual void abandon() = 0;  // the exchange was destroyed unanswered
  };

  HttpExchange() = default;
  explicit HttpExchange(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  HttpExchange(HttpExchange&& other) noexcept = default;
  HttpExchange& operator=(HttpExchange&& other) noexcept;
  ~HttpExchange();

  explicit operator bool() const { return impl_ != nullptr; }
  HttpRequest& request();
  void respond(HttpResponse response);  // no-op when the client has gone; leaves the exchange empty

  // Called at most once, if the client disconnects (or ends its sending side) before the answer. Not called after
  // respond(), nor by HttpServer::close().
  void on_disconnect(std::function<void()> callback);

 private:
  std::shared_ptr<Impl> impl_;
};

using HttpHandler = std::function<void(HttpExchange)>;

// Asked when the head of a request with a body is there: where its body goes (net/body_sink.h). Null: it is collected. The limits
// on a body are the same.
using BodySinks = std::function<std::shared_ptr<BodySink>(HttpRequest& head)>;

// Bounds what bodies and answers hold together, fairly among those who send them (base/byte_budget.h). A body is counted from its
// first byte beyond kFree to its answer's last, so that a queued call counts too. One that finds no room is read and thrown away:
// its request reaches the handler with a refusal(). An answer that finds none is not kept, and 429 is sent in its place, which says
// that the request was carried out: who asks for answers and takes none is in nobody's way.
struct RequestMemory {
  static constexpr std::size_t kFree = 16 << 10;       // of a connection's first body, and of its answers: not counted
  static constexpr std::size_t kFreeBehind = 1 << 10;  // of a body behind others that wait
  std::size_t bytes = 0;                               // in all; 0: nothing is counted
  // Who is to hold a body that grows beyond kFree, or an answer; an error is a body's refusal. Only the head is there.
  std::function<Result<std::string>(HttpRequest& head)> holder = {};
  bool keeps_answers_over_unix = false;     // they are the operator's, and kept beyond the part
  std::shared_ptr<ByteBudget> shared = {};  // with other servers of this thread; null: its own, of `bytes`
};

// REQUIRES: the io_context outlives the server and every exchange.
class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, HttpLimits limits, HttpHandler handler, BodySinks sinks = {},
             RequestMemory memory = {});
  ~HttpServer();  // closes everything

  // "127.0.0.1:9001", "[::1]:0", "unix:/path". Returns the bound address (port 0 replaced).
  Result<std::string> listen(std::string_view address);
  // The same, for clients that speak TLS. `handshakes` outlives the server; the connections made count as any other from the end
  // of their handshake on.
  Result<std::string> listen(std::string_view address, TlsHandshakes& handshakes);
  // Takes over a listening stream socket made elsewhere (another network namespace). Owns the descriptor.
  Status adopt_listener(int fd);
  void stop_listening();  // existing connections go on
  void close();           // drops everything now
  std::size_t connections() const;
  std::size_t held_bytes() const;  // of the request memory's budget, now

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// "/a%2Fb/c?x=1" -> segments decoded after splitting {"a/b","c"}, query {"x","1"}. Fails on a bad percent escape or
// NUL.
struct Target {
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;
  std::string_view query_value(std::string_view name) const;
};
Result<Target> parse_target(std::string_view target);

}  // namespace fairlead::net
