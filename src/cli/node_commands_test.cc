// The commands that talk to a node, against canned answers.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "cli/fake_node.h"
#include "cli/log_follower.h"
#include "cli/test_cli.h"
#include "cli/zip_folder.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kInvoke = "/2015-03-31/functions/f/invocations";

struct NodeCommands : testing::Test {
  Outcome run(std::vector<std::string> args, const std::string& input = "") {
    args.insert(args.begin(), {"--endpoint", node.endpoint()});
    return run_cli(std::move(args), input);
  }
  FakeNode node;
};

// invoke

TEST_F(NodeCommands, InvokePassesThePayloadAndPrintsTheAnswerAsItIs) {
  const std::string binary("a\0\xff", 3);
  node.answer("POST", kInvoke, {200, {}, binary});
  Outcome outcome = run({"invoke", "f", "-d", R"({"x":1})"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_EQ(outcome.out, binary);
  EXPECT_EQ(outcome.err, "");
  FakeNode::Request request = node.requests()[0];
  EXPECT_EQ(request.body, R"({"x":1})");
  EXPECT_EQ(request.headers["X-Amz-Invocation-Type"], "RequestResponse");
  EXPECT_EQ(request.headers["X-Amz-Log-Type"], "");
}

TEST_F(NodeCommands, InvokeReadsStandardInputAndDefaultsToAnEmptyObject) {
  node.answer("POST", kInvoke, {200, {}, "ok"});
  run({"invoke", "f", "-p", "-"}, "from stdin");
  run({"invoke", "f"});
  EXPECT_EQ(node.requests()[0].body, "from stdin");
  EXPECT_EQ(node.requests()[1].body, "{}");
  EXPECT_EQ(run({"invoke", "f", "-p", "/nonexistent"}).status, kNotFound);
}

TEST_F(NodeCommands, PayloadBeyondTheLimitIsNotSent) {
  Outcome outcome = run({"invoke", "f", "-p", "-"}, std::string((6 << 20) + 1, 'x'));
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("6291456"));
  EXPECT_EQ(run({"invoke", "f", "--async", "-p", "-"}, std::string((1 << 20) + 1, 'x')).status, kUsage);
  EXPECT_TRUE(node.requests().empty());
}

TEST_F(NodeCommands, FunctionErrorIsOneAndStillPrintsTheAnswer) {
  node.answer("POST", kInvoke, {200, {{"X-Amz-Function-Error", "Unhandled"}}, R"({"errorMessage":"no"})"});
  Outcome outcome = run({"invoke", "f"});
  EXPECT_EQ(outcome.status, kFunctionError);
  EXPECT_EQ(outcome.out, R"({"errorMessage":"no"})");
  EXPECT_THAT(outcome.err, HasSubstr("Unhandled"));
}

TEST_F(NodeCommands, LogTailAndTimesGoToStderr) {
  node.answer("POST", kInvoke,
              {200,
               {{"X-Amz-Log-Result", base64_encode("START\nhello")},
                {"X-Gpu-Start", "cold"},
                {"X-Gpu-Queue-Ms", "12"},
                {"X-Gpu-Exec-Ms", "3.5"}},
               "ok"});
  Outcome outcome = run({"invoke", "f", "--log"});
  EXPECT_EQ(outcome.out, "ok");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("START\nhello\n"), HasSubstr("cold start, queued 12 ms, ran 3.5 ms")));
  EXPECT_EQ(node.requests()[0].headers["X-Amz-Log-Type"], "Tail");
}

TEST_F(NodeCommands, AsyncIsAnEventAndPrintsTheRequestId) {
  node.answer("POST", kInvoke, {202, {{"x-amzn-RequestId", "id-1"}}, ""});
  Outcome outcome = run({"invoke", "f", "--async"});
  EXPECT_EQ(outcome.out, "accepted id-1\n");
  EXPECT_EQ(node.requests()[0].headers["X-Amz-Invocation-Type"], "Event");
}

