#include "edge/console/calls.h"

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

class FakeCalls : public RecentCalls {
 public:
  std::vector<RequestTrace> recent(const RecentQuery& query) const override {
    last = query;
    RequestTrace trace{.request_id = "id-1", .function = "f", .tenant = "a"};
    trace.failure = "<img src=x>\xff";
    trace.gpu = GpuId(1);
    trace.queue = std::chrono::milliseconds(1500);
    return {trace, RequestTrace{.request_id = "id-2", .function = "f"}};
  }
  mutable RecentQuery last;
};

class CallsTest : public EdgeTest {
 protected:
  CallsTest() {
    Edge edge{.name = "console", .prefixes = {"/fairlead/v1/recent"}, .errors = document_errors()};
    Routes routes;
    add_recent_call_routes(routes, calls_);
    for (Route& route : routes.take()) {
      edge.routes.add(route.method, route.pattern, [this, handler = route.handler](RouteCall call) {
        call.principal.tenant = tenant_;
        handler(std::move(call));
      });
    }
    serve(std::move(edge));
  }
  FakeCalls calls_;
  std::optional<std::string> tenant_;
};

TEST_F(CallsTest, TheLastOnesAreListedWithTheirTimes) {
  const FakeExchange answer = call("GET", "/fairlead/v1/recent?function=a%2Fb&limit=7");
  EXPECT_EQ("a/b", calls_.last.function);
  EXPECT_EQ(7u, calls_.last.most);
  EXPECT_EQ("", calls_.last.tenant);
  const nlohmann::json calls = answer.json()["calls"];
  EXPECT_EQ(2u, calls.size());
  EXPECT_EQ(1.5, calls[0]["queue_s"]);
  EXPECT_EQ("<img src=x>\xEF\xBF\xBD", calls[0]["failure"]);
  EXPECT_TRUE(calls[1]["start"].is_null()) << "it ran nowhere";
}

TEST_F(CallsTest, ATenantsKeyAsksForItsOwn) {
  tenant_ = "a";
  call("GET", "/fairlead/v1/recent");
  EXPECT_EQ("a", calls_.last.tenant);
  EXPECT_EQ(200u, calls_.last.most);
}

TEST_F(CallsTest, LimitsHaveBounds) {
  for (const char* limit : {"0", "1001", "-1", "x", "9999999999999999999999"}) {
    expect_error(call("GET", std::string("/fairlead/v1/recent?limit=") + limit), 400, "InvalidParameterValueException",
                 "limit is");
  }
}

}  // namespace
}  // namespace fairlead
