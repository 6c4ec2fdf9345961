#include "edge/streamed_answer.h"

#include <algorithm>
#include <utility>

#include "edge/error_document.h"
#include "model/version.h"

namespace fairlead {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;  // of an answer that is whole; frames of some clients have a bound

}  // namespace

Error was_streamed_elsewhere() {
  return {Errc::kConflict,
          "the call has run, and its answer was sent as a stream to whoever asked first: it is not kept"};
}

std::vector<net::Header> call_headers(const AnswerHead& head, Duration after) {
  return {{"X-Amz-Executed-Version", version_name(head.version)},
          {"X-Gpu-Queue-Ms", fmt::format("{:.3f}", to_ms(head.delivery.queue_time))},
          {"X-Gpu-First-Byte-Ms", fmt::format("{:.3f}", to_ms(after))},
          {"X-Gpu-Start", std::string(start_kind_name(head.delivery.start))},
          {"X-Gpu-Device", fmt::format("{}", head.delivery.gpu.value())}};
}

void AnswerFraming::refused(net::HttpExchange exchange, const Error& error) {
  respond_error(std::move(exchange), error);
}

void StreamedAnswer::invoke(NodeService& node, net::HttpExchange exchange, std::unique_ptr<AnswerFraming> framing,
                            InvokeRequest request) {
  const auto answer = std::make_shared<StreamedAnswer>(std::move(exchange), std::move(framing));
  request.stream = answer;
  auto cancel = node.invoke(std::move(request), [answer](Result<Outcome> outcome) { answer->end(std::move(outcome)); });
  if (answer->exchange_ && cancel) answer->exchange_.on_disconnect(std::move(cancel));
}

void StreamedAnswer::begin(const AnswerHead& head) {
  if (has_begun_ || prelude_) {  // an answer that was begun by an instance that is no more
    if (prelude_) prelude_->failure = Failure{"Function.StreamCut", "its instance began its answer again"};
    writer_.reset();
    return;
  }
  net::HttpResponse response = framing_->head(head);
  for (net::Header& header : call_headers(head, monotonic_now() - arrived_))
    response.headers.push_back(std::move(header));
  if (framing_->reads_preludes() && head.content_type == kPreludeType) {
    std::erase_if(response.headers, [](const net::Header& header) { return header.name == "Content-Type"; });
    prelude_ = Prelude{.head = std::move(response), .request_id = std::string(head.request_id)};
    return;
  }
  open(std::move(response), /*has_body=*/true);
}

void StreamedAnswer::open(net::HttpResponse response, bool has_body) {
  has_begun_ = true;
  has_body = has_body && exchange_.request().method() != "HEAD";
  is_bodiless_ = !has_body;
  if (has_body) {
    auto [writer, body] = net::make_body_stream(kMostWaiting);
    writer_.emplace(std::move(writer));
    // Holds this until the connection lets go of the body.
    writer_->on_change([self = shared_from_this()] { self->change(); });
    response.stream = std::move(body);
  }
  net::HttpExchange exchange = std::move(exchange_);
  exchange.respond(std::move(response));
}

bool StreamedAnswer::is_gone() const {
  if (prelude_) return prelude_->failure.has_value();
  return has_begun_ && !is_bodiless_ && (!writer_ || writer_->is_gone());
}

void StreamedAnswer::part(std::string_view bytes) {
  if (prelude_) return read_prelude(bytes);
  if (!writer_ || bytes.empty()) return;
  waiting_ += bytes;
  flush();
}

void StreamedAnswer::read_prelude(std::string_view bytes) {
  if (prelude_->failure) return;
  auto said = prelude_->reader.feed(bytes);
  if (!said) prelude_->failure = Failure{"Function.InvalidPrelude", said.error().message};
  if (!said || !*said) return;
  Prelude prelude = *std::exchange(prelude_, std::nullopt);
  StreamPrelude& http = **said;
  prelude.head.status = http.status;
  for (net::Header& header : http.headers) prelude.head.headers.push_back(std::move(header));
  open(std::move(prelude.head), http.has_body());
  part(prelude.reader.take_rest());
}

void StreamedAnswer::flush() {
  while (writer_) {
    if (framed_.empty()) frame_next();
    if (framed_.empty()) {
      if (ending_ == Ending::kWhole) writer_->finish();
      if (ending_ != Ending::kOpen) writer_.reset();  // not finished: cut
      return;
    }
    const std::size_t fits = std::min(framed_.size(), writer_->room());
    const net::BodyWrite written = writer_->write(fits > 0 ? std::string_view(framed_).substr(0, fits) : framed_);
    if (written == net::BodyWrite::kFull) return;  // on_change tells of room
    if (written == net::BodyWrite::kGone) {
      waiting_.clear();
      framed_.clear();
      return writer_.reset();
    }
    framed_.erase(0, fits);
  }
}

// Bytes are framed when those before them have gone, not as they come: a function that sends them one by one would have a frame for
// each, many times as large.
void StreamedAnswer::frame_next() {
  const std::size_t bytes = std::min(waiting_.size(), kPieceBytes);
  framed_ = bytes > 0 ? framing_->part(std::string_view(waiting_).substr(0, bytes)) : std::exchange(last_, {});
  waiting_.erase(0, bytes);
}

void StreamedAnswer::change() {
  const auto self = shared_from_this();
  flush();
  if (const auto callback = changed_) callback();
}

void StreamedAnswer::end(Result<Outcome> outcome) {
  changed_ = nullptr;
  if (is_bodiless_) return;
  if (outcome && prelude_) return end_failed_prelude(*std::move(outcome));
  if (!outcome) {
    if (!has_begun_) return framing_->refused(std::move(exchange_), outcome.error());
    ending_ = Ending::kCut;
    return flush();
  }
  if (!has_begun_ && outcome->was_streamed) {
    return framing_->refused(std::move(exchange_), was_streamed_elsewhere());
  }
  if (!has_begun_) {
    if (auto whole = framing_->whole(*outcome)) return exchange_.respond(std::move(*whole));
    // What a function says of its error is for `last` to tell.
    const std::string payload = outcome->failed() ? std::string() : std::exchange(outcome->payload, {});
    net::HttpResponse response =
        framing_->head({.request_id = outcome->request_id, .content_type = outcome->content_type});
    response.headers.push_back({"X-Amz-Executed-Version", version_name(outcome->version)});
    for (std::size_t at = 0; at < payload.size(); at += kPieceBytes) {
      response.body += framing_->part(std::string_view(payload).substr(at, kPieceBytes));
    }
    response.body += framing_->last(*outcome).value_or("");
    return exchange_.respond(std::move(response));
  }
  const std::optional<std::string> last = framing_->last(*outcome);
  ending_ = last ? Ending::kWhole : Ending::kCut;
  last_ = last.value_or("");
  flush();
}

// The function's answer ended, or was ended, before its head was whole.
void StreamedAnswer::end_failed_prelude(Outcome outcome) {
  Prelude prelude = *std::exchange(prelude_, std::nullopt);
  if (!outcome.failed() || prelude.failure) {
    outcome.kind = OutcomeKind::kFunctionError;
    outcome.payload.clear();
    outcome.failure = prelude.failure.value_or(
        Failure{"Function.InvalidPrelude", "its answer ended before the 8 NUL bytes that end its head"});
  }
  if (auto whole = framing_->whole(outcome)) return exchange_.respond(std::move(*whole));
  exchange_.respond(std::move(prelude.head));
}

}  // namespace fairlead
