// libFuzzer: any bytes are requests or refused with a status, within the limits, and the same ones however the network cuts
// them up; a target that is read has no NUL and no empty name that was not sent.
#include <cstdint>
#include <cstdlib>
#include <tuple>

#include "base/fuzz_seeds.h"
#include "net/body_sink.h"
#include "net/http_request.h"

namespace fairlead {

std::vector<std::string> fuzz_seeds() {
  const auto cut = [](char pieces, const std::string& text) { return std::string(1, pieces) + text; };
  return {
      cut(7, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
      cut(1,
          "POST /2015-03-31/functions/f/invocations?Qualifier=%24LATEST HTTP/1.1\r\nHost: a\r\nContent-Length: "
          "5\r\n\r\n[1,2]"),
      cut(13,
          "PUT /v1/objects/a%2Fb?wait=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
          "3;name=\"x\"\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.0\r\n\r\n"),
      cut(3, "POST / HTTP/1.1\r\nContent-Length: 999999\r\n\r\n"),
      cut(4, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r"),
      cut(2, "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
  };
}

namespace net {
namespace {

constexpr HttpLimits kLimits{.header_bytes = 1024, .body_bytes = 512};

void require(bool condition) {
  if (!condition) std::abort();
}

// What one request was, or why it was none.
using Read = std::tuple<std::string, std::vector<std::pair<std::string, std::string>>, std::string, bool, bool>;

Read read_of(const ParsedRequest& request) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const ParsedRequest::Field& field : request.fields) {
    fields.emplace_back(request.view(field.name), request.view(field.value));
  }
  return {std::string(request.view(request.method)) + " " + std::string(request.view(request.target)),
          std::move(fields), request.body, request.keep_alive, request.is_http10};
}

void check(const ParsedRequest& request) {
  require(request.fields.size() <= kMostFields && request.body.size() <= kLimits.body_bytes);
  const auto target = parse_target(request.view(request.target));
  if (!target) return require(!target.error().message.empty());
  for (const std::string& segment : target->segments) require(segment.find('\0') == std::string::npos);
}

struct Counting final : BodySink {
  explicit Counting(std::size_t& count) : bytes(count) {}
  void append(std::string_view piece) override { bytes += piece.size(); }
  std::size_t& bytes;
};

// As a connection does: what is not consumed is offered again with what comes next. `piece`: of so many bytes.
std::vector<Read> read_all(std::string_view stream, std::size_t piece) {
  std::vector<Read> all;
  RequestParser parser(kLimits, {.sink_for = [] { return nullptr; }, .may_hold = [](std::size_t) { return true; }});
  ParsedRequest request;
  parser.begin(request);
  std::size_t begin = 0, end = 0;
  while (true) {
    const auto step = parser.feed(stream.substr(begin, end - begin));
    require(step.consumed <= end - begin);
    begin += step.consumed;
    if (step.progress == RequestParser::Progress::kFailed) {
      require(step.status == 400 || step.status == 413 || step.status == 431);
      require(!step.reason.empty());
      return all;
    }
    if (step.progress == RequestParser::Progress::kDone) {
      check(request);
      all.push_back(read_of(request));
      request.clear();
      parser.begin(request);
    } else if (step.consumed == 0) {
      if (end == stream.size()) return all;
      end = std::min(stream.size(), end + piece);
    }
  }
}

// Where the body goes to a sink, or finds no room.
void read_elsewhere(std::string_view stream, bool to_sink) {
  std::size_t sunk = 0;
  RequestParser parser(kLimits, {.sink_for = [&]() -> std::shared_ptr<BodySink> {
                                   return to_sink ? std::make_shared<Counting>(sunk) : nullptr;
                                 },
                                 .may_hold = [](std::size_t) { return false; }});
  ParsedRequest request;
  parser.begin(request);
  for (;;) {
    const auto step = parser.feed(stream);
    stream.remove_prefix(step.consumed);
    if (step.progress == RequestParser::Progress::kFailed) return;
    if (step.progress != RequestParser::Progress::kDone && step.consumed == 0) return;
    if (step.progress != RequestParser::Progress::kDone) continue;
    require(request.body.size() <= request.uncounted && sunk <= kLimits.body_bytes);
    sunk = 0;
    request.clear();
    parser.begin(request);
  }
}

}  // namespace
}  // namespace net
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = fairlead::net::read_all(stream, stream.size());
  const auto pieces = fairlead::net::read_all(stream, 1 + data[0] % 64);
  if (whole != pieces) std::abort();
  fairlead::net::read_elsewhere(stream, data[0] % 2 == 0);
  return 0;
}
