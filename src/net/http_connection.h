// One connection of an HttpServer: reads ahead, hands requests to the handler, sends the answers in request order.
//
//   Transport ──> InputBuffer ──> RequestParser ──> slot ──handler──> answer ──> Transport, oldest slot first
//
// A body that is written over time (net/http_stream.h) goes out in parts: all that waits is a chunk, and between two chunks the
// event loop turns, so that a fast writer with a fast reader keeps nobody waiting.
//
// What a request costs: one recv (done by the reactor when epoll reports the socket), one parse, one sendmsg tried at
// once; no timer, no lock, no queue hop. A read is pending at all times, also while a request is being handled: that is
// what detects a client that has gone.
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_budget.h"
#include "net/acceptor.h"
#include "net/http_request.h"
#include "net/http_server.h"
#include "net/transport.h"

namespace fairlead::net {

class Connection;

using ConnectionHook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// What a connection waits for, as far as time is concerned.
enum class Waiting { kNothing, kRequest, kTransfer };

struct ServerState;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerState> server, Transport transport, const Peer& peer);
  ~Connection();

  void start();
  void close();  // now; the handler hears nothing of it
  // The same, and who waits for an answer is told that the client has gone.
  void drop();
  // A timeout of the current wait passed.
  void on_timeout();

  Instant waiting_since() const { return waiting_.since; }
  // Whose request it has that is not answered yet, as RequestMemory says; empty: it has none, or is the operator's.
  std::optional<std::string> holder();

  ConnectionHook open_hook;  // in ServerState::open_connections
  ConnectionHook wait_hook;  // in one of its waiting lists, or in none

 private:
  class Slot;

  // Bytes received and not parsed yet.
  class InputBuffer {
   public:
    std::string_view unread() const { return {data_.get() + begin_, end_ - begin_}; }
    void consume(std::size_t count) { begin_ += count; }
    void commit(std::size_t count) { end_ += count; }
    // Free space behind the unread bytes; empty when `limit` unread bytes are there already. `can_wait`: these are looked at again before
    // long, and space is asked for then; so it may also be empty when more than half of that is there.
    std::pair<char*, std::size_t> space(std::size_t limit, bool can_wait);

   private:
    void reallocate(std::size_t capacity);

    std::unique_ptr<char[]> data_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
  };

  // The requests that are not answered yet, in their order. A slot is used again once its answer is out.
  class SlotRing {
   public:
    explicit SlotRing(std::size_t capacity);
    ~SlotRing();

    std::size_t size() const { return used_; }
    Slot& oldest() { return *slots_[oldest_]; }
    Slot* push(Connection& connection);  // null when all are in use
    void pop_oldest();
    void pop_newest() { --used_; }
    const std::vector<std::unique_ptr<Slot>>& all() const { return slots_; }  // those not in use too; null: never used

   private:
    std::vector<std::unique_ptr<Slot>> slots_;
    std::size_t oldest_ = 0;
    std::size_t used_ = 0;
  };

  void read();
  void on_read(const boost::system::error_code& error, std::size_t count);
  void on_input_end(const boost::system::error_code& error);
  void parse();
  void take_step(const RequestParser::Step& step);
  void refuse(unsigned status, std::string reason);
  void dispatch(Slot& slot);
  void resume_parsing();

  void respond(Slot& slot, HttpResponse response);
  void send_ready();
  void flush();
  void on_output();
  void next_part();
  void finish_answer();
  void end_after_answer();
  void fail_later();
  void disconnect_slots();
  void update_waiting();
  bool pause_after(std::size_t requests, Instant turn_ends);
  bool has_waiting_input() const;
  void settle_input_end();
  void wait_for(Waiting what);

  const std::shared_ptr<ServerState> server_;
  Transport transport_;
  const Peer peer_;

  InputBuffer input_;
  RequestParser parser_;
  SlotRing slots_;
  Slot* arriving_ = nullptr;  // the slot being parsed, the newest one

  std::string head_;          // of the answer being sent, or of the chunk
  std::size_t sent_ = 0;      // bytes of head and body that are gone
  std::size_t released_ = 0;  // bytes of the body, from its first on, whose memory is the kernel's again
  std::size_t unsent_ = 0;    // bytes of answers that are ready
  struct {
    Waiting what = Waiting::kNothing;
    Instant since{};
  } waiting_;
  std::size_t discarded_ = 0;

  // What becomes of the input that is there.
  enum class Turn {
    kReading,  // all of it was looked at; more is read
    kParsing,  // on the stack
    kPaused,   // waits until an answer is out, or a sink has room
    kPosted,   // goes on from the event loop, once others had theirs
  };
  Turn turn_ = Turn::kReading;
  bool reading_ = false;      // a read is pending
  bool sending_ = false;      // an answer is half sent
  bool refused_ = false;      // no further request will be read: the answer under way is the last one
  bool discarding_ = false;   // the last answer is out; input is thrown away until the client has seen it
  bool input_ended_ = false;  // the client sends nothing more
  bool closed_ = false;
};

// What the connections of one server share. Outlives them.
//
// Timeouts: both are constants of the server, so a list in order of arrival is a list in order of expiry. A connection
// moves to the back of a list in constant time, and a tick looks at the front: no timer per request.
struct ServerState {
  template <ConnectionHook Connection::*kHook>
  using List = boost::intrusive::list<Connection, boost::intrusive::member_hook<Connection, ConnectionHook, kHook>,
                                      boost::intrusive::constant_time_size<false>>;

  explicit ServerState(RequestMemory request_memory)
      : memory(std::move(request_memory)),
        budget_held(memory.shared ? memory.shared : std::make_shared<ByteBudget>(memory.bytes)),
        budget(*budget_held) {}

  HttpLimits limits;
  HttpHandler handler;
  BodySinks sinks;
  const RequestMemory memory;
  const std::shared_ptr<ByteBudget> budget_held;  // as long as there is a connection
  ByteBudget& budget;
  bool open = true;
  std::size_t connections = 0;
  Instant now{};  // as of the last tick: timeouts are coarse on purpose
  List<&Connection::open_hook> open_connections;
  List<&Connection::wait_hook> waiting_for_request;
  List<&Connection::wait_hook> waiting_for_transfer;
};

}  // namespace fairlead::net
