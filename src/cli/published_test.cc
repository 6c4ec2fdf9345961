// Versions and aliases on the command line, against canned answers; answers that are printed as they come.
#include "cli/published.h"

#include <gmock/gmock.h>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kF = "/2015-03-31/functions/f";

struct Published : testing::Test {
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--endpoint", node.endpoint()});
    return run_cli(std::move(args));
  }
  Json body(std::size_t request) { return Json::parse(node.requests().at(request).body); }
  FakeNode node;
};

TEST_F(Published, PublishSaysTheNumber) {
  node.answer("POST", kF + "/versions", {201, {}, R"({"Version": "3"})"});
  EXPECT_EQ(run({"version", "publish", "f", "--description", "tested"}).out, "f has version 3\n");
  EXPECT_EQ(body(0), (Json{{"Description", "tested"}}));
  EXPECT_EQ(run({"version"}).status, kOk) << "alone it is the program's";
  EXPECT_EQ(run({"version", "delete", "f", "live"}).status, kUsage);
}

TEST_F(Published, VersionsAreListedWithTheirAliasesOverAllPages) {
  node.answer("GET", kF + "/versions?MaxItems=50",
              {200, {}, R"({"Versions": [{"Version": "$LATEST"}], "NextMarker": "1"})"});
  node.answer("GET", kF + "/versions?MaxItems=50&Marker=1",
              {200, {}, R"({"Versions": [{"Version": "2", "MemorySize": 512, "Timeout": 60}]})"});
  node.answer(
      "GET", kF + "/aliases?MaxItems=50",
      {200,
       {},
       R"({"Aliases": [{"Name": "live", "FunctionVersion": "1", "RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}}]})"});
  EXPECT_THAT(run({"version", "list", "f"}).out, AllOf(HasSubstr("$LATEST"), HasSubstr("512 MiB"), HasSubstr("live")));
  EXPECT_THAT(run({"alias", "list", "f"}).out, HasSubstr("2: 10%"));
}

TEST_F(Published, AnAliasIsSetAndMadeWhereThereIsNone) {
  node.answer(
      "POST", kF + "/aliases",
      {201,
       {},
       R"({"Name": "live", "FunctionVersion": "3", "RoutingConfig": {"AdditionalVersionWeights": {"4": 0.1}}})"});
  EXPECT_EQ(run({"alias", "set", "f", "live", "3", "--weight", "4=10"}).out,
            "live leads to version 3, and in part to 4: 10%\n");
  EXPECT_EQ(node.requests()[0].method, "PUT");
  EXPECT_EQ(body(1), (Json{{"Name", "live"},
                           {"FunctionVersion", "3"},
                           {"RoutingConfig", {{"AdditionalVersionWeights", {{"4", 0.1}}}}}}));
  for (const char* weight : {"4", "4=", "4=0", "4=101", "4=-1", "4=1x", "=", "4=nan"}) {
    const Outcome outcome = run({"alias", "set", "f", "live", "3", "--weight", weight});
    EXPECT_EQ(outcome.status, kUsage) << weight;
    EXPECT_THAT(outcome.err, HasSubstr("VERSION=PERCENT")) << weight;
  }
}

TEST_F(Published, ARollbackGoesToTheVersionBeforeAndGuardsTheRevision) {
  node.answer("GET", kF + "/aliases/live",
              {200, {}, R"({"Name": "live", "FunctionVersion": "4", "RevisionId": "r7"})"});
  node.answer(
      "GET", kF + "/versions?MaxItems=50",
      {200,
       {},
       R"({"Versions": [{"Version": "$LATEST"}, {"Version": "1"}, {"Version": "3"}, {"Version": "4"}, {"Version": "5"}]})"});
  node.answer("PUT", kF + "/aliases/live", {200, {}, R"({"Name": "live", "FunctionVersion": "3"})"});
  EXPECT_EQ(run({"alias", "rollback", "f", "live"}).out, "live leads to version 3 (it led to 4)\n");
  EXPECT_EQ(body(2), (Json{{"FunctionVersion", "3"},
                           {"RevisionId", "r7"},
                           {"RoutingConfig", {{"AdditionalVersionWeights", Json::object()}}}}));
}

