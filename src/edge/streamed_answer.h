// An answer that reaches its client part by part, while its function makes it.
//
//   begin("text/event-stream") ──> head ──> part ──> part ──> end(outcome) ──> the framing's last words
//
// A function that answers whole, or that fails before it answers, is sent whole at its end, as one body that is counted as any other (RequestMemory).
// What the node refuses before that is an error document, with its status. Of an answer that cannot be ended well once it has begun the connection is cut,
// so that no client takes a part for the whole.
//
// Example: a chat function yields 40 words over 4 s. The client has the head and the first word as soon as they are there. One that reads
// nothing holds kMostWaiting bytes, then the function's next write waits; one that leaves ends the function's connection.
//
// Threads: the server's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "edge/node_service.h"
#include "edge/stream_prelude.h"
#include "model/answer_stream.h"
#include "net/http_server.h"
#include "net/http_stream.h"

namespace fairlead {

// How one edge writes such an answer.
class AnswerFraming {
 public:
  virtual ~AnswerFraming() = default;
  virtual net::HttpResponse head(const AnswerHead& head) = 0;
  // Whether answers of the type kPreludeType become HTTP answers; else they are sent on as they are.
  virtual bool reads_preludes() const { return false; }
  virtual std::string part(std::string_view bytes) = 0;
  // Of one that was not begun, where that is another answer; none: it is a head, parts and `last`, which says how it failed.
  virtual std::optional<net::HttpResponse> whole(Outcome& outcome) = 0;
  // The node refused the call, or it failed before anything of an answer was there.
  virtual void refused(net::HttpExchange exchange, const Error& error);
  // After the last part. None: it failed, and there is no word for that here; the connection is cut.
  virtual std::optional<std::string> last(const Outcome& outcome) = 0;
};

// What a repeat of such a call is told.
Error was_streamed_elsewhere();

// Of an answer that begins now, `after` its request came: the version that runs, and how long what took.
std::vector<net::Header> call_headers(const AnswerHead& head, Duration after);

class StreamedAnswer final : public AnswerStream, public std::enable_shared_from_this<StreamedAnswer> {
 public:
  // Of an answer, waiting for its client. What the function's connection has read already, 8 KiB, may wait beside it.
  static constexpr std::size_t kMostWaiting = 8 << 10;

  StreamedAnswer(net::HttpExchange exchange, std::unique_ptr<AnswerFraming> framing)
      : exchange_(std::move(exchange)), framing_(std::move(framing)) {}

  // Calls the function, and what it answers goes to the exchange.
  static void invoke(NodeService& node, net::HttpExchange exchange, std::unique_ptr<AnswerFraming> framing,
                     InvokeRequest request);

  void begin(const AnswerHead& head) override;
  void part(std::string_view bytes) override;
  bool is_full() const override { return !framed_.empty() || !waiting_.empty(); }
  bool is_gone() const override;
  void on_change(std::function<void()> callback) override { changed_ = std::move(callback); }

  // Once; nothing is called after it.
  void end(Result<Outcome> outcome);

 private:
  enum class Ending { kOpen, kWhole, kCut };

  void open(net::HttpResponse response, bool has_body);
  void read_prelude(std::string_view bytes);
  void end_failed_prelude(Outcome outcome);
  void flush();
  void frame_next();
  void change();

  net::HttpExchange exchange_;  // until it has begun
  std::unique_ptr<AnswerFraming> framing_;
  std::optional<net::BodyWriter> writer_;  // none: not begun, or over
  std::string framed_;                     // what the connection had no room for; behind it
  std::string waiting_;                    // bytes that are not framed yet; and behind these
  std::string last_;                       // the framing's last words
  bool has_begun_ = false;
  struct Prelude {
    net::HttpResponse head;  // but for what the prelude says
    std::string request_id;
    PreludeReader reader;
    std::optional<Failure> failure;  // it is none
  };
  std::optional<Prelude> prelude_;  // begun, and not whole
  bool is_bodiless_ = false;        // the answer is sent: what follows is nobody's
  const Instant arrived_ = monotonic_now();
  Ending ending_ = Ending::kOpen;  // how it ends as soon as nothing waits
  std::function<void()> changed_;
};

}  // namespace fairlead
