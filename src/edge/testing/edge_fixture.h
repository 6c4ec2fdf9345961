// For tests: requests put straight into an edge over a FakeNode, without a socket.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "edge/error_document.h"
#include "edge/router.h"
#include "edge/testing/fake_node.h"

namespace fairlead {

// One request, and the answer once there is one.
class FakeExchange : public net::HttpExchange::Impl, public net::HttpRequest {
 public:
  std::string method_text, target_text, body_text;
  std::map<std::string, std::string> headers;
  bool is_local = true;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> caller = 0;  // over TCP too
  std::shared_ptr<net::BodySink> sink;
  std::optional<net::HttpResponse> response;
  std::function<void()> disconnected;
  bool abandoned = false;

  std::string_view method() const override { return method_text; }
  std::string_view target() const override { return target_text; }
  std::string_view header(std::string_view name) const override {
    const auto it = headers.find(std::string(name));
    return it == headers.end() ? std::string_view() : std::string_view(it->second);
  }
  std::vector<net::Header> all_headers() const override {
    std::vector<net::Header> all;
    for (const auto& [name, value] : headers) all.push_back({name, value});
    return all;
  }
  std::string_view body() const override { return body_text; }
  std::string take_body() override { return std::move(body_text); }
  std::shared_ptr<net::BodySink> take_sink() override { return std::exchange(sink, nullptr); }
  bool peer_is_local() const override { return is_local; }
  std::string peer_address() const override { return is_local ? "127.0.0.1" : "192.0.2.7"; }
  std::optional<std::uint32_t> peer_uid() const override { return uid; }
  std::optional<std::uint32_t> caller_uid() const override { return caller; }

  net::HttpRequest& request() override { return *this; }
  void respond(net::HttpResponse answer) override { response = std::move(answer); }
  void on_disconnect(std::function<void()> callback) override { disconnected = std::move(callback); }
  void abandon() override { abandoned = true; }

  std::string response_header(std::string_view name) const {
    for (const net::Header& header : response->headers) {
      if (header.name == name) return header.value;
    }
    return "";
  }
  nlohmann::json json() const { return nlohmann::json::parse(response->body); }
};

class EdgeTest : public ::testing::Test {
 protected:
  using Headers = std::map<std::string, std::string>;

  // The edge that the test is about.
  void serve(Edge edge) {
    const Status added = router_.add(std::move(edge));
    ASSERT_TRUE(added) << added.error().message;
  }

  std::shared_ptr<FakeExchange> begin(std::string method, std::string target, std::string body = "",
                                      Headers headers = {}, bool is_local = true) {
    auto exchange = std::make_shared<FakeExchange>();
    exchange->method_text = std::move(method);
    exchange->target_text = std::move(target);
    exchange->body_text = std::move(body);
    exchange->headers = std::move(headers);
    exchange->is_local = is_local;
    router_.dispatch(net::HttpExchange(exchange));
    return exchange;
  }

  // The same for requests that are answered at once.
  FakeExchange call(std::string method, std::string target, std::string body = "", Headers headers = {},
                    bool is_local = true) {
    const auto exchange = begin(std::move(method), std::move(target), std::move(body), std::move(headers), is_local);
    EXPECT_TRUE(exchange->response) << exchange->method_text << " " << exchange->target_text;
    if (!exchange->response) exchange->response.emplace();
    return *exchange;
  }

  FakeNode node_;
  Router router_{document_errors()};
};

inline void expect_error(const FakeExchange& exchange, unsigned status, const std::string& type,
                         const std::string& message) {
  EXPECT_EQ(status, exchange.response->status) << exchange.response->body;
  EXPECT_EQ(type, exchange.response_header("x-amzn-ErrorType"));
  EXPECT_THAT(exchange.json().value("Message", ""), ::testing::HasSubstr(message));
}

}  // namespace fairlead
