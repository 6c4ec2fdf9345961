// One connection of a GrpcServer: HTTP/2 by nghttp2 over a Transport.
//
//   bytes ──> nghttp2 ──> streams; those that are whole ──> arrived, some a turn ──handler──> answers ──> nghttp2 ──> bytes
//
// nghttp2 is never called from within its own callbacks, and handlers never from there: what it reports is written down, and done
// when it has returned. While calls wait for their turn nothing more is read.
//
// Example: a call of 1 KB is one recv, a handler, and one sendmsg of three frames (head, message, status).
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/intrusive/list.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_budget.h"
#include "net/acceptor.h"
#include "net/grpc/grpc_calls.h"
#include "net/grpc/grpc_output.h"
#include "net/grpc/grpc_server.h"
#include "net/transport.h"

struct nghttp2_session;

namespace fairlead::net {

class GrpcConnection;

using GrpcConnectionHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// What the connections of one server share. Outlives them.
struct GrpcServerState {
  GrpcServerState(const GrpcLimits& server_limits, HttpHandler server_handler, RequestMemory request_memory)
      : limits(server_limits),
        handler(std::move(server_handler)),
        memory(std::move(request_memory)),
        budget(memory.shared ? memory.shared : std::make_shared<ByteBudget>(memory.bytes)) {}

  const GrpcLimits limits;
  const HttpHandler handler;
  const RequestMemory memory;
  const std::shared_ptr<ByteBudget> budget;
  bool open = true;
  std::size_t connections = 0;
  std::map<std::string, std::size_t> of_address;  // how many, by who connected; none is 0
  Instant now{};                                  // as of the last tick: timeouts are coarse on purpose
};

class GrpcConnection : public std::enable_shared_from_this<GrpcConnection> {
 public:
  GrpcConnection(std::shared_ptr<GrpcServerState> server, Transport transport, const Peer& peer);
  ~GrpcConnection();

  void start();
  void close();  // now; the handler hears nothing of it
  void drop();   // the same, and who waits for an answer is told that the client has gone
  void leave();  // takes no new calls; closes after the last answer
  void on_tick(Instant now);

  // Since when it has no call; nothing: it has one.
  std::optional<Instant> idle_since() const { return calls_.idle_since(); }
  const std::string& address() const { return address_; }  // of who connected, without a port; "": over a Unix socket
  const Peer& peer() const { return peer_; }

  // What a stream asks of its connection.
  GrpcServerState& server() { return *server_; }
  int socket() { return transport_.native_handle(); }
  void send_answer(GrpcStream& stream);                           // it is there, and in the stream
  std::size_t unsent_bytes() const { return output_.waiting(); }  // of answers

  GrpcConnectionHook hook;  // in the server's list

 private:
  friend struct GrpcCallbacks;  // nghttp2's, which are plain functions

  bool may_read() const;
  void read();
  void on_read(std::size_t count);
  void go_on();
  void take_turn();
  void write();
  bool fill_output();
  void say_what_is_spoken();
  void tell_cancelled();
  void fail_later();

  // By GrpcCallbacks, with nghttp2 on the stack.
  void open_stream(int id);
  void close_stream(int id);
  std::size_t next_part(GrpcStream& stream, char* to, std::size_t most);

  const std::shared_ptr<GrpcServerState> server_;
  Transport transport_;
  const Peer peer_;
  const std::string address_;
  nghttp2_session* session_ = nullptr;
  GrpcCalls calls_;
  GrpcOutput output_;
  std::unique_ptr<char[]> input_;
  bool in_session_ = false;  // nghttp2 is on the stack
  bool reading_ = false;
  bool turn_posted_ = false;
  bool leaving_ = false;
  bool closed_ = false;
};

}  // namespace fairlead::net
