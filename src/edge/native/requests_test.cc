// Where a request's time went, as JSON: to whom it is told, and what of others.
#include "edge/native/requests.h"

#include "edge/native/native_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string kPath = "/fairlead/v1/requests/";

class Requests : public EdgeTest {
 protected:
  Requests() {
    RequestTrace& trace = node_.fake_requests.known["r1"];
    trace = {.request_id = "r1", .function = "f", .tenant = "a", .version = 3, .failure = ""};
    trace.gpu = GpuId(2);
    trace.start = StartKind::kCold;
    trace.queue = 1200ms;
    trace.starting = 400ms;
    trace.run = 200ms;
    trace.gpu_time = 150ms;
    trace.first_byte = 1700ms;
    trace.ahead = {{.function = "secret", .tenant = "b", .ran = 1, .chosen = 4, .gpu_time = 2s},
                   {.function = "g", .tenant = "a", .ran = 0, .chosen = 3, .gpu_time = 1s},
                   {.function = "hidden", .tenant = "c", .ran = 0, .chosen = 1, .gpu_time = 1s}};
  }

  FakeExchange ask(const std::string& id, std::optional<std::string> tenant) {
    auto exchange = std::make_shared<FakeExchange>();
    Principal who = unguarded();
    who.tenant = std::move(tenant);
    std::vector<Route> routes = [&] {
      Routes made;
      add_request_routes(made, node_);
      return made.take();
    }();
    RouteCall call{.exchange = net::HttpExchange(exchange), .target = {}, .parameters = {{"id", id}}, .principal = who};
    routes.front().handler(std::move(call));
    return *exchange;
  }
};

TEST_F(Requests, TimesAndWhoWasAhead) {
  const json said = ask("r1", std::nullopt).json();
  EXPECT_EQ(said["function"], "f");
  EXPECT_EQ(said["version"], "3");
  EXPECT_EQ(said["start"], "cold");
  EXPECT_EQ(said["times"]["total_seconds"], 1.8);
  EXPECT_EQ(said["times"]["queue_seconds"], 1.2);
  EXPECT_EQ(said["times"]["first_byte_seconds"], 1.7);
  ASSERT_EQ(said["ahead"].size(), 3u) << "the operator sees all of them";
  EXPECT_EQ(said["ahead"][0],
            (json{{"function", "secret"}, {"tenant", "b"}, {"ran", 1}, {"chosen", 4}, {"gpu_seconds", 2.0}}));
  EXPECT_EQ(said["ahead_is_whole"], true);
}

TEST_F(Requests, ATenantIsToldNothingOfOthersButHowMany) {
  const FakeExchange exchange = ask("r1", "a");
  const json ahead = exchange.json()["ahead"];
  ASSERT_EQ(ahead.size(), 2u);
  EXPECT_EQ(ahead[0]["function"], "g");
  EXPECT_EQ(ahead[1], (json{{"ran", 1}, {"chosen", 5}, {"gpu_seconds", 3.0}}));
  for (const char* name : {"secret", "hidden", "\"b\"", "\"c\""}) {
    EXPECT_EQ(exchange.response->body.find(name), std::string::npos) << name;
  }
}

TEST_F(Requests, AnothersRequestIsNotThereForATenant) {
  const FakeExchange others = ask("r1", "b"), nobodys = ask("r9", "b");
  EXPECT_EQ(others.response->status, 404u);
  EXPECT_EQ(others.response->body, nobodys.response->body) << "the same words";
}

TEST_F(Requests, OneThatNeverRanHasNoStart) {
  node_.fake_requests.known["r1"].gpu = GpuId();
  EXPECT_FALSE(ask("r1", "a").json().contains("start"));
}

}  // namespace
}  // namespace fairlead
