#include "net/http_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/spare_memory.h"
#include "net/body_sink.h"
#include "net/http_response.h"
#include "net/http_stream.h"
#include "net/request_lease.h"
#include "net/tcp_peer.h"

namespace fairlead::net {

namespace {

constexpr std::size_t kMinInputBytes = 4 << 10;
constexpr std::size_t kMaxInputBytes = 64 << 10;
constexpr std::size_t kMaxInputBehindSink = 8 << 10;  // of a body whose sink is full: the rest waits in the kernel
constexpr std::size_t kTurnBytes = 32 << 10;          // of an answer go out, before others have theirs
// After a refused request the client may still be sending it. Closing at once would reset the connection and could
// destroy the answer on its way, so this much is read and thrown away first.
constexpr std::size_t kMaxDiscardBytes = 64 << 20;

// The pages of a large answer go back as it is sent: all of them at its end would be a turn in which nobody is served. How many bytes more.
std::size_t release_sent(std::string& body, std::size_t released, std::size_t sent) {
  return body.size() < kLargeBlock || sent <= released ? 0 : release_pages(body, released, sent);
}

}  // namespace

// A request, the right to answer it, and its answer until that is sent.
class Connection::Slot final : public HttpExchange::Impl, public HttpRequest {
 public:
  enum class State { kArriving, kHandling, kReady, kStreaming };

  explicit Slot(Connection& connection) : connection_(connection) {}

  std::string_view method() const override { return parsed.view(parsed.method); }
  std::string_view target() const override { return parsed.view(parsed.target); }
  std::string_view header(std::string_view name) const override { return parsed.header(name); }
  std::vector<Header> all_headers() const override {
    std::vector<Header> all;
    all.reserve(parsed.fields.size());
    for (const ParsedRequest::Field& field : parsed.fields) {
      all.push_back({std::string(parsed.view(field.name)), std::string(parsed.view(field.value))});
    }
    return all;
  }
  std::string_view body() const override { return parsed.body; }
  std::string take_body() override { return std::move(parsed.body); }
  const Error* refusal() const override { return refused ? &*refused : nullptr; }
  std::shared_ptr<BodySink> take_sink() override { return std::exchange(parsed.sink, nullptr); }
  bool peer_is_local() const override { return connection_.peer_.is_local; }
  std::string peer_address() const override { return address_of_tcp_peer(connection_.transport_.native_handle()); }
  std::optional<std::uint32_t> peer_uid() const override { return connection_.peer_.uid; }
  std::optional<std::uint32_t> caller_uid() const override {
    if (connection_.peer_.uid || !connection_.peer_.is_local) return connection_.peer_.uid;
    return uid_of_tcp_peer(connection_.transport_.native_handle());
  }

  HttpRequest& request() override { return *this; }
  void respond(HttpResponse response) override { connection_.respond(*this, std::move(response)); }
  void on_disconnect(std::function<void()> callback) override {
    if (state == State::kHandling) disconnected = std::move(callback);
  }
  void abandon() override {
    HttpResponse response{.status = 500};
    connection_.respond(*this, std::move(response));
  }

  BodyFraming framing() const {
    if (!answer.stream) return BodyFraming::kLength;
    return parsed.is_http10 ? BodyFraming::kUntilClosed : BodyFraming::kChunked;
  }
  void drop_body() {
    answer.body.clear();
    answer.stream.reset();
  }
  void invite_body();  // where its client holds it back
  // Where its body goes; null: it is collected. REQUIRES: its head is there.
  std::shared_ptr<BodySink> make_sink();
  // Whether so much of its body may be collected; else `refused` says why not.
  bool may_hold(std::size_t bytes);
  void count_answer();
  bool has_full_sink() const { return parsed.sink && parsed.sink->is_full(); }
  bool has_open_stream() const { return answer.stream && !answer.stream->is_ended(); }

  void reset() {
    state = State::kArriving;
    is_last = is_head = false;
    parsed.clear();
    answer = {};
    disconnected = nullptr;
    refused.reset();
    lease.release();
    counted = 0;
  }

  State state = State::kArriving;
  bool is_last = false;  // the connection ends after its answer
  bool is_head = false;  // its answer has no body
  ParsedRequest parsed;
  HttpResponse answer;
  std::function<void()> disconnected;
  std::optional<Error> refused;
  RequestLease lease;
  std::size_t counted = 0;  // of the answer, in unsent_

