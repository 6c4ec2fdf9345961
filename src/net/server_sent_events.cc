#include "net/server_sent_events.h"

#include <algorithm>

namespace fairlead::net {
namespace {

constexpr std::string_view kLineBreaks("\r\n");
constexpr std::string_view kNotInFields("\r\n\0", 3);

// A line for each of `text`, at least one.
void append_lines(std::string_view field, std::string_view text, std::string& out) {
  while (true) {
    const std::size_t end = std::min(text.find_first_of(kLineBreaks), text.size());
    out.append(field).append(text.substr(0, end)).push_back('\n');
    if (end == text.size()) return;
    text.remove_prefix(end + (text.substr(end, 2) == kLineBreaks ? 2 : 1));
  }
}

Status append_field(std::string_view field, std::string_view value, std::string& out) {
  if (value.empty()) return {};
  if (const std::size_t at = value.find_first_of(kNotInFields); at != std::string_view::npos) {
    return fail(Errc::kInvalidArgument,
                "{} of a server-sent event has a line break or a NUL at {}; it must be one line", field, at);
  }
  out.append(field).append(": ").append(value).push_back('\n');
  return {};
}

}  // namespace

Result<std::string> event_text(const ServerSentEvent& event) {
  std::string text;
  if (Status named = append_field("event", event.name, text); !named) return fail(named.error());
  if (Status numbered = append_field("id", event.id, text); !numbered) return fail(numbered.error());
  append_lines("data: ", event.data, text);
  text.push_back('\n');
  return text;
}

std::string comment_text(std::string_view text) {
  std::string lines;
  append_lines(": ", text, lines);
  lines.push_back('\n');
  return lines;
}

Result<BodyWrite> EventWriter::send(const ServerSentEvent& event) {
  const auto text = event_text(event);
  if (!text) return fail(text.error());
  return body_.write(*text);
}

EventStream make_event_stream(std::size_t limit) {
  auto [writer, body] = make_body_stream(limit);
  // A proxy that collects answers would hold events back.
  HttpResponse answer{.status = 200,
                      .headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}},
                      .stream = std::move(body)};
  return {std::move(answer), EventWriter(std::move(writer))};
}

}  // namespace fairlead::net
