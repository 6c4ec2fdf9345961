#include "net/http_response_reader.h"

#include <boost/asio/buffer.hpp>

#include "net/last_chunk.h"
#include "net/response_parser.h"

namespace fairlead::net {

namespace http = boost::beast::http;
using boost::beast::error_code;

ResponseReader::ResponseReader(std::size_t most_body_bytes) : most_body_bytes_(most_body_bytes) {}
ResponseReader::~ResponseReader() = default;

void ResponseReader::begin(ClientResponse& response) {
  response = {};
  response_ = &response;
  parser_ = std::make_unique<ResponseParser>(response, most_body_bytes_, false);
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
      begin(*response_);
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

bool ResponseReader::keeps_alive() const {
  return parser_->keep_alive();
}

}  // namespace fairlead::net
