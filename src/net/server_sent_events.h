// Server-sent events (WHATWG HTML, section 9.2): a stream of named texts over one answer, as EventSource in browsers reads it.
//
//   EventStream events = make_event_stream();
//   exchange.respond(std::move(events.answer));
//   events.writer.send({.name = "status", .id = "7", .data = "{}"});
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_server.h"
#include "net/http_stream.h"

namespace fairlead::net {

struct ServerSentEvent {
  std::string_view name = {};  // empty: "message" to its reader
  std::string_view id = {};    // what a reader that comes back says it has seen last, in Last-Event-ID
  std::string_view data = {};  // any lines; CR, LF and CRLF all end one
};

// The text of an event, the empty line at its end included. kInvalidArgument: a line break or a NUL in name or id, which would be
// another field or be ignored.
Result<std::string> event_text(const ServerSentEvent& event);
// Lines that readers skip: what keeps proxies from taking a quiet stream for a dead one.
std::string comment_text(std::string_view text);

// Threads: as BodyWriter.
class EventWriter {
 public:
  explicit EventWriter(BodyWriter body) : body_(std::move(body)) {}

  // kFull: the event was left out. kInvalidArgument as event_text().
  Result<BodyWrite> send(const ServerSentEvent& event);
  BodyWrite comment(std::string_view text = "") { return body_.write(comment_text(text)); }
  // Of a text that several streams get.
  BodyWrite send_text(std::string_view event_text) { return body_.write(event_text); }

  BodyWriter& body() { return body_; }

 private:
  BodyWriter body_;
};

struct EventStream {
  HttpResponse answer;
  EventWriter writer;
};
EventStream make_event_stream(std::size_t limit = kBodyStreamBytes);

}  // namespace fairlead::net
