#include "net/transport.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string>
#include <utility>

namespace fairlead::net {
namespace {

// What fits into one record of TLS. A head and a small body are one record, and one packet more often than not.
constexpr std::size_t kRecordBytes = 16 << 10;

}  // namespace

// ---- input

void Transport::await_input(char* data, std::size_t size, ReadHandler handler) {
  // What the session holds already makes no socket ready. From the event loop, as every read: a peer that sends much keeps nobody
  // waiting.
  if (session_->has_input()) {
    return boost::asio::post(executor(), [this, data, size, handler = std::move(handler)]() mutable {
      try_input(data, size, std::move(handler));
    });
  }
  socket_.async_wait(Socket::wait_read,
                     [this, data, size, handler = std::move(handler)](const boost::system::error_code& error) mutable {
                       if (error) return handler(error, 0);
                       try_input(data, size, std::move(handler));
                     });
}

void Transport::try_input(char* data, std::size_t size, ReadHandler handler) {
  if (!socket_.is_open()) return handler(boost::asio::error::operation_aborted, 0);
  const TlsSession::Moved moved = session_->read(data, size);
  switch (moved.step) {
    case TlsSession::Step::kDone: return handler({}, moved.count);
    case TlsSession::Step::kEnd: return handler(boost::asio::error::eof, 0);
    case TlsSession::Step::kFailed: return handler(boost::asio::error::connection_reset, 0);
    case TlsSession::Step::kNeedsRead:
    case TlsSession::Step::kNeedsWrite: break;
  }
  const auto wanted = moved.step == TlsSession::Step::kNeedsRead ? Socket::wait_read : Socket::wait_write;
  socket_.async_wait(wanted,
                     [this, data, size, handler = std::move(handler)](const boost::system::error_code& error) mutable {
                       if (error) return handler(error, 0);
                       try_input(data, size, std::move(handler));
                     });
}

// ---- output

Transport::Moved Transport::send(std::string_view head, std::string_view body) {
  return session_ ? send_tls(head, body) : send_plain(head, body);
}

Transport::Moved Transport::send_plain(std::string_view head, std::string_view body) {
  iovec parts[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return {Sent::kSome, static_cast<std::size_t>(count)};
    if (errno == EAGAIN) return {Sent::kLater};
    if (errno != EINTR) return {Sent::kBroken};
  }
}

Transport::Moved Transport::send_tls(std::string_view head, std::string_view body) {
  TlsSession::Moved moved;
  if (head.empty()) {
    moved = session_->write(body);
  } else {
    std::string record(head.substr(0, kRecordBytes));
    record += body.substr(0, kRecordBytes - record.size());
    moved = session_->write(record);
  }
  switch (moved.step) {
    case TlsSession::Step::kDone: return {Sent::kSome, moved.count};
    case TlsSession::Step::kNeedsWrite: return {Sent::kLater};
    default: return {Sent::kBroken};  // there is no renegotiation, so nothing is to be read before
  }
}

void Transport::end_output() {
  if (session_) session_->end_output();
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

void Transport::close() {
  if (session_ && socket_.is_open()) session_->end_output();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace fairlead::net
