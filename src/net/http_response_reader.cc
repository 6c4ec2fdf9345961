#include "net/http_response_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "net/last_chunk.h"

namespace fairlead::net {

namespace http = boost::beast::http;
using boost::beast::error_code;

// Beast's state machine, writing into a ClientResponse.
class ResponseReader::Parser : public http::basic_parser<false> {
 public:
  // A body of more than `most_body_bytes` is error::body_limit; `is_head`: the answer to HEAD, which has none.
  Parser(ClientResponse& response, std::size_t most_body_bytes, bool is_head)
      : response_(response), limit_(most_body_bytes) {
    eager(true);
    skip(is_head);
    header_limit(kMostHeadBytes);
    body_limit(boost::none);  // checked below, with the same error
  }

 private:
  using string_view = boost::beast::string_view;

  static constexpr std::uint32_t kMostHeadBytes = 256 << 10;

  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    response_.status = static_cast<unsigned>(status);
  }
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    response_.headers.push_back({std::string(name), std::string(value)});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& code) override {
    if (length && *length > limit_) code = http::error::body_limit;  // before its bytes are read
  }
  std::size_t on_body_impl(string_view data, error_code& code) override { return append(data, code); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view data, error_code& code) override {
    return append(data, code);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t append(string_view data, error_code& code) {
    if (data.size() > limit_ - response_.body.size()) {
      code = http::error::body_limit;
      return 0;
    }
    response_.body.append(data.data(), data.size());
    return data.size();
  }

  ClientResponse& response_;
  const std::size_t limit_;
};

ResponseReader::ResponseReader(std::size_t most_body_bytes) : most_body_bytes_(most_body_bytes) {}
ResponseReader::~ResponseReader() = default;

void ResponseReader::begin(ClientResponse& response, bool is_head) {
  is_head_ = is_head;
  response = {};
  response_ = &response;
  parser_ = std::make_unique<Parser>(response, most_body_bytes_, is_head_);
}

ResponseReader::Step ResponseReader::feed(std::string_view data) {
  Step step;
  while (step.consumed < data.size()) {
    const std::string_view rest = data.substr(step.consumed);
    if (waits_for_last_chunk(*parser_, rest.size())) return step;
    error_code error;
    const std::size_t used = parser_->put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    step.consumed += used;
    if (error && error != http::error::need_more) {
      step.progress = Progress::kFailed;
      step.error = error == http::error::body_limit
                       ? Error{Errc::kTooLarge, fmt::format("the answer is larger than {} bytes", most_body_bytes_)}
                       : Error{Errc::kCorrupt, fmt::format("the answer is not HTTP: {}", error.message())};
      return step;
    }
    if (parser_->is_done() && response_->status / 100 == 1) {
      begin(*response_, is_head_);
      continue;
    }
    if (parser_->is_done()) {
      step.progress = Progress::kDone;
      return step;
    }
    if (error == http::error::need_more || used == 0) return step;
  }
  return step;
}

bool ResponseReader::ends_here() {
  error_code error;
  if (parser_->got_some()) parser_->put_eof(error);
  return !error && parser_->is_done();
}

bool ResponseReader::keeps_alive() const {
  return parser_->keep_alive();
}

}  // namespace fairlead::net
