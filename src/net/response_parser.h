// Beast's state machine for answers, writing into a ClientResponse: what the blocking client and the one on an event loop share.
//
// Internal to src/net. Threads: not thread-safe.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "net/http_client.h"

namespace fairlead::net {

class ResponseParser : public boost::beast::http::basic_parser<false> {
 public:
  // A body of more than `most_body_bytes` is error::body_limit; `is_head`: the answer to HEAD, which has none.
  ResponseParser(ClientResponse& response, std::size_t most_body_bytes, bool is_head)
      : response_(response), limit_(most_body_bytes) {
    eager(true);
    skip(is_head);
    header_limit(kMostHeadBytes);
    body_limit(boost::none);  // checked below, with the same error
  }

 private:
  using string_view = boost::beast::string_view;
  using error_code = boost::beast::error_code;
  using error = boost::beast::http::error;

  static constexpr std::uint32_t kMostHeadBytes = 256 << 10;

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    response_.status = static_cast<unsigned>(status);
  }
  void on_field_impl(boost::beast::http::field, string_view name, string_view value, error_code&) override {
    response_.headers.push_back({std::string(name), std::string(value)});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& code) override {
    if (length && *length > limit_) code = error::body_limit;  // before its bytes are read
  }
  std::size_t on_body_impl(string_view data, error_code& code) override { return append(data, code); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view data, error_code& code) override {
    return append(data, code);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t append(string_view data, error_code& code) {
    if (data.size() > limit_ - response_.body.size()) {
      code = error::body_limit;
      return 0;
    }
    response_.body.append(data.data(), data.size());
    return data.size();
  }

  ClientResponse& response_;
  const std::size_t limit_;
};

}  // namespace fairlead::net