TEST_F(Published, ThereIsNothingBeforeTheFirst) {
  node.answer("GET", kF + "/aliases/live",
              {200, {}, R"({"Name": "live", "FunctionVersion": "1", "RevisionId": "r7"})"});
  node.answer("GET", kF + "/versions?MaxItems=50",
              {200, {}, R"({"Versions": [{"Version": "$LATEST"}, {"Version": "1"}, {"Version": "2"}]})"});
  const Outcome outcome = run({"alias", "rollback", "f", "live"});
  EXPECT_EQ(outcome.status, kNotFound);
  EXPECT_THAT(outcome.err, HasSubstr("none before it"));
}

TEST_F(Published, AQualifierGoesWithACall) {
  node.answer("POST", kF + "/invocations?Qualifier=live", {200, {{"X-Amz-Executed-Version", "3"}}, "1"});
  EXPECT_THAT(run({"--json", "invoke", "f", "--qualifier", "live"}).out, HasSubstr(R"("version": "3")"));
}

// ---- invoke --stream

const std::string kStream = "/fairlead/v1/functions/f/stream";

TEST_F(Published, AStreamIsPrintedAsItIs) {
  const std::string binary("a\0\xff", 3);
  node.answer(
      "POST", kStream,
      {200,
       {{"X-Gpu-First-Byte-Ms", "7.5"}, {"x-amzn-RequestId", "r"}, {"X-Gpu-Start", "cold"}, {"X-Gpu-Queue-Ms", "5"}},
       binary});
  const Outcome outcome = run({"invoke", "f", "--stream", "--log"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_EQ(outcome.out, binary);
  EXPECT_EQ(outcome.err, "cold start, queued 5 ms, first byte after 7.5 ms, request r\n");
}

TEST_F(Published, ThePartsOfAStreamAreLinesOfJson) {
  node.answer("POST", kStream, {200, {{"X-Gpu-First-Byte-Ms", "7.5"}, {"x-amzn-RequestId", "r"}}, "one\n"});
  const Outcome outcome = run({"--json", "invoke", "f", "--stream"});
  EXPECT_EQ(outcome.out,
            "{\"part\": \"one\\n\"}\n{\"first_byte_ms\":7.5,\"function_error\":\"\",\"request_id\":\"r\"}\n");
}

TEST_F(Published, AStreamThatIsRefusedSaysWhy) {
  node.answer("POST", kStream,
              {429, {{"x-amzn-ErrorType", "TooManyRequestsException"}}, R"({"Message": "a queue is full"})"});
  const Outcome outcome = run({"invoke", "f", "--stream"});
  EXPECT_EQ(outcome.status, kThrottled);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("a queue is full"));
  EXPECT_EQ(run({"invoke", "f", "--stream", "--async"}).status, kUsage);
}

TEST_F(Published, AFunctionThatFailsBeforeItsFirstByteIsAnError) {
  node.answer("POST", kStream, {200, {{"X-Amz-Function-Error", "Unhandled"}}, R"({"errorType": "E"})"});
  const Outcome outcome = run({"invoke", "f", "--stream"});
  EXPECT_EQ(outcome.status, kFunctionError);
  EXPECT_EQ(outcome.out, R"({"errorType": "E"})");
}

// ---- why

TEST_F(Published, WhyShowsTimesAndWhoWasAhead) {
  node.answer(
      "GET", "/fairlead/v1/requests/r1",
      {200,
       {},
       R"({"request_id": "r1", "function": "f", "version": "3", "outcome": "success", "failure": "", "gpu": 1, "start": "cold",
                "accepted_ms": 1700000000000, "ahead_is_whole": false,
                "times": {"total_seconds": 2.0, "queue_seconds": 1.5, "start_seconds": 0.3, "run_seconds": 0.2, "gpu_seconds": 0.1},
                "ahead": [{"function": "g", "tenant": "a", "ran": 1, "chosen": 14, "gpu_seconds": 1.1}, {"ran": 0, "chosen": 3}]})"});
  const std::string out = run({"why", "r1"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("f version 3  success  cold start on GPU 1"), HasSubstr("75%"),
                         HasSubstr("on the GPU: 100 ms"), HasSubstr("(other tenants)"), HasSubstr("14"),
                         HasSubstr("forgotten")));
  EXPECT_EQ(run({"why", "r2"}).status, kNotFound);
}

}  // namespace
}  // namespace fairlead::cli