TEST_F(NodeCommands, JsonInvokeKeepsWhatIsNotUtf8Readable) {
  node.answer("POST", kInvoke, {200, {{"x-amzn-RequestId", "id-1"}}, R"({"a":[1]})"});
  node.answer("POST", kInvoke, {200, {}, "\xff!"});
  EXPECT_EQ(Json::parse(run({"invoke", "f", "--json"}).out)["payload"]["a"][0], 1);
  EXPECT_TRUE(Json::parse(run({"invoke", "f", "--json"}).out)["payload"].is_string());
}

TEST_F(NodeCommands, FailuresHaveTheirOwnStatusAndTheNodesWords) {
  EXPECT_EQ(run({"invoke", "nobody"}).status, kNotFound);
  EXPECT_THAT(run({"describe", "nobody"}).err, HasSubstr("Function not found: nobody"));
  node.answer("POST", kInvoke, {429, {}, R"({"Type":"User","Message":"the queue is full"})"});
  node.answer("POST", kInvoke, {503, {}, R"({"Type":"Service","Message":"shutting down"})"});
  node.answer("POST", kInvoke, {500, {}, "boom"});
  EXPECT_EQ(run({"invoke", "f"}).status, kThrottled);
  EXPECT_EQ(run({"invoke", "f"}).status, kUnreachable);
  Outcome broken = run({"invoke", "f"});
  EXPECT_EQ(broken.status, kFailed);
  EXPECT_THAT(broken.err, HasSubstr("the node answered 500: boom"));
}

TEST(NodeClient, NobodyAtTheEndpointIsUnreachableWithAdvice) {
  Outcome outcome = run_cli({"--endpoint", "unix:/nonexistent/socket", "list"});
  EXPECT_EQ(outcome.status, kUnreachable);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("unix:/nonexistent/socket"), HasSubstr("fairlead serve")));
}

TEST(NodeClient, EndpointComesFromTheEnvironmentToo) {
  setenv("FAIRLEAD_ENDPOINT", "unix:/from/environment", 1);
  EXPECT_THAT(run_cli({"list"}).err, HasSubstr("unix:/from/environment"));
  EXPECT_THAT(run_cli({"list", "--endpoint", "unix:/from/flag"}).err, HasSubstr("unix:/from/flag"));
  unsetenv("FAIRLEAD_ENDPOINT");
}

// list, describe, remove

TEST_F(NodeCommands, ListFollowsPages) {
  node.answer("GET", "/2015-03-31/functions",
              {200, {}, R"({"Functions":[{"FunctionName":"a","MemorySize":512,"Timeout":60,"CodeSize":2048,
                            "LastModified":"now","Description":"first\nline"}],"NextMarker":"m/1"})"});
  node.answer("GET", "/2015-03-31/functions?Marker=m%2F1", {200, {}, R"({"Functions":[{"FunctionName":"b"}]})"});
  Outcome outcome = run({"list"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("NAME"), HasSubstr("a     512 MiB     60 s  2.0 KiB  now       first?line"),
                                 HasSubstr("\nb")));
  EXPECT_EQ(Json::parse(run({"list", "--json"}).out).size(), 2u);
}

TEST_F(NodeCommands, DescribeShowsTagsAndReservedConcurrency) {
  node.answer("GET", "/2015-03-31/functions/f",
              {200, {}, R"({"Configuration":{"FunctionName":"f","MemorySize":512,"Timeout":60,"CodeSize":10,
                            "Environment":{"Variables":{"K":"v"}}},
                            "Tags":{"gpu:weight":"2"},"Concurrency":{"ReservedConcurrentExecutions":3}})"});
  EXPECT_THAT(run({"describe", "f"}).out,
              AllOf(HasSubstr("K=v"), HasSubstr("gpu:weight=2"), HasSubstr("3 concurrent executions")));
}

TEST_F(NodeCommands, DescribeShowsStartsAndDeviceMemory) {
  node.answer("GET", "/2015-03-31/functions/f", {200, {}, R"({"Configuration":{"FunctionName":"f"}})"});
  EXPECT_THAT(run({"describe", "f"}).out, testing::Not(HasSubstr("Starts"))) << "a node that does not say";
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({"functions":[{"name":"e"},{"name":"f",
                            "stats":{"device_warm_starts":5,"host_warm_starts":2,"cold_starts":1},
                            "memory":{"expected_bytes":1048576,"held_bytes":3145728,"resident_bytes":1048576,
                                      "away_bytes":2097152,"fixed_bytes":0}}]})"});
  EXPECT_THAT(run({"describe", "f"}).out,
              AllOf(HasSubstr("5 device-warm, 2 host-warm, 1 cold"),
                    HasSubstr("1.0 MiB expected per instance; 3.0 MiB held: 1.0 MiB on the GPU, 2.0 MiB on the host")));
}