 private:
  Connection& connection_;
};

// ---- what a request holds

std::shared_ptr<BodySink> Connection::Slot::make_sink() {
  const auto& server = connection_.server_;
  if (!server->sinks || !server->open) return nullptr;
  auto sink = server->sinks(*this);
  if (!sink) return nullptr;
  // Keeps the connection: with its input full no read is pending, and a sink that is full is all that it waits for.
  sink->on_room([self = connection_.shared_from_this()] { self->resume_parsing(); });
  return sink;
}

bool Connection::Slot::may_hold(std::size_t bytes) {
  const auto& server = connection_.server_;
  Status held = lease.hold_request(server->memory, server->budget, *this, bytes);
  if (!held) refused = std::move(held.error());
  return held.has_value();
}

void Connection::Slot::count_answer() {
  const auto& server = connection_.server_;
  const std::size_t bytes = answer.body.size() + (answer.stream ? answer.stream->limit() : 0);
  const Status held =
      lease.hold_answer(server->memory, server->budget, *this, bytes,
                        {.is_over_unix = connection_.peer_.uid.has_value(), .unsent = connection_.unsent_});
  if (!held) {
    answer = {
        .status = 429, .headers = {{"Content-Type", "text/plain"}, {"Retry-After", "1"}}, .body = held.error().message};
  }
  counted = answer.body.size();
  parsed.forget();
}

// ---- input buffer

std::pair<char*, std::size_t> Connection::InputBuffer::space(std::size_t limit, bool can_wait) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  }
  if (end_ == capacity_) {
    const std::size_t unread = end_ - begin_;
    if (unread >= limit) return {nullptr, 0};
    // Whoever sends more requests than are answered has the buffer full: moved for each of them, 64 KiB a call.
    if (can_wait && unread > limit / 2) return {nullptr, 0};
    const std::size_t doubled = std::clamp(unread * 2, kMinInputBytes, std::max(limit, kMinInputBytes));
    reallocate(std::max(capacity_, doubled));
  }
  return {data_.get() + end_, capacity_ - end_};
}

