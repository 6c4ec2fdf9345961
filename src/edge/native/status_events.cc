#include "edge/native/status_events.h"

#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/native/admin.h"

namespace fairlead {

StatusEvents::StatusEvents(boost::asio::io_context& io, NodeService& node, Duration period)
    : node_(node), ticker_(io, period, [this] {
        send();
        return !streams_.empty();
      }) {}

void StatusEvents::open(RouteCall call) {
  forget_gone();
  if (streams_.size() >= kMostStreams) {
    return respond_error(std::move(call.exchange),
                         Error{Errc::kResourceExhausted,
                               fmt::format("{} streams of events are open, which is the most; close one, or ask for "
                                           "/fairlead/v1/status",
                                           streams_.size())});
  }
  net::EventStream stream = net::make_event_stream(kStreamBytes);
  const std::string event = next_event();
  if (stream.writer.send_text(event) != net::BodyWrite::kTaken) {
    return respond_error(std::move(call.exchange),
                         Error{Errc::kTooLarge, fmt::format("the status has {} bytes, an event has at most {}; ask for "
                                                            "/fairlead/v1/status",
                                                            event.size(), kStreamBytes)});
  }
  streams_.push_back(std::move(stream.writer));
  call.exchange.respond(std::move(stream.answer));
  ticker_.start();
}

void StatusEvents::send() {
  forget_gone();
  if (streams_.empty()) return;
  const std::string event = next_event();
  std::erase_if(streams_, [&event](net::EventWriter& stream) {
    const bool is_behind = stream.body().room() < kStreamBytes;
    if (stream.send_text(event) != net::BodyWrite::kFull || is_behind) return false;
    stream.body().finish();  // it will not fit later, either: who asks again is told why
    return true;
  });
}

std::string StatusEvents::next_event() {
  const std::string id = std::to_string(++events_);
  return net::event_text({.name = "status", .id = id, .data = to_text(status_json(node_.status()))}).value();
}

void StatusEvents::forget_gone() {
  std::erase_if(streams_, [](net::EventWriter& stream) { return stream.body().is_gone(); });
}

}  // namespace fairlead
