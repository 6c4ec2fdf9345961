#include "node/peers/peer_stream.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/function.h"
#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"

namespace fairlead {
namespace {

constexpr const char* kBegunHeader = "X-Fairlead-Begun";
constexpr char kPartField = 'p', kOutcomeField = 'o', kPayloadField = 'b';
constexpr std::size_t kMostFieldHead = 22;  // a letter, a number of 64 bits and ':'

class Framing final : public AnswerFraming {
 public:
  explicit Framing(std::function<net::HttpResponse(Outcome&)> whole) : whole_(std::move(whole)) {}

  net::HttpResponse head(const AnswerHead& head) override {
    net::HttpResponse response{.status = 200};
    response.headers.push_back({kBegunHeader, write_outcome({.request_id = std::string(head.request_id),
                                                             .start = head.delivery.start,
                                                             .queue_time = head.delivery.queue_time,
                                                             .gpu = head.delivery.gpu})});
    if (!head.content_type.empty()) response.headers.push_back({"Content-Type", std::string(head.content_type)});
    return response;
  }
  std::string part(std::string_view bytes) override { return FieldWriter().text(kPartField, bytes).take(); }
  std::optional<net::HttpResponse> whole(Outcome& outcome) override { return whole_(outcome); }
  void refused(net::HttpExchange exchange, const Error& error) override {
    exchange.respond({.status = 500, .body = write_error(error)});
  }
  std::optional<std::string> last(const Outcome& outcome) override {
    return FieldWriter().text(kOutcomeField, write_outcome(outcome)).text(kPayloadField, outcome.payload).take();
  }

 private:
  const std::function<net::HttpResponse(Outcome&)> whole_;
};

}  // namespace

std::unique_ptr<AnswerFraming> peer_framing(std::function<net::HttpResponse(Outcome&)> whole) {
  return std::make_unique<Framing>(std::move(whole));
}

Status PeerStreamReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (state_ == State::kOver) return fail(Errc::kCorrupt, "a node's answer goes on after its outcome");
    if (state_ != State::kHead) {
      read_field(bytes);
    } else if (Status read = read_head(bytes); !read) {
      return read;
    }
  }
  return {};
}

Status PeerStreamReader::read_head(std::string_view& bytes) {
  const std::size_t colon = bytes.find(':');
  head_ += bytes.substr(0, std::min(colon, kMostFieldHead));
  if (head_.size() >= kMostFieldHead) return fail(Errc::kCorrupt, "a field of a node's answer has no length");
  if (colon == std::string_view::npos) {
    bytes = {};
    return {};
  }
  bytes.remove_prefix(colon + 1);
  const std::string head = std::exchange(head_, {});
  const auto [end, error] =
      std::from_chars(head.data() + std::min<std::size_t>(1, head.size()), head.data() + head.size(), left_);
  if (error != std::errc() || end != head.data() + head.size()) {
    return fail(Errc::kCorrupt, "a field of a node's answer has the length '{}'", head);
  }
  const bool has_outcome = !outcome_.empty();
  if (head.front() == kPartField && !has_outcome) {
    state_ = left_ > 0 ? State::kPart : State::kHead;
  } else if (head.front() == kOutcomeField && !has_outcome && left_ > 0) {
    if (left_ > kMostOutcomeBytes) return fail(Errc::kTooLarge, "the outcome in a node's answer has {} bytes", left_);
    state_ = State::kOutcome;
  } else if (head.front() == kPayloadField && has_outcome) {
    if (left_ > kMaxSyncPayloadBytes)
      return fail(Errc::kTooLarge, "the payload in a node's answer has {} bytes", left_);
    state_ = left_ > 0 ? State::kPayload : State::kOver;
  } else {
    return fail(Errc::kCorrupt, "a node's answer has the field '{}' where it cannot be", head.front());
  }
  return {};
}

void PeerStreamReader::read_field(std::string_view& bytes) {
  const std::string_view now = bytes.substr(0, left_);
  bytes.remove_prefix(now.size());
  left_ -= now.size();
  if (state_ == State::kPart) part_(now);
  if (state_ == State::kOutcome) outcome_ += now;
  if (state_ == State::kPayload) payload_ += now;
  if (left_ == 0) state_ = state_ == State::kPayload ? State::kOver : State::kHead;
}

Result<Outcome> PeerStreamReader::end() {
  if (state_ != State::kOver) return fail(Errc::kCorrupt, "a node's answer ended before its outcome did");
  auto outcome = read_outcome(outcome_);
  if (outcome) outcome->payload = std::move(payload_);
  return outcome;
}

PeerStream::PeerStream(std::shared_ptr<AnswerStream> to, std::function<void(const Error&)> over)
    : to_(std::move(to)), over_(std::move(over)), reader_([this](std::string_view bytes) { to_->part(bytes); }) {}

bool PeerStream::wants(const net::ClientResponse& head) {
  const std::string_view begun = head.header(kBegunHeader);
  if (head.status != 200 || begun.empty()) return false;
  has_begun_ = true;
  const auto outcome = read_outcome(begun);
  if (!outcome) {
    begun_ = fail(outcome.error());
    return true;
  }
  to_->begin({.request_id = outcome->request_id,
              .content_type = head.header("Content-Type"),
              .delivery = {.start = outcome->start, .queue_time = outcome->queue_time, .gpu = outcome->gpu}});
  to_->on_change([held = weak_from_this()] {
    const auto self = held.lock();
    if (self && self->go_on({}) && !self->to_->is_full()) self->resume();
  });
  return true;
}

bool PeerStream::take(std::string_view bytes) {
  return go_on(begun_ ? reader_.feed(bytes) : begun_) && !to_->is_full();
}

// False: it is over.
bool PeerStream::go_on(const Status& read) {
  if (read && !to_->is_gone()) return true;
  const Error error = read ? Error{Errc::kUnavailable, "its caller has gone"} : read.error();
  if (const auto over = std::exchange(over_, nullptr)) over(error);
  return false;
}

Result<Outcome> PeerStream::end() {
  stop();
  return reader_.end();
}

void PeerStream::stop() {
  over_ = nullptr;
  if (has_begun_) to_->on_change(nullptr);
}

}  // namespace fairlead
