#include "node/traces/span_exporter.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "net/http_server.h"
#include "node/traces/export_policy.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TracedRequest request(const std::string& tenant = "t") {
  TracedRequest traced;
  traced.ids = {.caller = {1, 2, 0, true}, .root = 3, .work = 4};
  traced.request.function = "f";
  traced.request.tenant = tenant;
  traced.over = 1ms;
  return traced;
}

// A collector on a thread of its own, which answers as it is told.
class Collecting {
 public:
  explicit Collecting(std::function<net::HttpResponse(int attempt)> answer) : answer_(std::move(answer)) {
    server_ = std::make_unique<net::HttpServer>(io_, net::HttpLimits{}, [this](net::HttpExchange exchange) {
      const auto body = nlohmann::json::parse(exchange.request().body(), nullptr, false);
      if (body.is_object()) spans += body["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
      exchange.respond(answer_(++attempts));
    });
    address = "http://" + server_->listen("127.0.0.1:0").value();
    thread_ = std::thread([this] {
      const auto work = boost::asio::make_work_guard(io_);
      io_.run();
    });
  }
  ~Collecting() {
    io_.stop();
    thread_.join();
  }

  std::string address;
  std::atomic<int> attempts = 0;
  std::atomic<std::size_t> spans = 0;

 private:
  std::function<net::HttpResponse(int)> answer_;
  boost::asio::io_context io_{1};
  std::unique_ptr<net::HttpServer> server_;
  std::thread thread_;
};

// A socket that takes connections and says nothing: whether it reads is the kernel's, up to its buffers.
class Hanging {
 public:
  Hanging() : socket_(net::open_listener("127.0.0.1:0").value()) { ::listen(socket_.fd, 16); }
  ~Hanging() { ::close(socket_.fd); }
  std::string address() const { return "http://" + socket_.address; }

