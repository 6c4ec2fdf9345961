// The only source of the server that includes Beast: it costs 9 s to compile.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>
#include <utility>

#include "net/body_sink.h"
#include "net/http_request.h"
#include "net/last_chunk.h"

namespace fairlead::net {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

namespace {

// Bodies that declare their length get one allocation up to here, so that a header alone cannot make the server allocate. One that
// is larger gets all of its length once so much has really arrived: pages that nothing was written to cost nothing, while growing
// by halves would copy tens of megabytes at once on the thread that serves everybody.
constexpr std::size_t kMaxReserve = 1 << 20;

// Beast's state machine, writing into a ParsedRequest.
class BeastParser : public http::basic_parser<true> {
 public:
  BeastParser(ParsedRequest& request, const HttpLimits& limits, const RequestParser::BodyPorts& ports)
      : request_(request), limits_(limits), ports_(ports) {
    eager(true);
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(boost::none);  // checked below, with the same error
  }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code&) override {
    request_.method = request_.append({method.data(), method.size()});
    request_.target = request_.append({target.data(), target.size()});
    request_.is_http10 = version < 11;
  }

  void on_response_impl(int, string_view, int, error_code&) override {}

  void on_field_impl(http::field id, string_view name, string_view value, error_code& error) override {
    if (request_.fields.size() >= kMostFields) {
      error = http::error::header_limit;
      return;
    }
    ParsedRequest::Field field;
    field.name = request_.append({name.data(), name.size()});
    field.value = request_.append({value.data(), value.size()});
    request_.fields.push_back(field);
    if (id == http::field::expect && equals_ignoring_case({value.data(), value.size()}, "100-continue")) {
      request_.expects_continue = true;
    }
    // Beast takes a body in any other coding for no body, and its bytes for the next request.
    if (id == http::field::transfer_encoding && !equals_ignoring_case({value.data(), value.size()}, "chunked")) {
      error = http::error::bad_transfer_encoding;
    }
  }

  void on_header_impl(error_code& error) override {
    request_.keep_alive = keep_alive();
    const auto length = content_length();
    if (chunked()) request_.sink = ports_.sink_for();
    if (!length) return;
    if (*length > limits_.body_bytes) {
      error = http::error::body_limit;
      return;
    }
    declared_ = *length;
    if (declared_ > 0) request_.sink = ports_.sink_for();
    if (!request_.sink) request_.body.reserve(std::min<std::size_t>(declared_, kMaxReserve));
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}

  std::size_t on_body_impl(string_view data, error_code& error) override { return append_body(data, error); }

  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}

  std::size_t on_chunk_body_impl(std::uint64_t, string_view data, error_code& error) override {
    return append_body(data, error);
  }

  void on_finish_impl(error_code&) override {}

  std::size_t append_body(string_view data, error_code& error) {
    if (data.size() > most_bytes() - received_) {
      error = http::error::body_limit;
      return 0;
    }
    received_ += data.size();
    if (request_.sink) {
      request_.sink->append({data.data(), data.size()});
      if (request_.sink->is_over()) error = http::error::end_of_stream;
      return data.size();
    }
    if (request_.is_thrown_away || !may_hold(request_.body.size() + data.size())) return data.size();
    if (request_.body.size() + data.size() > request_.body.capacity()) request_.body.reserve(declared_);
    request_.body.append(data.data(), data.size());
    return data.size();
  }

  std::size_t most_bytes() const {
    const std::size_t sinks = request_.sink ? request_.sink->most_bytes() : 0;
    return sinks > 0 ? sinks : limits_.body_bytes;
  }

  // Asks for twice as much each time, so seldom, and for no more than is to come: bytes that were announced and do not arrive are
  // not counted.
  bool may_hold(std::size_t bytes) {
    if (bytes <= held_) return true;
    std::size_t wanted = std::max(bytes, 2 * held_);
    wanted = std::max(bytes, std::min(wanted, declared_ > 0 ? declared_ : limits_.body_bytes));
    if (ports_.may_hold(wanted)) {
      held_ = wanted;
      return true;
    }
    request_.is_thrown_away = true;
    request_.body = {};
    return false;
  }

  ParsedRequest& request_;
  const HttpLimits& limits_;
  const RequestParser::BodyPorts& ports_;
  std::size_t declared_ = 0;  // of the body; 0: not, its chunks say so
  std::size_t received_ = 0;  // of the body
  std::size_t held_ = request_.uncounted;
};

unsigned status_of(error_code error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit) return 431;
  if (error == http::error::end_of_stream) return 410;
  return 400;
}

std::string reason_of(unsigned status, error_code error, const HttpLimits& limits) {
  if (status == 413) return fmt::format("the request body is larger than {} bytes", limits.body_bytes);
  if (status == 410) return "nobody takes the rest of the request body";
  if (status == 431) {
    return fmt::format("the request head is larger than {} bytes, or has more than {} fields", limits.header_bytes,
                       kMostFields);
  }
  return fmt::format("the request is not valid HTTP/1.1: {}", error.message());
}

}  // namespace

class RequestParser::Impl {
 public:
  Impl(const HttpLimits& limits, BodyPorts ports) : limits_(limits), ports_(std::move(ports)) {}

  void begin(ParsedRequest& request) { parser_.emplace(request, limits_, ports_); }

  Step feed(std::string_view data) {
    Step step;
    error_code error;
    if (!waits_for_last_chunk(*parser_, data.size())) {
      step.consumed = parser_->put(boost::asio::const_buffer(data.data(), data.size()), error);
    }
    if (error && error != http::error::need_more) {
      step.progress = Progress::kFailed;
      step.status = status_of(error);
      step.reason = reason_of(step.status, error, limits_);
    } else if (parser_->is_done()) {
      step.progress = Progress::kDone;
    } else if (parser_->is_header_done()) {
      step.progress = Progress::kHeadDone;
    }
    return step;
  }

 private:
  HttpLimits limits_;
  BodyPorts ports_;
  std::optional<BeastParser> parser_;
};

RequestParser::RequestParser(const HttpLimits& limits, BodyPorts ports)
    : impl_(std::make_unique<Impl>(limits, std::move(ports))) {}
RequestParser::~RequestParser() = default;
void RequestParser::begin(ParsedRequest& request) {
  impl_->begin(request);
}
RequestParser::Step RequestParser::feed(std::string_view data) {
  return impl_->feed(data);
}

}  // namespace fairlead::net