void Connection::InputBuffer::reallocate(std::size_t capacity) {
  const std::size_t unread = end_ - begin_;
  if (capacity == capacity_) {
    std::memmove(data_.get(), data_.get() + begin_, unread);
  } else {
    auto grown = std::make_unique_for_overwrite<char[]>(capacity);
    if (unread > 0) std::memcpy(grown.get(), data_.get() + begin_, unread);
    data_ = std::move(grown);
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = unread;
}

// ---- the ring of requests

Connection::SlotRing::SlotRing(std::size_t capacity) : slots_(capacity) {}
Connection::SlotRing::~SlotRing() = default;

Connection::Slot* Connection::SlotRing::push(Connection& connection) {
  if (used_ == slots_.size()) return nullptr;
  auto& slot = slots_[(oldest_ + used_++) % slots_.size()];
  if (!slot) slot = std::make_unique<Slot>(connection);
  slot->reset();
  return slot.get();
}

void Connection::SlotRing::pop_oldest() {
  oldest().reset();
  oldest_ = (oldest_ + 1) % slots_.size();
  --used_;
}

// ---- life

Connection::Connection(std::shared_ptr<ServerState> server, Transport transport, const Peer& peer)
    : server_(std::move(server)),
      transport_(std::move(transport)),
      peer_(peer),
      parser_(server_->limits, {.sink_for = [this] { return arriving_->make_sink(); },
                                .may_hold = [this](std::size_t bytes) { return arriving_->may_hold(bytes); }}),
      slots_(std::max<std::size_t>(server_->limits.pipelined_requests, 1)) {}

Connection::~Connection() = default;

void Connection::start() {
  ++server_->connections;
  server_->open_connections.push_back(*this);
  wait_for(Waiting::kRequest);
  read();
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();  // a stream that closes lets go of this
  --server_->connections;
  open_hook.unlink();
  wait_for(Waiting::kNothing);
  if (arriving_ != nullptr) arriving_->parsed.sink.reset();
  for (const auto& slot : slots_.all()) {
    if (slot && slot->answer.stream) slot->answer.stream->close();
  }
  transport_.close();
}

void Connection::on_timeout() {
  const auto self = shared_from_this();  // a sink that goes lets go of this
  if (arriving_ != nullptr && !sending_ && !discarding_) {
    refuse(408, "the request did not arrive in time");
    if (!closed_) wait_for(Waiting::kTransfer);
    return;
  }
  drop();
}

void Connection::drop() {
  const auto self = shared_from_this();
  close();
  disconnect_slots();
}

std::optional<std::string> Connection::holder() {
  if (slots_.size() == 0 || slots_.oldest().state != Slot::State::kHandling) return std::nullopt;
  if (peer_.uid && server_->memory.keeps_answers_over_unix) return std::nullopt;
  if (!server_->memory.holder) return kNobody;
  return server_->memory.holder(slots_.oldest()).value_or(kNobody);
}

void Connection::wait_for(Waiting what) {
  if (what == waiting_.what && what == Waiting::kNothing) return;
  wait_hook.unlink();
  waiting_ = {what, server_->now};
  if (what == Waiting::kRequest) server_->waiting_for_request.push_back(*this);
  if (what == Waiting::kTransfer) server_->waiting_for_transfer.push_back(*this);
}

void Connection::update_waiting() {
  if (closed_ || discarding_) return;
  if (sending_ || arriving_ != nullptr) {
    // A request has the whole timeout from its first byte on, however slowly it drips in.
    if (waiting_.what != Waiting::kTransfer) wait_for(Waiting::kTransfer);
  } else {
    wait_for(slots_.size() == 0 ? Waiting::kRequest : Waiting::kNothing);
  }
}

// ---- input

void Connection::read() {
  if (reading_ || closed_ || input_ended_) return;
  const bool waits = arriving_ != nullptr && arriving_->has_full_sink();
  const auto [data, size] = input_.space(waits ? kMaxInputBehindSink : kMaxInputBytes, has_waiting_input());
  if (size == 0) return;  // only while input waits, which is looked at again: parsing always leaves room otherwise
  reading_ = true;
  transport_.async_read(data, size,
                        [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
                          self->on_read(error, count);
                        });
}

void Connection::on_read(const boost::system::error_code& error, std::size_t count) {
  reading_ = false;
  if (closed_) return;
  if (error) return on_input_end(error);
  if (discarding_ || refused_) {
    discarded_ += count;
    if (discarded_ > kMaxDiscardBytes) close();
  } else {
    input_.commit(count);
    if (turn_ == Turn::kReading) parse();
  }
  update_waiting();
  read();
}

void Connection::on_input_end(const boost::system::error_code& error) {
  input_ended_ = true;
  // A client may end its sending side and still wait for the answers, so those that are coming are sent. One that has no end yet
  // is not: whether its client is still there would show in a failed send at best.
  const bool has_no_end =
      std::ranges::any_of(slots_.all(), [](const auto& slot) { return slot && slot->has_open_stream(); });
  const bool is_half_closed = error == boost::asio::error::eof && !discarding_ && !has_no_end;
  if (!is_half_closed) {
    close();
  } else if (!has_waiting_input()) {
    settle_input_end();
  }
  disconnect_slots();
  update_waiting();
}

// Whether there is input that has yet to be looked at.
bool Connection::has_waiting_input() const {
  return turn_ != Turn::kReading && !refused_ && !input_.unread().empty();
}

// The client sends nothing more, and all that it sent was looked at: a request that is not whole will not be.
void Connection::settle_input_end() {
  if (arriving_ != nullptr) {
    std::exchange(arriving_, nullptr)->reset();
    slots_.pop_newest();
  }
  if (slots_.size() == 0) close();
}

void Connection::disconnect_slots() {
  const auto self = shared_from_this();  // a callback may drop the last exchange
  for (const auto& slot : slots_.all()) {
    if (!slot) continue;
    if (auto callback = std::exchange(slot->disconnected, nullptr)) callback();
    if (!closed_) continue;
    if (const auto stream = std::exchange(slot->answer.stream, nullptr)) stream->tell_writer();
  }
}

void Connection::parse() {
  turn_ = Turn::kParsing;
  std::size_t requests = 0;
  Instant turn_ends{};
  while (!closed_ && !refused_ && !input_.unread().empty() && !pause_after(requests, turn_ends)) {
    if (arriving_ == nullptr) {
      arriving_ = slots_.push(*this);
      if (arriving_ == nullptr) {
        turn_ = Turn::kPaused;
        break;
      }
      arriving_->parsed.uncounted = slots_.size() == 1 ? RequestMemory::kFree : RequestMemory::kFreeBehind;
      parser_.begin(arriving_->parsed);
    }
    if (arriving_->has_full_sink()) {
      turn_ = Turn::kPaused;
      break;
    }
    const RequestParser::Step step = parser_.feed(input_.unread());
    input_.consume(step.consumed);
    take_step(step);
    // The clock is read for pipelines only.
    if (step.progress == RequestParser::Progress::kDone && !input_.unread().empty() && ++requests == 1) {
      turn_ends = monotonic_now() + server_->limits.turn;
    }
    if (step.progress != RequestParser::Progress::kDone && step.consumed == 0) break;
  }
  if (turn_ == Turn::kParsing) turn_ = Turn::kReading;
}

// Between two requests: whether the next one waits, for others to have their turn or for answers to be taken.
bool Connection::pause_after(std::size_t requests, Instant turn_ends) {
  if (arriving_ != nullptr) return false;
  if (unsent_ > server_->limits.unsent_bytes) {
    turn_ = Turn::kPaused;  // until an answer is out
    return true;
  }
  if (requests == 0) return false;
  if (requests < server_->limits.requests_per_turn && monotonic_now() < turn_ends) return false;
  turn_ = Turn::kPaused;
  resume_parsing();
  return true;
}

void Connection::take_step(const RequestParser::Step& step) {
  switch (step.progress) {
    case RequestParser::Progress::kDone: {
      Slot& slot = *std::exchange(arriving_, nullptr);
      dispatch(slot);
      break;
    }
    case RequestParser::Progress::kFailed: refuse(step.status, step.reason); break;
    case RequestParser::Progress::kHeadDone: arriving_->invite_body(); break;
    case RequestParser::Progress::kNeedMore:
      if (step.consumed == 0 && input_.unread().size() >= kMaxInputBytes) {
        refuse(431, fmt::format("a line of the request is longer than {} bytes", kMaxInputBytes));
      }
      break;
  }
}

// Answers the arriving request with an error, as the last answer of this connection.
void Connection::refuse(unsigned status, std::string reason) {
  Slot& slot = *std::exchange(arriving_, nullptr);
  refused_ = true;
  slot.parsed.sink.reset();
  slot.state = Slot::State::kHandling;
  slot.is_last = true;
  respond(slot, {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(reason)});
}

void Connection::Slot::invite_body() {
  if (!std::exchange(parsed.expects_continue, false)) return;
  // Behind an unanswered request it would be out of order; clients do not wait for it for long.
  if (connection_.slots_.size() > 1 || connection_.sending_) return;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (connection_.transport_.send(kContinue, "").count != kContinue.size()) connection_.fail_later();
}

void Connection::dispatch(Slot& slot) {
  slot.state = Slot::State::kHandling;
  if (slot.parsed.sink) slot.parsed.sink->on_room(nullptr);  // all of it is there
  slot.is_last = !slot.parsed.keep_alive;
  slot.is_head = slot.method() == "HEAD";
  refused_ = slot.is_last;  // what follows a `Connection: close` is not a request
  if (!server_->open) return close();
  server_->handler(HttpExchange(std::shared_ptr<HttpExchange::Impl>(shared_from_this(), &slot)));
}

// Called from an answer, and therefore from the handler's own stack, or by a sink: parsing goes on from the event loop. Once,
// however often it is called meanwhile.
void Connection::resume_parsing() {
  if (turn_ != Turn::kPaused) return;
  turn_ = Turn::kPosted;
  boost::asio::post(transport_.executor(), [self = shared_from_this()] {
    if (self->closed_ || self->turn_ != Turn::kPosted) return;
    self->parse();
    if (!self->closed_ && self->input_ended_ && !self->has_waiting_input()) self->settle_input_end();
    self->update_waiting();
    self->read();
  });
}

// ---- answers

void Connection::respond(Slot& slot, HttpResponse response) {
  slot.disconnected = nullptr;
  if (closed_ || slot.state != Slot::State::kHandling) return;
  slot.answer = std::move(response);
  slot.state = Slot::State::kReady;
  if (slot.answer.stream) slot.answer.body.clear();
  slot.count_answer();
  unsent_ += slot.counted;
  if (input_ended_ && slot.has_open_stream()) return fail_later();
  if (slot.framing() == BodyFraming::kUntilClosed) slot.is_last = refused_ = true;
  if (!sending_ && &slot == &slots_.oldest()) send_ready();
}

void Connection::send_ready() {
  while (!closed_ && !sending_ && !discarding_ && slots_.size() > 0 && slots_.oldest().state == Slot::State::kReady) {
    Slot& slot = slots_.oldest();
    head_.clear();
    sent_ = released_ = 0;
    append_response_head(
        slot.answer, {.close = slot.is_last, .announce_keep_alive = slot.parsed.is_http10, .framing = slot.framing()},
        head_);
    if (slot.is_head || !status_has_body(slot.answer.status)) slot.drop_body();
    if (slot.answer.stream) {
      slot.state = Slot::State::kStreaming;
      slot.answer.stream->connect([self = shared_from_this()] {
        boost::asio::post(self->transport_.executor(), [self] { self->on_output(); });
      });
    }
    flush();
  }
}

// Sends what the peer takes of the current answer, or of the current part of one, and no more than a turn's bytes: a peer that reads
// as fast as this writes would have the thread for as long as the answer is, and one call of the kernel takes megabytes.
void Connection::flush() {
  const std::string_view body = slots_.oldest().answer.body;
  const std::size_t turn_ends = sent_ + kTurnBytes;
  while (sent_ < head_.size() + body.size()) {
    if (sent_ >= turn_ends) {  // what is left goes from the event loop, once others had their turn
      sending_ = true;
      wait_for(Waiting::kTransfer);
      return boost::asio::post(transport_.executor(), [self = shared_from_this()] { self->on_output(); });
    }
    const std::size_t head_sent = std::min(sent_, head_.size());
    const Transport::Moved moved =
        transport_.send(std::string_view(head_).substr(head_sent), body.substr(sent_ - head_sent, turn_ends - sent_));
    if (moved.sent == Transport::Sent::kBroken) return fail_later();
    if (moved.sent == Transport::Sent::kLater) {
      sending_ = true;
      wait_for(Waiting::kTransfer);  // anew after each part that went out: only a client that takes nothing times out
      return transport_.await_output([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error) self->on_output();
      });
    }
    sent_ += moved.count;
    released_ += release_sent(slots_.oldest().answer.body, released_, sent_ - std::min(sent_, head_.size()));
  }
  slots_.oldest().answer.stream ? next_part() : finish_answer();
}

