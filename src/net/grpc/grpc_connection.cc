#include "net/grpc/grpc_connection.h"

#include <nghttp2/nghttp2.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "net/grpc/grpc_stream.h"
#include "net/http_response.h"
#include "net/tcp_peer.h"

namespace fairlead::net {
namespace {

constexpr std::size_t kInputBytes = 16 << 10;
constexpr std::size_t kTurnBytes = 32 << 10;  // of answers go out, before others have theirs
constexpr std::size_t kMostQueued = 256;      // frames that wait to be sent
constexpr std::int32_t kStreamWindow = 256 << 10;
constexpr std::int32_t kConnectionWindow = 1 << 20;

nghttp2_nv field(std::string_view name, std::string_view value) {
  return {.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

// What nghttp2 reports. None of them leaves it by an exception.
struct GrpcCallbacks {
  static GrpcConnection& of(void* user) { return *static_cast<GrpcConnection*>(user); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) of(user).open_stream(frame->hd.stream_id);
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    GrpcStream* const stream = of(user).calls_.find(frame->hd.stream_id);
    if (stream == nullptr || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    stream->add_header({reinterpret_cast<const char*>(name), name_size},
                       {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size,
                  void* user) {
    if (GrpcStream* const stream = of(user).calls_.find(id)) {
      stream->add_data({reinterpret_cast<const char*>(data), size});
    }
    return 0;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool is_head = frame->hd.type == NGHTTP2_HEADERS;
    if (!is_head && frame->hd.type != NGHTTP2_DATA) return 0;
    GrpcStream* const stream = of(user).calls_.find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (is_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) stream->end_headers();
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) of(user).calls_.end_input(frame->hd.stream_id);
    return 0;
  }

  // Whoever is answered before all of the call is there need not send the rest.
  static int frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    const GrpcStream* const stream = of(user).calls_.find(frame->hd.stream_id);
    if (stream != nullptr && !stream->has_ended_input()) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    of(user).close_stream(id);
    return 0;
  }

  // The next part of an answer; behind its last one stands the status.
  static ssize_t body(nghttp2_session* session, std::int32_t id, std::uint8_t* to, std::size_t most,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    GrpcStream* const stream = of(user).calls_.find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::size_t count = of(user).next_part(*stream, reinterpret_cast<char*>(to), most);
    if (stream->unsent() == 0) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailer = field("grpc-status", "0");
      if (nghttp2_submit_trailer(session, id, &trailer, 1) != 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return static_cast<ssize_t>(count);
  }

  static const nghttp2_session_callbacks* all() {
    static nghttp2_session_callbacks* const callbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      FL_CHECK(nghttp2_session_callbacks_new(&made) == 0, "no memory");
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(made, header);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, data);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, frame_received);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, frame_sent);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, stream_closed);
      return made;
    }();
    return callbacks;
  }
};

// ---- life

GrpcConnection::GrpcConnection(std::shared_ptr<GrpcServerState> server, Transport transport, const Peer& peer)
    : server_(std::move(server)),
      transport_(std::move(transport)),
      peer_(peer),
      address_(address_of_tcp_peer(transport_.native_handle())),
      calls_(server_->now),
      input_(std::make_unique_for_overwrite<char[]>(kInputBytes)) {}

GrpcConnection::~GrpcConnection() {
  nghttp2_session_del(session_);
}

void GrpcConnection::start() {
  ++server_->connections;
  ++server_->of_address[address_];
  FL_CHECK(nghttp2_session_server_new(&session_, GrpcCallbacks::all(), this) == 0, "no memory");
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<std::uint32_t>(server_->limits.calls)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(server_->limits.header_bytes)}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  read();  // they go out behind the client's first bytes: one that speaks HTTP/1.1 would take them for its answer
}

void GrpcConnection::close() {
  if (std::exchange(closed_, true)) return;
  --server_->connections;
  if (const auto same = server_->of_address.find(address_); --same->second == 0) server_->of_address.erase(same);
  hook.unlink();
  calls_.forget_arrived();
  transport_.close();
}

void GrpcConnection::drop() {
  const auto self = shared_from_this();
  close();
  for (const auto& stream : calls_.take_all()) stream->client_has_gone();
}

// A send failed. The handler may be on the stack, so the callbacks of other calls wait for the event loop.
void GrpcConnection::fail_later() {
  close();
  boost::asio::post(transport_.executor(), [self = shared_from_this()] { self->drop(); });
}

void GrpcConnection::leave() {
  if (closed_ || std::exchange(leaving_, true)) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
  write();
}

void GrpcConnection::on_tick(Instant now) {
  const auto self = shared_from_this();
  const GrpcLimits& limits = server_->limits;
  if (output_.is_stuck(now, limits.transfer_timeout)) return drop();
  if (const auto idle = idle_since()) return now - *idle > limits.idle_timeout ? leave() : void();
  for (const auto& stream : calls_.all()) {
    if (now - stream->begun() > limits.transfer_timeout) stream->give_up();
  }
}

// ---- input

// Each frame read may make nghttp2 answer with one: who takes no answers is not read.
bool GrpcConnection::may_read() const {
  if (output_.state() == GrpcOutput::State::kBlocked || calls_.has_arrived()) return false;
  return nghttp2_session_get_outbound_queue_size(session_) < kMostQueued && nghttp2_session_want_read(session_) != 0;
}

