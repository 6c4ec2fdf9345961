#include "node/traces/otlp_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "model/version.h"

namespace fairlead {
namespace {

enum Kind { kInternal = 1, kServer = 2, kClient = 3 };
constexpr int kStatusError = 2;

// Most texts need no escape, and bytes that are no UTF-8 are no JSON: what a process printed may be anything.
void append_text(std::string& out, std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out.append("\"").append(text).append("\"");
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// "attributes":[...], one after the other.
class Attributes {
 public:
  explicit Attributes(std::string& out) : out_(out) { out_ += "\"attributes\":["; }
  Attributes& text(std::string_view key, std::string_view value) {
    begin(key);
    out_ += "{\"stringValue\":";
    append_text(out_, value);
    out_ += "}}";
    return *this;
  }
  Attributes& number(std::string_view key, std::uint64_t value) {
    return plain(key, fmt::format("{{\"intValue\":\"{}\"}}", value));
  }
  Attributes& seconds(std::string_view key, Duration value) {
    return plain(key, fmt::format("{{\"doubleValue\":{}}}", to_seconds(value)));
  }
  Attributes& yes(std::string_view key, bool value) {
    return plain(key, value ? "{\"boolValue\":true}" : "{\"boolValue\":false}");
  }
  void end() { out_ += ']'; }

 private:
  Attributes& plain(std::string_view key, std::string_view value) {
    begin(key);
    out_.append(value).append("}");
    return *this;
  }
  void begin(std::string_view key) {
    if (out_.back() != '[') out_ += ',';
    out_ += "{\"key\":";
    append_text(out_, key);
    out_ += ",\"value\":";
  }

  std::string& out_;
};

struct Span {
  std::string_view name;
  Kind kind = kInternal;
  std::uint64_t id = 0, parent = 0;
  Duration from{0}, until{0};  // since the request began
};

class RequestSpans {
 public:
  RequestSpans(std::string& out, const TracedRequest& of, Rng& rng) : out_(out), of_(of), rng_(rng) {}

  void write() {
    const RequestTrace& request = of_.request;
    if (!of_.peer.empty()) return write_forward();
    write_root();
    child("queue", Duration(0), of_.chosen, [](Attributes&) {});
    if (of_.has_run()) {
      child("start", of_.chosen, of_.delivered, [&](Attributes& attributes) {
        attributes.text("fairlead.start", start_kind_name(request.start));
        if (request.instance_start > Duration(0)) {
          attributes.seconds("fairlead.instance_start_seconds", request.instance_start);
        }
      });
    }
    if (request.memory > Duration(0)) {
      child("memory", of_.memory_ended - request.memory, of_.memory_ended, [](Attributes&) {});
    }
    if (of_.has_run()) write_run();
  }

 private:
  void write_root() {
    const RequestTrace& request = of_.request;
    begin({.name = request.function,
           .kind = kServer,
           .id = of_.ids.root,
           .parent = of_.ids.caller.span,
           .until = of_.over});
    Attributes attributes(out_);
    attributes.text("faas.invocation_id", request.request_id)
        .text("fairlead.function", request.function)
        .text("fairlead.version", version_name(request.version))
        .text("fairlead.tenant", request.tenant)
        .text("fairlead.outcome", outcome_name(request.outcome));
    if (of_.has_run()) {
      attributes.yes("faas.coldstart", request.start == StartKind::kCold).number("fairlead.gpu", request.gpu.value());
    }
    attributes.end();
    end_with_status();
  }

  void write_run() {
    const RequestTrace& request = of_.request;
    begin({.name = "run", .id = of_.ids.work, .parent = of_.ids.root, .from = of_.delivered, .until = of_.over});
    Attributes(out_)
        .number("fairlead.gpu", request.gpu.value())
        .seconds("fairlead.gpu_seconds", request.gpu_time)
        .end();
    if (request.first_byte) {
      out_ +=
          fmt::format(",\"events\":[{{\"timeUnixNano\":\"{}\",\"name\":\"first byte\"}}]", time(*request.first_byte));
    }
    out_ += '}';
  }

  void write_forward() {
    const RequestTrace& request = of_.request;
    begin({.name = "forward", .kind = kClient, .id = of_.ids.root, .parent = of_.ids.caller.span, .until = of_.over});
    Attributes(out_)
        .text("fairlead.function", request.function)
        .text("fairlead.tenant", request.tenant)
        .text("fairlead.node", of_.peer)
        .end();
    end_with_status();
  }

  template <typename Fill>
  void child(std::string_view name, Duration from, Duration until, Fill fill) {
    begin({.name = name, .id = rng_.next() | 1, .parent = of_.ids.root, .from = from, .until = until});
    Attributes attributes(out_);
    fill(attributes);
    attributes.end();
    out_ += '}';
  }

  std::int64_t time(Duration since) const { return of_.began_ns + since.count(); }

  void begin(const Span& span) {
    if (out_.back() != '[') out_ += ',';
    const TraceContext& trace = of_.ids.caller;
    out_ += "{\"traceId\":\"";
    append_hex(out_, trace.trace_high);
    append_hex(out_, trace.trace_low);
    out_ += "\",\"spanId\":\"";
    append_hex(out_, span.id);
    if (span.parent != 0) {
      out_ += "\",\"parentSpanId\":\"";
      append_hex(out_, span.parent);
    }
    out_ += "\",\"name\":";
    append_text(out_, span.name);
    // No span ends before it begins or lies outside of its request, whatever was measured.
    const Duration from = std::clamp(span.from, Duration(0), of_.over);
    const Duration until = std::clamp(span.until, from, of_.over);
    fmt::format_to(std::back_inserter(out_), ",\"kind\":{},\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",",
                   static_cast<int>(span.kind), time(from), time(until));
  }

  void end_with_status() {
    if (of_.request.outcome != OutcomeKind::kSuccess) {
      const std::string& failure = of_.request.failure;
      out_ += fmt::format(",\"status\":{{\"code\":{},\"message\":", kStatusError);
      append_text(out_, failure.empty() ? outcome_name(of_.request.outcome) : std::string_view(failure));
      out_ += '}';
    }
    out_ += '}';
  }

  std::string& out_;
  const TracedRequest& of_;
  Rng& rng_;
};

}  // namespace

std::string otlp_json(const ResourceAttributes& resource, const std::vector<TracedRequest>& requests, Rng& rng) {
  constexpr std::size_t kRequestBytes = 2048;  // about
  std::string out;
  out.reserve(requests.size() * kRequestBytes + 1024);
  out += "{\"resourceSpans\":[{\"resource\":{";
  Attributes attributes(out);
  for (const auto& [key, value] : resource) attributes.text(key, value);
  attributes.end();
  out += "},\"scopeSpans\":[{\"scope\":{\"name\":\"fairlead\"},\"spans\":[";
  for (const TracedRequest& request : requests) RequestSpans(out, request, rng).write();
  return out += "]}]}]}";
}

}  // namespace fairlead
