// Who put kernels on devices when, as JSON.
#include "edge/native/frames.h"

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(Frames, EachPacedDeviceSaysWhoHeldItWhen) {
  const auto devices = [] {
    return std::vector<PacedDevice>{{.gpu = GpuId(2),
                                     .frame = 2ms,
                                     .is_realtime = true,
                                     .late = 3,
                                     .instances = {{.instance = InstanceId(7),
                                                    .function = "f:3",
                                                    .width_percent = 10,
                                                    .request_percent = 40,
                                                    .limit_percent = 60,
                                                    .state = "open"}},
                                     .places = {{.instance = InstanceId(7),
                                                 .width_percent = 10,
                                                 .begin = 12ms,
                                                 .until = -1ms,
                                                 .end = 9800us,
                                                 .is_revoked = true}}}};
  };
  Edge edge = frames_edge(devices);
  const auto exchange = std::make_shared<FakeExchange>();
  edge.routes.take().front().handler(
      {.exchange = net::HttpExchange(exchange), .target = net::parse_target("/fairlead/v1/frames").value()});
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(exchange->json(),
            nlohmann::json::parse(R"({"gpus": [{"gpu": 2, "frame_us": 2000, "realtime": true, "late": 3,
      "instances": [{"id": 7, "function": "f:3", "compute_percent": 10, "quota_request": 40, "quota_limit": 60, "state": "open"}],
      "places": [{"id": 7, "compute_percent": 10, "begin_us_ago": 12000, "until_us_ago": -1000, "end_us_ago": 9800,
                  "revoked": true}]}]})"));
}

TEST(Frames, AreNoneWhereNobodyHasAQuota) {
  Edge edge = frames_edge([] { return std::vector<PacedDevice>(); });
  const auto exchange = std::make_shared<FakeExchange>();
  edge.routes.take().front().handler(
      {.exchange = net::HttpExchange(exchange), .target = net::parse_target("/fairlead/v1/frames").value()});
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(exchange->json(), nlohmann::json::parse(R"({"gpus": []})"));
}

}  // namespace
}  // namespace fairlead