void GrpcConnection::read() {
  if (reading_ || closed_ || !may_read()) return;
  reading_ = true;
  transport_.async_read(input_.get(), kInputBytes,
                        [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
                          self->reading_ = false;
                          if (self->closed_) return;
                          error ? self->drop() : self->on_read(count);
                        });
}

void GrpcConnection::on_read(std::size_t count) {
  in_session_ = true;
  const ssize_t taken = nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(input_.get()), count);
  in_session_ = false;
  if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC) say_what_is_spoken();
  if (taken < 0) return drop();
  go_on();
}

void GrpcConnection::say_what_is_spoken() {
  std::string answer;
  const HttpResponse refusal{.status = 400,
                             .headers = {{"Content-Type", "text/plain"}},
                             .body = "gRPC (HTTP/2) is spoken at this address; HTTP/1.1 at those of --listen\n"};
  append_response_head(refusal, {.close = true}, answer);
  transport_.send(answer, refusal.body);
}

void GrpcConnection::go_on() {
  const auto self = shared_from_this();
  tell_cancelled();
  take_turn();
  if (closed_) return;
  write();
  read();
}

void GrpcConnection::take_turn() {
  const Instant end = monotonic_now() + server_->limits.turn;
  for (std::size_t calls = 0; calls < server_->limits.calls_per_turn && calls_.has_arrived(); ++calls) {
    if (calls > 0 && monotonic_now() > end) break;
    const auto stream = calls_.take_arrived();
    if (stream->state() == GrpcStream::State::kArrived && server_->open) stream->hand_over(server_->handler);
    if (closed_) return;
  }
  if (!calls_.has_arrived() || std::exchange(turn_posted_, true)) return;
  boost::asio::post(transport_.executor(), [self = shared_from_this()] {
    self->turn_posted_ = false;
    if (!self->closed_) self->go_on();
  });
}

void GrpcConnection::tell_cancelled() {
  for (const auto& stream : calls_.take_cancelled()) stream->client_has_gone();
}

// ---- output

void GrpcConnection::send_answer(GrpcStream& stream) {
  if (closed_ || calls_.find(stream.id()) == nullptr) return;
  const GrpcAnswer& answer = stream.answer();
  const bool has_message = answer.status == GrpcStatus::kOk;
  const std::string status = std::to_string(static_cast<int>(answer.status));
  const std::string text = grpc_message_of(answer.message);
  std::vector<nghttp2_nv> fields = {field(":status", "200"), field("content-type", "application/grpc+proto")};
  for (const Header& header : answer.headers) fields.push_back(field(header.name, header.value));
  if (!has_message) {
    fields.push_back(field("grpc-status", status));
    if (!text.empty()) fields.push_back(field("grpc-message", text));
  }
  nghttp2_data_provider body{};
  body.read_callback = GrpcCallbacks::body;
  output_.wait(stream.unsent(), server_->now);
  if (nghttp2_submit_response(session_, stream.id(), fields.data(), fields.size(), has_message ? &body : nullptr) !=
      0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id(), NGHTTP2_INTERNAL_ERROR);
  }
  if (!in_session_) write();
}

std::size_t GrpcConnection::next_part(GrpcStream& stream, char* to, std::size_t most) {
  const std::size_t count = stream.take_body(to, most);
  output_.moved(count, server_->now);
  return count;
}

bool GrpcConnection::fill_output() {
  while (!output_.is_full(kTurnBytes)) {
    const std::uint8_t* data = nullptr;
    in_session_ = true;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    in_session_ = false;
    if (size < 0) return false;
    if (size == 0) break;
    output_.add({reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)});
  }
  return true;
}

void GrpcConnection::write() {
  using State = GrpcOutput::State;
  if (closed_ || output_.state() != State::kIdle) return;
  if (output_.rest().empty() && !fill_output()) return fail_later();
  if (output_.rest().empty()) {
    const bool is_over = leaving_ && calls_.empty();
    if (is_over || (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0)) {
      fail_later();
    }
    return;
  }
  const Transport::Moved moved = transport_.send(output_.rest(), {});
  switch (moved.sent) {
    case Transport::Sent::kBroken: return fail_later();
    case Transport::Sent::kSome: output_.sent(moved.count); break;
    case Transport::Sent::kLater:
      output_.set_state(State::kBlocked, server_->now);
      return transport_.await_output([self = shared_from_this()](const boost::system::error_code&) {
        self->output_.set_state(State::kIdle, self->server_->now);
        if (self->closed_) return;
        self->write();
        self->read();
      });
  }
  // One turn of the event loop is others'.
  output_.set_state(State::kPosted, server_->now);
  boost::asio::post(transport_.executor(), [self = shared_from_this()] {
    self->output_.set_state(State::kIdle, self->server_->now);
    if (self->closed_) return;
    self->write();
    self->read();
  });
}

// ---- by nghttp2

void GrpcConnection::open_stream(int id) {
  calls_.open(std::make_shared<GrpcStream>(weak_from_this(), id, server_->now));
}

void GrpcConnection::close_stream(int id) {
  const GrpcStream* const stream = calls_.find(id);
  if (stream == nullptr) return;
  output_.gave_up(stream->unsent());
  if (!calls_.close(id, server_->now)) return;
  boost::asio::post(transport_.executor(), [self = shared_from_this()] { self->tell_cancelled(); });
}

}  // namespace fairlead::net
