// How instances are held, as JSON: who is not held says so, and only who ends by itself says when.
#include "edge/native/warmth.h"

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(Warmth, EachInstanceSaysHowItIsHeldAndWhoEndsSaysWhen) {
  const Instant now(100s);
  const auto views = [] {
    return std::vector<HoldView>{{.instance = InstanceId(7), .held = PinKind::kHost, .kept_until = Instant(160s)},
                                 {.instance = InstanceId(8), .over_bound = true},
                                 {.instance = InstanceId(9), .kept_until = Instant(90s)}};
  };
  Edge edge = warmth_edge(views, [now] { return now; });
  const auto exchange = std::make_shared<FakeExchange>();
  edge.routes.take().front().handler(
      {.exchange = net::HttpExchange(exchange), .target = net::parse_target("/fairlead/v1/warmth").value()});
  ASSERT_TRUE(exchange->response);
  const auto instances = exchange->json()["instances"];
  ASSERT_EQ(instances.size(), 3u);
  EXPECT_EQ(instances[0],
            (nlohmann::json{{"id", 7}, {"pinned", "host"}, {"over_pin_bound", false}, {"kept_seconds", 60.0}}));
  EXPECT_EQ(instances[1], (nlohmann::json{{"id", 8}, {"pinned", "none"}, {"over_pin_bound", true}}));
  EXPECT_EQ(instances[2]["kept_seconds"], 0.0) << "it ends at any moment, and not before";
}

}  // namespace
}  // namespace fairlead
