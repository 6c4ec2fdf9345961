// An HTTP server with canned answers on a thread of its own: the node of the command line's tests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "net/http_server.h"

namespace fairlead::cli {

class FakeNode {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string body;
    std::map<std::string, std::string> headers;  // those that the tests ask about
  };

  FakeNode() : server_(io_, {}, [this](net::HttpExchange exchange) { handle(std::move(exchange)); }) {
    Result<std::string> bound = server_.listen("127.0.0.1:0");
    FL_CHECK(bound.has_value(), "{}", bound.error().message);
    address_ = *bound;
    thread_ = std::thread([this] { io_.run(); });
  }
  FakeNode(const FakeNode&) = delete;
  ~FakeNode() {
    boost::asio::post(io_, [this] {
      server_.close();
      io_.stop();
    });
    thread_.join();
  }

  // Everything else is answered 404. Answers to one request are used in turn, the last one for ever.
  void answer(const std::string& method, const std::string& target, net::HttpResponse response) {
    const MutexLock lock(mutex_);
    answers_[method + " " + target].push_back(std::move(response));
  }

  std::string endpoint() const { return "http://" + address_; }
  std::vector<Request> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void handle(net::HttpExchange exchange) {
    net::HttpRequest& request = exchange.request();
    Request seen{std::string(request.method()), std::string(request.target()), std::string(request.body()), {}};
    for (const char* name :
         {"X-Amz-Invocation-Type", "X-Amz-Log-Type", "X-Amz-Client-Context", "Content-Type", "Authorization"}) {
      seen.headers[name] = std::string(request.header(name));
    }
    net::HttpResponse response{404, {}, R"({"Type":"User","Message":"Function not found: nobody"})"};
    {
      const MutexLock lock(mutex_);
      std::vector<net::HttpResponse>& canned = answers_[seen.method + " " + seen.target];
      if (!canned.empty()) response = canned.front();
      if (canned.size() > 1) canned.erase(canned.begin());
      requests_.push_back(std::move(seen));
    }
    exchange.respond(std::move(response));
  }

  boost::asio::io_context io_;
  net::HttpServer server_;
  std::string address_;
  std::thread thread_;
  mutable Mutex mutex_;
  std::map<std::string, std::vector<net::HttpResponse>> answers_ FL_GUARDED_BY(mutex_);
  std::vector<Request> requests_ FL_GUARDED_BY(mutex_);
};

}  // namespace fairlead::cli
