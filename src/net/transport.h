// What a connection sends and receives through: a stream socket, in the clear or with TLS. Neither knows of HTTP.
//
// In the clear a read is one recv by the reactor, a write one sendmsg tried at once. With TLS the reactor says that the socket is
// ready, and the session (net/tls.h) moves the bytes.
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string_view>

#include "net/tls.h"

namespace fairlead::net {

class Transport {
 public:
  using Socket =
      boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, boost::asio::io_context::executor_type>;

  // Null session: in the clear. REQUIRES: its handshake is over.
  Transport(Socket socket, std::unique_ptr<TlsSession> session)
      : socket_(std::move(socket)), session_(std::move(session)) {}

  // `handler(error, count)` is called once from the event loop, also when the transport closes. REQUIRES: no other read is
  // pending; `data` and the transport live until then.
  template <typename Handler>
  void async_read(char* data, std::size_t size, Handler handler) {
    if (session_) return await_input(data, size, std::move(handler));
    socket_.async_read_some(boost::asio::buffer(data, size), std::move(handler));
  }

  enum class Sent { kSome, kLater, kBroken };
  struct Moved {
    Sent sent = Sent::kBroken;
    std::size_t count = 0;
  };
  // Sends what the socket takes now of `head` and then `body`. After kLater: await_output(), and the same bytes again.
  Moved send(std::string_view head, std::string_view body);
  template <typename Handler>
  void await_output(Handler handler) {
    socket_.async_wait(Socket::wait_write, std::move(handler));
  }

  void end_output();  // the peer reads an end behind what was sent
  void close();       // now
  int native_handle() { return socket_.native_handle(); }
  Socket::executor_type executor() { return socket_.get_executor(); }

 private:
  using ReadHandler = std::function<void(const boost::system::error_code&, std::size_t)>;

  void await_input(char* data, std::size_t size, ReadHandler handler);
  void try_input(char* data, std::size_t size, ReadHandler handler);
  Moved send_plain(std::string_view head, std::string_view body);
  Moved send_tls(std::string_view head, std::string_view body);

  Socket socket_;
  std::unique_ptr<TlsSession> session_;
};

}  // namespace fairlead::net
