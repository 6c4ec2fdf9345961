// What tenants used, as JSON and CSV: to whom it is told, and which hours.
#include "edge/native/usage.h"

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

class FakeUsage final : public UsageService {
 public:
  void usage(UsageQuery query, std::function<void(Result<std::vector<UsageRow>>)> done) override {
    asked = query;
    done(rows);
  }
  std::optional<UsageQuery> asked;
  std::vector<UsageRow> rows;
};

class Usage : public EdgeTest {
 protected:
  Usage() {
    usage_.rows = {{.key = {.tenant = "a,\"b\"", .hour = 494414, .function = "f"},
                    .counts = {.calls = 3, .errors = 1, .gpu_time = 1500ms, .memory_kib_ms = 1'000'000'000}}};
  }

  FakeExchange ask(const std::string& query, std::optional<std::string> tenant = std::nullopt) {
    auto exchange = std::make_shared<FakeExchange>();
    const std::string target = "/fairlead/v1/usage" + query;
    RouteCall call{
        .exchange = net::HttpExchange(exchange), .target = net::parse_target(target).value(), .parameters = {}};
    call.principal.tenant = std::move(tenant);
    Edge edge = usage_edge(usage_);
    edge.routes.take().front().handler(std::move(call));
    EXPECT_TRUE(exchange->response);
    return *exchange;
  }

  FakeUsage usage_;
};

TEST_F(Usage, ARowIsAnHourOfAFunction) {
  const auto row = ask("").json()["usage"][0];
  EXPECT_EQ(row["hour"], "2026-05-27T14:00:00Z");
  EXPECT_EQ(row["tenant"], "a,\"b\"");
  EXPECT_EQ(row["calls"], 3);
  EXPECT_EQ(row["gpu_seconds"], 1.5);
  EXPECT_EQ(row["gb_seconds"], 1.024);
  const FakeExchange csv = ask("?format=csv");
  EXPECT_EQ(csv.response_header("Content-Type"), "text/csv; charset=utf-8");
  EXPECT_EQ(csv.response->body,
            "hour,tenant,function,calls,errors,gpu_seconds,gb_seconds\r\n"
            "2026-05-27T14:00:00Z,\"a,\"\"b\"\"\",f,3,1,1.500000000,1.024000\r\n");
}

TEST_F(Usage, ATenantSeesItselfAlone) {
  ask("", "a");
  EXPECT_EQ(usage_.asked->tenant, "a");
  ask("?tenant=a", "a");
  EXPECT_EQ(usage_.asked->tenant, "a");
  usage_.asked.reset();
  EXPECT_EQ(ask("?tenant=b", "a").response->status, 403u);
  EXPECT_EQ(ask("?tenant=", "a").response->status, 403u);
  EXPECT_FALSE(usage_.asked);
  ask("");
  EXPECT_EQ(usage_.asked->tenant, std::nullopt) << "the operator all";
  ask("?tenant=b");
  EXPECT_EQ(usage_.asked->tenant, "b");
}

TEST_F(Usage, HoursAreReadOrRefused) {
  ask("?from=2026-05-27&to=2026-05-27T14:59:59Z");
  EXPECT_EQ(usage_.asked->from_hour, 494400);
  EXPECT_EQ(usage_.asked->until_hour, 494414);
  for (const char* hour :
       {"", "yesterday", "2026-5-27", "2026-02-30", "2026-13-01", "2026-01-01T24", "2026-01-01T1", "2026-01-01 12:00",
        "0000-01-01", "2026-01-01T12:00:00+01:00", "-026-01-01", "2026-01-01T12xyz"}) {
    EXPECT_EQ(ask(std::string("?from=") + hour).response->status, 400u) << hour;
  }
  for (const char* query : {"?limit=0", "?limit=10001", "?limit=x", "?after=x", "?after=YQ==", "?format=xml"}) {
    EXPECT_EQ(ask(query).response->status, 400u) << query;
  }
}

TEST_F(Usage, AFullPageSaysWhereTheNextBegins) {
  EXPECT_FALSE(ask("").json().contains("next"));
  const std::string next = ask("?limit=1").json()["next"];
  EXPECT_EQ(ask("?limit=1&format=csv").response_header("X-Fairlead-Next"), next);
  ask("?after=" + next);
  EXPECT_EQ(usage_.asked->after, usage_.rows[0].key);
}

}  // namespace
}  // namespace fairlead