TEST_F(NodeCommands, RemoveGoesOnAfterAFailureAndReportsIt) {
  node.answer("DELETE", "/2015-03-31/functions/b", {204, {}, ""});
  Outcome outcome = run({"remove", "a", "b"});
  EXPECT_EQ(outcome.status, kNotFound);
  EXPECT_EQ(outcome.out, "removed b\n");
}

// logs

TEST_F(NodeCommands, LogsPrintsTheTail) {
  node.answer("GET", "/fairlead/v1/functions/f/log?tail=100", {200, {}, "one\ntwo\n"});
  EXPECT_EQ(run({"logs", "f", "--tail", "100"}).out, "one\ntwo\n");
}

TEST(LogFollower, GivesEachLineOnce) {
  LogFollower follower;
  EXPECT_EQ(follower.next("a\nb\n"), "a\nb\n");
  EXPECT_EQ(follower.next("a\nb\n"), "");
  EXPECT_EQ(follower.next("b\nc\n"), "c\n");  // the tail moved on
  EXPECT_EQ(follower.next("c\n"), "");
  EXPECT_EQ(follower.next("x y"), "x y");  // rotated: all of it is new
}

TEST(LogFollower, SaysWhetherATailReachesWhatWasGiven) {
  LogFollower follower;
  EXPECT_TRUE(follower.reaches("x\n")) << "nothing was given yet";
  follower.next("a\nb\n");
  EXPECT_TRUE(follower.reaches("a\nb\nc\n"));
  EXPECT_FALSE(follower.reaches("\nd\ne\n")) << "one byte that is alike tells nothing";
}

TEST(LogFollower, FindsItsPlaceInALongLog) {
  LogFollower follower;
  std::string log;
  for (int i = 0; i < 1000; ++i) log += "line " + std::to_string(i) + "\n";
  follower.next(log);
  std::string_view tail = std::string_view(log).substr(log.size() - 3000);
  EXPECT_EQ(follower.next(std::string(tail) + "new\n"), "new\n");
}

// status, top

constexpr const char* kStatus = R"({
  "version": "0.1.0", "policy": "mqfq-sticky", "uptime_seconds": 61, "global_virtual_time_seconds": 10, "queued": 4,
  "memory_policy": "prefetch-swap",
  "counters": {"arrived": 20, "completed": 15, "failed": 1, "cold_starts": 4, "device_warm_starts": 4,
               "host_warm_starts": 8, "rejected": 2, "memory": {"swap_ins": 9, "bytes_in": 1073741824}},
  "functions": [{"name": "resize", "state": "throttled", "queued": 3, "in_flight": 1, "virtual_time_seconds": 12.5,
                 "instances": {"idle": 2, "busy": 1, "starting": 0},
                 "memory": {"resident_bytes": 1048576, "away_bytes": 2097152, "expected_bytes": 3145728},
                 "stats": {"invocations": 10, "errors": 1, "cold_starts": 1, "device_warm_starts": 6,
                           "host_warm_starts": 3,
                           "service_seconds": 2.0, "queue_seconds": 5.0}}],
  "gpus": [{"id": 1, "name": "V100", "memory_total_bytes": 17179869184, "memory_used_bytes": 1073741824,
            "utilisation": 0.755, "slots_in_use": 2, "slots": 4, "state": "serving", "instances": 3}]})";

