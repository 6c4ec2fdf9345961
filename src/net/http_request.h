// A request as it was received: one text arena instead of a string per header, so that a connection that reuses the
// object allocates nothing per request but the body.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"

namespace fairlead::net {

struct ParsedRequest {
  struct Span {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  struct Field {
    Span name;
    Span value;
  };

  std::string text;  // method, target, names and values, back to back
  Span method;
  Span target;
  std::vector<Field> fields;
  std::string body;
  std::shared_ptr<BodySink> sink;  // the body's, in place of `body`; shared with the handler
  bool is_thrown_away = false;     // the body: there was no room for it
  std::size_t uncounted = 0;       // of the body: asked for by nobody (RequestMemory)
  bool keep_alive = true;
  bool is_http10 = false;
  bool expects_continue = false;

  std::string_view view(Span span) const { return std::string_view(text).substr(span.offset, span.size); }
  std::string_view header(std::string_view name) const;  // case-insensitive; the first of that name; empty when absent
  Span append(std::string_view part);
  void forget();  // what was sent, of a request that is answered; frees large buffers
  void clear();   // for the next request; keeps small buffers
};

inline constexpr std::size_t kMostFields = 256;  // of a request's head

bool equals_ignoring_case(std::string_view a, std::string_view b);  // ASCII

// Parses one request after the other from a byte stream. Hides Beast from every other source.
class RequestParser {
 public:
  enum class Progress { kNeedMore, kHeadDone, kDone, kFailed };
  struct Step {
    std::size_t consumed = 0;
    Progress progress = Progress::kNeedMore;  // kHeadDone: the head is complete, the body is not
    unsigned status = 0;                      // kFailed: 400, 413 or 431
    std::string reason;                       // kFailed: what is wrong, for the answer's body
  };

  // What is asked about the body of the request that arrives.
  struct BodyPorts {
    std::function<std::shared_ptr<BodySink>()> sink_for;  // between the head and its first byte
    std::function<bool(std::size_t bytes)> may_hold;      // before more than kFree of it are collected
  };
  RequestParser(const HttpLimits& limits, BodyPorts ports);
  ~RequestParser();

  void begin(ParsedRequest& request);  // the next request; `request` must outlive its parsing
  Step feed(std::string_view data);    // REQUIRES: begin(), and not kDone or kFailed since

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::net
