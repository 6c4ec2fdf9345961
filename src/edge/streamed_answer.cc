#include "edge/streamed_answer.h"

#include <algorithm>
#include <utility>

#include "edge/error_document.h"

namespace fairlead {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;  // of an answer that is whole; frames of some clients have a bound

}  // namespace

Error was_streamed_elsewhere() {
  return {Errc::kConflict,
          "the call has run, and its answer was sent as a stream to whoever asked first: it is not kept"};
}

void StreamedAnswer::invoke(NodeService& node, net::HttpExchange exchange, std::unique_ptr<AnswerFraming> framing,
                            InvokeRequest request) {
  const auto answer = std::make_shared<StreamedAnswer>(std::move(exchange), std::move(framing));
  request.stream = answer;
  auto cancel = node.invoke(std::move(request), [answer](Result<Outcome> outcome) { answer->end(std::move(outcome)); });
  if (answer->exchange_ && cancel) answer->exchange_.on_disconnect(std::move(cancel));
}

void StreamedAnswer::begin(const AnswerHead& head) {
  if (has_begun_) {  // an answer that was begun by an instance that is no more
    writer_.reset();
    return;
  }
  has_begun_ = true;
  auto [writer, body] = net::make_body_stream(kMostWaiting);
  writer_.emplace(std::move(writer));
  // Holds this until the connection lets go of the body.
  writer_->on_change([self = shared_from_this()] { self->change(); });
  net::HttpResponse response = framing_->head(head);
  response.stream = std::move(body);
  net::HttpExchange exchange = std::move(exchange_);
  exchange.respond(std::move(response));
}

void StreamedAnswer::part(std::string_view bytes) {
  if (!writer_ || bytes.empty()) return;
  waiting_ += framing_->part(bytes);
  flush();
}

void StreamedAnswer::flush() {
  if (!writer_) return;
  while (!waiting_.empty()) {
    const std::size_t fits = std::min(waiting_.size(), writer_->room());
    if (fits > 0 && writer_->write(std::string_view(waiting_).substr(0, fits)) == net::BodyWrite::kTaken) {
      waiting_.erase(0, fits);
      continue;
    }
    if (writer_->write(waiting_) == net::BodyWrite::kGone) {
      waiting_.clear();
      writer_.reset();
      return;
    }
    return;  // refused, so on_change tells of room
  }
  if (is_over_) {
    writer_->finish();
    writer_.reset();
  }
}

void StreamedAnswer::change() {
  const auto self = shared_from_this();
  flush();
  if (const auto callback = changed_) callback();
}

void StreamedAnswer::end(Result<Outcome> outcome) {
  changed_ = nullptr;
  if (!outcome) {
    if (!has_begun_) return respond_error(std::move(exchange_), outcome.error());
    writer_.reset();
    return;
  }
  if (!has_begun_ && outcome->was_streamed) {
    return respond_error(std::move(exchange_), was_streamed_elsewhere());
  }
  if (!has_begun_) {
    if (auto whole = framing_->whole(*outcome)) return exchange_.respond(std::move(*whole));
    // What a function says of its error is for `last` to tell.
    const std::string payload = outcome->failed() ? std::string() : std::exchange(outcome->payload, {});
    net::HttpResponse response =
        framing_->head({.request_id = outcome->request_id, .content_type = outcome->content_type});
    for (std::size_t at = 0; at < payload.size(); at += kPieceBytes) {
      response.body += framing_->part(std::string_view(payload).substr(at, kPieceBytes));
    }
    response.body += framing_->last(*outcome).value_or("");
    return exchange_.respond(std::move(response));
  }
  std::optional<std::string> last = framing_->last(*outcome);
  if (!last) {
    writer_.reset();
    return;
  }
  waiting_ += *last;
  is_over_ = true;
  flush();
}

}  // namespace fairlead
