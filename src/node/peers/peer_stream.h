// An answer that a home sends to a gateway while its function makes it.
//
//   home ── 200, X-Fairlead-Begun ── p5:hello p6: world ... o61:<outcome> b0: ──> gateway ──> its client
//
// The body is fields (fields.h) in one row: parts, then the outcome and what it says beside the parts. An answer that ends without an outcome was
// cut, and so is the client's. A function that answers whole is answered as a call without parts is.
//
// Each side has a bound: the home keeps what StreamedAnswer keeps, the gateway reads no more while its client's connection is full, which fills
// the home's, which makes the function wait.
//
// Threads: not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/streamed_answer.h"
#include "model/answer_stream.h"
#include "model/invocation.h"
#include "net/body_taker.h"
#include "net/http_response.h"

namespace fairlead {

// What the home writes. `whole`: of a function that did not begin.
std::unique_ptr<AnswerFraming> peer_framing(std::function<net::HttpResponse(Outcome&)> whole);

// What the gateway reads, in pieces that end anywhere.
class PeerStreamReader {
 public:
  static constexpr std::size_t kMostOutcomeBytes = 128 << 10;

  explicit PeerStreamReader(std::function<void(std::string_view)> part) : part_(std::move(part)) {}

  // kCorrupt: no such row of fields; kTooLarge: an outcome beyond its bound, or a payload beyond kMaxSyncPayloadBytes. Nothing is fed after it.
  Status feed(std::string_view bytes);
  // After the last byte. kCorrupt: it ended before its outcome did.
  Result<Outcome> end();

 private:
  enum class State { kHead, kPart, kOutcome, kPayload, kOver };

  Status read_head(std::string_view& bytes);
  void read_field(std::string_view& bytes);

  const std::function<void(std::string_view)> part_;
  State state_ = State::kHead;
  std::string head_;      // of a field, as far as it is there
  std::size_t left_ = 0;  // bytes of the field that are still to come
  std::string outcome_, payload_;
};

// Hands an answer in parts to the gateway's client.
class PeerStream final : public net::BodyTaker, public std::enable_shared_from_this<PeerStream> {
 public:
  // `over`: there is nobody to hand it to (kUnavailable), or it is no answer (kCorrupt, kTooLarge). Once, from inside take() or later.
  PeerStream(std::shared_ptr<AnswerStream> to, std::function<void(const Error&)> over);
  ~PeerStream() override { stop(); }

  bool wants(const net::ClientResponse& head) override;
  bool take(std::string_view bytes) override;

  bool has_begun() const { return has_begun_; }
  Result<Outcome> end();  // the body is whole
  void stop();            // the client's stream is left alone

 private:
  bool go_on(const Status& read);

  const std::shared_ptr<AnswerStream> to_;
  std::function<void(const Error&)> over_;
  PeerStreamReader reader_;
  Status begun_;  // whether its head could be read
  bool has_begun_ = false;
};

}  // namespace fairlead