// The socket takes more, or there is more to send.
void Connection::on_output() {
  if (closed_) return;
  sending_ = false;
  flush();
  send_ready();
  update_waiting();
}

// All that was taken from the stream is out. Its next part goes from the event loop, and so do those behind it.
void Connection::next_part() {
  Slot& slot = slots_.oldest();
  head_.clear();
  sent_ = released_ = 0;
  const bool is_chunked = slot.framing() == BodyFraming::kChunked;
  const BodyStream::Next next = slot.answer.stream->take(slot.answer.body);
  if (closed_ || next == BodyStream::Next::kNothing) return;
  if (next == BodyStream::Next::kCut) return fail_later();
  if (next == BodyStream::Next::kEnd) {
    if (is_chunked) head_ = kLastChunk;
    std::exchange(slot.answer.stream, nullptr)->close();
    return flush();
  }
  if (is_chunked) {
    append_chunk_head(slot.answer.body.size(), head_);
    slot.answer.body.append(kChunkEnd);
  }
  boost::asio::post(transport_.executor(), [self = shared_from_this()] { self->on_output(); });
}

void Connection::finish_answer() {
  const bool is_last = slots_.oldest().is_last;
  unsent_ -= slots_.oldest().counted;
  slots_.pop_oldest();
  if (is_last || (input_ended_ && slots_.size() == 0 && !has_waiting_input())) return end_after_answer();
  resume_parsing();
  if (turn_ != Turn::kParsing) update_waiting();
}

void Connection::end_after_answer() {
  if (input_ended_) return close();
  transport_.end_output();
  discarding_ = true;
  wait_for(Waiting::kTransfer);
  read();
}

// A send failed. The handler may be on the stack, so the callbacks of other requests wait for the event loop.
void Connection::fail_later() {
  close();
  boost::asio::post(transport_.executor(), [self = shared_from_this()] { self->disconnect_slots(); });
}

}  // namespace fairlead::net
