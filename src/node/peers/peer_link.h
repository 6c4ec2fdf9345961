// The connections to one peer: kept alive, each opened with a hello in which both sides prove that they have the cluster's key, and
// each carrying one
// request at a time under a session of its own.
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "net/http_channel.h"
#include "node/peers/peer_seal.h"

namespace fairlead {

struct PeerLinkOptions {
  std::string own_name;
  std::string advertised;              // where others reach this node; "": they know, or need not
  std::size_t most_connections = 256;  // more requests at a time are kResourceExhausted
  std::size_t response_bytes = 8 << 20;
  Duration hello_patience = std::chrono::seconds(1);
  Duration idle = std::chrono::seconds(
      60);  // a connection that was not used for longer is closed: the server does so after five minutes
};

// Who answered a hello.
struct PeerGreeting {
  std::string name;
  std::string boot;  // differs between two nodes of one name
};

class PeerLink {
 public:
  struct Request {
    std::string target;
    std::string head;  // sealed
    std::string body;  // behind it
    std::optional<Duration> patience;
    std::shared_ptr<net::BodyTaker> taker = nullptr;  // of an answer that comes in parts
  };
  using Done = std::function<void(Result<net::ClientResponse>)>;
  // Asked at each new connection; an error refuses it.
  using Greeted = std::function<Status(const PeerGreeting&)>;

  PeerLink(boost::asio::io_context& io, net::Endpoint endpoint, const net::TlsTrust* trust, const PeerSeal& seal,
           PeerLinkOptions options, Greeted greeted);
  ~PeerLink();  // nobody is called back

  void set_address(const net::SocketAddress& address) { address_ = address; }
  const net::Endpoint& endpoint() const { return endpoint_; }

  // Errors as HttpChannel's; kUnauthenticated: the other side has another key; kResourceExhausted. Any status but 401 is an answer.
  // The handle ends the
  // request: its connection is closed, and `done` is not called.
  std::function<void()> send(Request request, Done done);
  // Everything under way ends with that error.
  void drop(const Error& error);
  std::size_t busy() const { return busy_; }
  std::size_t connections() const { return lines_.size(); }

 private:
  struct Line {
    std::shared_ptr<net::HttpChannel> channel;
    std::string session;
    std::uint64_t number = 0;
    Instant used_at{};
    Done done;                 // of the request that it carries; empty: idle
    std::uint64_t serial = 0;  // of that request, within the link
  };
  using LinePtr = std::shared_ptr<Line>;

  Result<LinePtr> idle_line();
  void begin(const LinePtr& line, std::shared_ptr<Request> request, bool is_second);
  void say_hello(const LinePtr& line, std::shared_ptr<Request> request, bool is_second);
  Status read_welcome(Line& line, const std::string& nonce, const net::ClientResponse& answer);
  void finish(const LinePtr& line, Result<net::ClientResponse> answer);
  void remove(const LinePtr& line);

  boost::asio::io_context& io_;
  const net::Endpoint endpoint_;
  const net::TlsTrust* const trust_;
  const PeerSeal& seal_;
  const PeerLinkOptions options_;
  const Greeted greeted_;
  std::optional<net::SocketAddress> address_;
  std::vector<LinePtr> lines_;  // shared with what they carry
  std::size_t busy_ = 0;
  std::uint64_t last_serial_ = 0;
};

}  // namespace fairlead
