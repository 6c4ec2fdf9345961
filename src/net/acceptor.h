// The listening sockets of a server: takes who connects, and shakes hands first where TLS is spoken.
//
//   acceptor->listen("127.0.0.1:9001")  ...  taker(Accepted{transport, who})
//
// Out of descriptors, connections wait in the kernel's backlog until some are free.
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/transport.h"

namespace fairlead::net {

class TlsHandshakes;

// Who connected, as the kernel says.
struct Peer {
  bool is_local = false;             // a Unix socket, or a loopback address
  std::optional<std::uint32_t> uid;  // of a Unix socket
};

struct Accepted {
  Transport transport;
  Peer peer;
};

// Shared: the event loop has it while something is under way. REQUIRES: the io_context outlives it.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  using Taker = std::function<void(Accepted)>;

  Acceptor(boost::asio::io_context& io, Taker taker) : io_(io), taker_(std::move(taker)) {}

  // "127.0.0.1:9001", "[::1]:0", "unix:/path". Returns the bound address (port 0 replaced). `handshakes` outlives the acceptor;
  // null: in the clear.
  Result<std::string> listen(std::string_view address, TlsHandshakes* handshakes);
  // Takes over a listening stream socket made elsewhere.
  Status adopt(int fd);
  void stop();   // who was taken is left alone; handshakes under way end in their taking
  void close();  // the same, and nobody is taken any more

 private:
  struct Listener;

  void add(int fd, std::string unix_path, TlsHandshakes* handshakes);
  void accept_later(const std::shared_ptr<Listener>& listener);
  void accept_all(const std::shared_ptr<Listener>& listener);
  void accept_again(const std::shared_ptr<Listener>& listener);
  void shake_hands(TlsHandshakes& handshakes, int fd, const Peer& peer);
  void take(int fd, const Peer& peer, std::unique_ptr<TlsSession> session);

  boost::asio::io_context& io_;
  const Taker taker_;
  std::vector<std::shared_ptr<Listener>> listeners_;  // shared with their pending accepts
  bool closed_ = false;
};

}  // namespace fairlead::net
