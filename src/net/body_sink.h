// Where the body of a request goes as it arrives, in place of being collected in memory: a file, a hash, a decoder.
//
//   HttpServer server(io, limits, handler, [](HttpRequest& head) { return head.method() == "PUT" ? make_sink() : nullptr; });
//   ... in the handler: const auto sink = exchange.request().take_sink();
//
// A request that does not arrive as a whole, because its client disconnects, is too slow, sends too much or what is no HTTP, reaches
// no handler: its sink is destroyed. A sink that is full is given at most what the connection has read already, 64 KiB, and
// nothing more is read until it has room; others are served meanwhile.
//
// Threads: the server's.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace fairlead::net {

class BodySink {
 public:
  virtual ~BodySink() = default;

  // The next bytes, in order; between two calls the event loop may turn. What goes wrong is for the handler to ask.
  virtual void append(std::string_view bytes) = 0;
  // That nobody wants the rest: the request is answered 410, and its connection closed.
  virtual bool is_over() const { return false; }
  // Bytes that it takes in all; 0: as many as HttpLimits::body_bytes says.
  virtual std::size_t most_bytes() const { return 0; }
  // That nothing more should be read for now; call tell_room() when it may be.
  virtual bool is_full() const { return false; }

  void on_room(std::function<void()> callback) { room_ = std::move(callback); }

 protected:
  void tell_room() {
    if (room_) room_();
  }

 private:
  std::function<void()> room_;  // the connection's; does nothing once that is closed
};

}  // namespace fairlead::net
