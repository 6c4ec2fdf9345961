// The body of an answer that is made while it is sent: a pipe of a bounded number of bytes from whoever writes it, on any
// thread, to the connection.
//
//   auto [writer, body] = make_body_stream();
//   exchange.respond({.status = 200, .headers = {{"Content-Type", "text/csv"}}, .stream = body});
//   writer.write("a,b\n");  // now, later, or on another thread
//   writer.finish();
//
// An HTTP/1.1 client gets chunks and keeps its connection, an HTTP/1.0 client reads until the connection closes. A client that
// reads slowly holds `limit` bytes and no more: what does not fit is refused, and the writer decides whether to wait or to
// leave it out. A client that takes nothing for HttpLimits::transfer_timeout is cut off.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace fairlead::net {

class BodyPipe;

enum class BodyWrite {
  kTaken,
  kFull,  // larger than room(): nothing was taken
  kGone,  // nobody reads any more, or the body was ended
};

// The writer's end. Move-only. Destroyed without finish(): what was written is sent, then the connection closes in the middle of the
// body, so that no client takes a part for the whole.
//
// Threads: any, one call after the other. May outlive the server and its io_context.
class BodyWriter {
 public:
  explicit BodyWriter(std::shared_ptr<BodyPipe> pipe) : pipe_(std::move(pipe)) {}
  BodyWriter(BodyWriter&&) noexcept = default;
  BodyWriter& operator=(BodyWriter&& other) noexcept;
  ~BodyWriter();

  BodyWrite write(std::string_view bytes);  // all of them or none
  std::size_t room() const;                 // what write() takes now; grows as the client reads
  bool is_gone() const;                     // the client has disconnected or was cut off, or the server is closed
  void finish();                            // what was written is sent, then the body is complete

  // `callback` is called on the server's thread when room has grown after a write was refused, and when the client has gone
  // (which counts as such when it ends its sending side, as for HttpExchange::on_disconnect), or was gone before respond(), which
  // then calls it. Not by HttpServer::close().
  // REQUIRES: the body was not handed to respond() yet.
  void on_change(std::function<void()> callback);

 private:
  std::shared_ptr<BodyPipe> pipe_;
};

// The connection's end; its methods are the server's. Destroyed: the writer's client has gone.
//
// Threads: the server's.
class BodyStream {
 public:
  enum class Next { kNothing, kPart, kEnd, kCut };

  explicit BodyStream(std::shared_ptr<BodyPipe> pipe) : pipe_(std::move(pipe)) {}
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;
  ~BodyStream();

  // `wake` is called when there is something to take after take() found nothing: on any thread, with the pipe's lock held, so
  // that none is under way once close() has returned. It must only post.
  void connect(std::function<void()> wake);
  // What was taken before has been sent. kPart: all bytes that wait are in `part`.
  Next take(std::string& part);
  bool is_ended() const;      // by its writer; bytes may wait
  std::size_t limit() const;  // bytes that may wait
  void close();               // nothing is read any more
  void tell_writer();         // that its client has gone; once

 private:
  std::shared_ptr<BodyPipe> pipe_;
};

inline constexpr std::size_t kBodyStreamBytes = 256 << 10;

// Both ends. The body is shared by the copies of its answer.
std::pair<BodyWriter, std::shared_ptr<BodyStream>> make_body_stream(std::size_t limit = kBodyStreamBytes);

}  // namespace fairlead::net