TEST_F(NodeCommands, TopShowsQueuesInstancesAndGpus) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, kStatus});
  Outcome outcome = run({"top", "--once"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_THAT(
      outcome.out,
      HasSubstr("mqfq-sticky  up 1m 01s\nqueued 4  invoked 20  done 15  failed 1  refused 2  host-warm 50%  cold 25%"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("1 +V100 +serving +2/4 +3 +1.0 GiB +16.0 GiB +76%"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex(
                  "resize +throttled +3 +1 +2.5 s +2 +10 +1 +30% +10% +1.0 MiB +2.0 MiB +2.0 s +200 ms +500 ms"));
}

TEST_F(NodeCommands, StatusSurvivesAnOlderNode) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({"version":"0.0.1"})"});
  EXPECT_THAT(run({"status"}).out, AllOf(HasSubstr("fairlead 0.0.1"), HasSubstr("no GPU")));
  EXPECT_EQ(Json::parse(run({"status", "--json"}).out)["version"], "0.0.1");
}

TEST_F(NodeCommands, SharesAreShownWhereThereAreAny) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({"functions":[
      {"name":"plain","share":{"compute_percent":100,"quota_request_percent":0,"quota_limit_percent":100,"seats":[],
                               "seats_wanted":0,"lacking":"","delivered_percent":null}},
      {"name":"third","share":{"compute_percent":24,"quota_request_percent":34,"quota_limit_percent":50,"memory_mib":2048,
                               "seats":[1,2],"seats_wanted":2,"lacking":"","delivered_percent":33.97}},
      {"name":"large","share":{"compute_percent":100,"quota_request_percent":90,"quota_limit_percent":100,"memory_mib":0,
                               "seats":[],"seats_wanted":1,"lacking":"no GPU has room","delivered_percent":null}}]})"});
  for (const char* command : {"status", "top"}) {
    const std::string out = command == std::string("top") ? run({"top", "--once"}).out : run({"status"}).out;
    EXPECT_THAT(out, testing::ContainsRegex("third +34% +50% +24% +2.0 GiB +2/2 +1,2 +34.0%"));
    EXPECT_THAT(out, testing::ContainsRegex("large +90% +100% +100% +- +0/1 +- +-"));
    EXPECT_THAT(out, HasSubstr("large lacks seats: no GPU has room\n"));
    EXPECT_THAT(out, testing::Not(testing::ContainsRegex("plain +0%")));
  }
}

TEST_F(NodeCommands, TopShowsTenantsWhereThereAreAny) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({"tenants":[
      {"name":"batch","weight":0.5,"max_in_flight":null,"functions":2,"queued":7,"in_flight":1,"service_seconds":2.0},
      {"name":"vision","weight":2,"max_in_flight":3,"functions":1,"queued":0,"in_flight":0,"service_seconds":0}]})"});
  const std::string out = run({"top", "--once"}).out;
  EXPECT_THAT(out, testing::ContainsRegex("batch +0.5 +- +2 +7 +1 +2.0 s"));
  EXPECT_THAT(out, testing::ContainsRegex("vision +2 +3 +1 +0 +0 +0 s"));
}

// sim record

TEST_F(NodeCommands, SimRecordWritesWhatSimReads) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({
      "policy": "mqfq-warm", "memory_policy": "prefetch-swap", "move_seconds": {"in": 2.0, "out": 0},
      "counters": {"memory": {"bytes_in": 16000000000, "swap_outs": 5, "swap_failures": 1,
                              "bytes_out": 125829120, "bytes_asked_out": 83886080}},
      "settings": {"over_run_seconds": 5, "ttl_factor": 2, "by_tenant": false, "instances_per_gpu": 7, "starts_per_gpu": 4,
                   "no_cold_duplicates": true, "eviction": "cost", "queue_limit": 100, "queue_limit_per_function": 50},
      "functions": [{"name": "f", "weight": 2, "tenant": "default", "objective_ms": null,
                     "memory": {"expected_bytes": 104857600}}],
      "gpus": [{"slots": 3, "memory_total_bytes": 1610612736, "memory_unreported_bytes": 536870912}]})"});
  const std::string first = "1000000,f,success,cold,1,510000,0,20000,20000,500000\n",
                    second = "3000000,f,success,device-warm,1,0,0,20000,20000,0\n";
  node.answer("GET", "/fairlead/v1/history?from=0", {200, {{"X-Fairlead-Next", "47"}}, first});
  node.answer("GET", "/fairlead/v1/history?from=47", {200, {{"X-Fairlead-Next", "99"}}, second});
  node.answer("GET", "/fairlead/v1/history?from=99", {200, {{"X-Fairlead-Next", "99"}}, ""});
  const auto folder = std::filesystem::temp_directory_path() / "fairlead-sim-record-test";
  const Outcome outcome = run({"sim", "record", "--out", folder.string()});
  EXPECT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 invocations of 1 functions in 3 s"));
  const Outcome run = run_cli({"--json", "sim", (folder / "scenario.toml").string()});
  std::ifstream file(folder / "scenario.toml");
  const std::string scenario{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  for (const char* line : {"over_run_s = 5\n", "instances = 7\n", "slots = 3\n", "starts = 4\n", "memory_mib = 100\n",
                           "weight = 2\n", "link_gb_per_s = 8.000\n", "region_mib = 20\n", "memory_gib = 1.000000\n",
                           "cold_start_s = 0.500000\n", "queue_limit_per_function = 50\n"}) {
    EXPECT_THAT(scenario, HasSubstr(line));
  }
  EXPECT_EQ(Json::parse(run.out)[0]["arrived"], 2);
}