 private:
  net::ListeningSocket socket_;
};

SpanExporterOptions options_for(const std::string& url) {
  const Collector collector = parse_collector(url).value();
  return {.endpoint = collector.endpoint, .target = collector.target, .resource = {}, .period = 5ms};
}

template <typename Condition>
bool soon(Condition condition) {
  const Instant deadline = monotonic_now() + 2min;
  while (!condition()) {
    if (monotonic_now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(SpanExporter, EverythingArrivesOnce) {
  Collecting collector([](int) { return net::HttpResponse{.status = 200, .body = "{}"}; });
  {
    const auto exporter = SpanExporter::create(options_for(collector.address)).value();
    for (int i = 0; i < 3000; ++i) exporter->push(request("t" + std::to_string(i % 4)));
    ASSERT_TRUE(soon([&] { return exporter->counters().exported == 3000; }));
    exporter->push(request());  // and what is there when the node stops
  }
  EXPECT_EQ(collector.spans, 3001u * 2);
}

TEST(SpanExporter, ABatchThatIsOverLeavesItsPlaces) {
  Collecting collector([](int) { return net::HttpResponse{.status = 200, .body = "{}"}; });
  const auto exporter = SpanExporter::create(options_for(collector.address)).value();
  const std::size_t round = kMostWaitingTraces / 4;
  for (std::size_t rounds = 1; rounds <= 6; ++rounds) {
    for (std::size_t i = 0; i < round; ++i) exporter->push(request());
    ASSERT_TRUE(soon([&] { return exporter->counters().exported == rounds * round; }));
  }
  EXPECT_EQ(exporter->counters().dropped_full, 0u);
}

TEST(SpanExporter, ARetryableAnswerIsTriedAgainAndAnErrorIsNot) {
  Collecting collector([](int attempt) {
    if (attempt == 1) return net::HttpResponse{.status = 503, .headers = {{"Retry-After", "0"}}};
    return net::HttpResponse{.status = attempt == 2 ? 200u : 400u};
  });
  const auto exporter = SpanExporter::create(options_for(collector.address)).value();
  exporter->push(request());
  ASSERT_TRUE(soon([&] { return exporter->counters().exported == 1; }));
  EXPECT_EQ(collector.attempts, 2);
  exporter->push(request());
  ASSERT_TRUE(soon([&] { return exporter->counters().dropped_by_collector == 1; }));
  EXPECT_EQ(collector.attempts, 3);
}

TEST(SpanExporter, ACollectorThatTakesAPartSaysHowMuch) {
  Collecting collector([](int attempt) {
    const char* const answers[] = {R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}})", "not JSON", "[1]",
                                   R"({"partialSuccess":{"rejectedSpans":[]}})"};
    return net::HttpResponse{.status = 200, .body = answers[std::min(attempt, 4) - 1]};
  });
  const auto exporter = SpanExporter::create(options_for(collector.address)).value();
  for (std::uint64_t i = 1; i <= 4; ++i) {
    exporter->push(request());
    ASSERT_TRUE(soon([&] { return exporter->counters().exported == i; }));
  }
  EXPECT_EQ(exporter->counters().rejected_spans, 2u);
}

// A name server that says nothing holds the C library's resolver for as long as it likes.
TEST(SpanExporter, ANameThatIsNeverFoundDoesNotHoldTheEnd) {
  const auto end = std::make_shared<std::promise<void>>();
  SpanExporterOptions options = options_for("http://collector.example:4318");
  options.last_patience = 5ms;
  std::atomic<int> asked = 0;
  options.look_up = [&asked, ended = end->get_future().share(), end](const std::string& host, const std::string&) {
    ++asked;
    ended.wait_for(1min);
    return net::look_up_host(host, "80");
  };
  auto exporter = SpanExporter::create(std::move(options)).value();
  exporter->push(request());
  ASSERT_TRUE(soon([&] { return asked == 1; }));
  const Instant before = monotonic_now();
  exporter.reset();
  EXPECT_LT(monotonic_now() - before, 50s);
  end->set_value();
}

// One that never answers, and nobody at all: places are bounded, what is beyond them is dropped, and the end does not wait.
TEST(SpanExporter, ACollectorThatHangsOrIsAwayCostsPlacesAndNoTime) {
  const Hanging hanging;
  for (const std::string& url :
       {hanging.address(), std::string("http://127.0.0.1:1"), std::string("unix:/nowhere/at/all")}) {
    SpanExporterOptions options = options_for(url);
    options.last_patience = 50ms;
    auto exporter = SpanExporter::create(std::move(options)).value();
    const std::size_t pushed = kMostWaitingTraces * 2;
    for (std::size_t i = 0; i < pushed; ++i) exporter->push(request("t" + std::to_string(i % 8)));
    EXPECT_EQ(exporter->counters().dropped_full, pushed - kMostWaitingTraces) << url;
    EXPECT_EQ(exporter->counters().exported, 0u);
    const Instant before = monotonic_now();
    exporter.reset();
    EXPECT_LT(monotonic_now() - before, 60s) << url;
  }
}

TEST(SpanExporter, ItsUrlMayHaveAPath) {
  EXPECT_EQ(parse_collector("http://c:4318")->target, "/v1/traces");
  EXPECT_EQ(parse_collector("http://c:4318/")->target, "/v1/traces");
  EXPECT_EQ(parse_collector("https://c:443/otlp/v1/traces?key=1")->target, "/otlp/v1/traces?key=1");
  EXPECT_EQ(parse_collector("https://c:443/x")->endpoint.host, "c");
  EXPECT_EQ(parse_collector("unix:/run/c.sock")->target, "/v1/traces");
  for (const char* url :
       {"", "c", "http://", "http://c", "ftp://c:1", "http://c:0", "http://c:1/a b", "http://c:1/a\r\nb"}) {
    EXPECT_FALSE(parse_collector(url)) << url;
  }
}

}  // namespace
}  // namespace fairlead
