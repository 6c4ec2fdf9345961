// fairlead graph against canned answers.
#include <gmock/gmock.h>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct GraphCommands : testing::Test {
  Outcome run(std::vector<std::string> args, const std::string& input = "") {
    args.insert(args.begin(), {"--endpoint", node.endpoint(), "graph"});
    return run_cli(std::move(args), input);
  }
  static net::HttpResponse running(unsigned status = 200) {
    return {status, {}, R"({"run": "r1", "state": "running", "created_ms": 0,
      "counts": {"waiting": 1, "running": 0, "done": 1, "failed": 0, "skipped": 0},
      "nodes": {"make": {"function": "vectors", "state": "done", "started_ms": 0, "ended_ms": 40},
                "add": {"function": "f", "state": "waiting"}}})"};
  }
  static net::HttpResponse failed() {
    return {200, {}, R"({"run": "r1", "state": "failed", "created_ms": 0, "ended_ms": 2000,
      "counts": {"waiting": 0, "running": 0, "done": 1, "failed": 1, "skipped": 0},
      "nodes": {"make": {"function": "vectors", "state": "done", "started_ms": 0, "ended_ms": 40},
                "add": {"function": "f", "state": "failed", "started_ms": 40, "ended_ms": 1540,
                        "error": "node add failed: boom"}}})"};
  }
  FakeNode node;
};

TEST_F(GraphCommands, RunPrintsTheIdAndSendsWhatItWasGiven) {
  node.answer("POST", "/v1/graphs", running(202));
  const Outcome outcome = run({"run", "-"}, R"({"nodes": {}})");
  EXPECT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_EQ(outcome.out, "r1\n");
  EXPECT_EQ(node.requests()[0].body, R"({"nodes": {}})");
}

TEST_F(GraphCommands, RunWithWaitPrintsNodesAsTheyEndAndFailsWithThem) {
  node.answer("POST", "/v1/graphs", running(202));
  node.answer("GET", "/v1/graphs/r1?wait=60&ended=1", failed());
  const Outcome outcome = run({"run", "-", "--wait"}, "{}");
  EXPECT_EQ(outcome.status, kFunctionError);
  EXPECT_EQ(outcome.out,
            "NODE  FUNCTION  STATE    TIME\n"
            "make  vectors   done     40 ms\n"
            "add   f         failed   1.5 s\n"
            "run r1: failed, 1 done, 1 failed, 2.0 s\n");
  EXPECT_EQ(outcome.err, "fairlead: node add failed: boom\n");
}

TEST_F(GraphCommands, JsonIsTheRunAtItsEnd) {
  node.answer("POST", "/v1/graphs", running(202));
  node.answer("GET", "/v1/graphs/r1?wait=60", failed());
  const Outcome outcome = run({"run", "-", "--wait", "--json"}, "{}");
  EXPECT_EQ(outcome.status, kFunctionError);
  EXPECT_EQ(Json::parse(outcome.out)["state"], "failed");
}

TEST_F(GraphCommands, CheckNamesWhatTheGraphWaitsFor) {
  node.answer("POST", "/v1/graphs?check", {200, {}, R"({"nodes": 3, "inputs": ["in/x"]})"});
  EXPECT_EQ(run({"check", "-"}, "{}").out, "valid: 3 nodes\nwaits for object in/x\n");
}

TEST_F(GraphCommands, ARefusalIsAUsageError) {
  node.answer("POST", "/v1/graphs", {400, {}, R"({"Type": "User", "Message": "nodes.a.writes[0]: bad"})"});
  const Outcome outcome = run({"run", "-"}, "{}");
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("nodes.a.writes[0]: bad"));
}

TEST_F(GraphCommands, ShowListAndCancel) {
  node.answer("GET", "/v1/graphs/r1", failed());
  EXPECT_THAT(run({"show", "r1"}).out, AllOf(HasSubstr("node add failed: boom"), HasSubstr("1.5 s")));
  node.answer("GET", "/v1/graphs", {200, {}, R"({"runs": [{"run": "r1", "name": "sum", "state": "done", "created_ms": 0,
                                      "counts": {"done": 3, "failed": 0}}]})"});
  EXPECT_THAT(run({"list"}).out, AllOf(HasSubstr("r1"), HasSubstr("sum"), HasSubstr("3")));
  node.answer("DELETE", "/v1/graphs/r1", failed());
  EXPECT_THAT(run({"cancel", "r1"}).out, AllOf(HasSubstr("run r1: failed"), Not(HasSubstr("NODE"))));
  EXPECT_EQ(run({"show", "r2"}).status, kNotFound);
}

}  // namespace
}  // namespace fairlead::cli