TEST_F(NodeCommands, SimRecordRefusesAnEarlierNodeAndABrokenHistory) {
  node.answer("GET", "/fairlead/v1/status", {200, {}, R"({"version":"0.0.1"})"});
  EXPECT_THAT(run({"sim", "record", "--out", "/tmp/x"}).err, HasSubstr("earlier version, 0.0.1"));
  FakeNode broken;
  broken.answer("GET", "/fairlead/v1/status", {200, {}, R"({"settings":{"eviction":"lru"},"memory_policy":"none"})"});
  broken.answer("GET", "/fairlead/v1/history?from=0", {200, {{"X-Fairlead-Next", "9"}}, "1,f,lost\n"});
  EXPECT_THAT(run_cli({"--endpoint", broken.endpoint(), "sim", "record", "--out", "/tmp/x"}).err,
              HasSubstr("has not the 10 fields"));
}

// sim chart

TEST(SimChart, DrawsWhatItIsTold) {
  const std::string chart =
      R"({"title":"A & B","x":{"label":"s"},"y":{"label":"m"},"series":[{"label":"a","points":[[0,1],[1,2]]}]})";
  const Outcome drawn = run_cli({"sim", "chart"}, chart);
  EXPECT_EQ(drawn.status, kOk) << drawn.err;
  EXPECT_THAT(drawn.out, AllOf(testing::StartsWith("<svg xmlns="), HasSubstr("A &amp; B"), HasSubstr("polyline")));
  EXPECT_EQ(drawn.out, run_cli({"sim", "chart"}, chart).out);
  EXPECT_EQ(run_cli({"sim", "chart"}, "{}").status, kUsage);
  EXPECT_THAT(
      run_cli({"sim", "chart"}, R"({"title":"t","unit":"%","parts":["p"],"bars":[{"label":"b","parts":[3]}]})").out,
      HasSubstr("<rect"));
}

// dead-letters

TEST_F(NodeCommands, DeadLettersShowWhyAndWhen) {
  node.answer(
      "GET", "/fairlead/v1/dead-letters?function=f",
      {200, {}, R"({"dead_letters":[{"request_id":"r","function":"f","error_type":"Timeout","error_message":"60 s",
                            "attempts":3,"failed_ms":1700000000000}]})"});
  EXPECT_THAT(run({"dead-letters", "f"}).out, AllOf(HasSubstr("2023-11-14 22:13:20Z"), HasSubstr("Timeout: 60 s")));
}

TEST_F(NodeCommands, DeadLettersAreRedrivenOfOneFunctionOrAll) {
  node.answer("POST", "/fairlead/v1/functions/f/dead-letters/redrive", {200, {}, R"({"redriven":1,"left":0})"});
  EXPECT_EQ(run({"dead-letters", "redrive", "f"}).out, "1 dead letter will be tried again\n");
  node.answer("POST", "/fairlead/v1/dead-letters/redrive", {200, {}, R"({"redriven":7,"left":0})"});
  EXPECT_EQ(run({"dead-letters", "redrive", "--all"}).out, "7 dead letters will be tried again\n");
  EXPECT_EQ(run({"dead-letters", "redrive"}).status, kUsage);
  EXPECT_EQ(run({"dead-letters", "redrive", "f", "--all"}).status, kUsage);
}

}  // namespace
}  // namespace fairlead::cli
