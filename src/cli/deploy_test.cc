// `fairlead deploy`, against canned answers.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "cli/fake_node.h"
#include "cli/test_cli.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;

struct Deploy : testing::Test {
  Deploy() : folder(testing::TempDir() + "fairlead-deploy") {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/bootstrap") << "#!/bin/sh\n";
    chmod((folder + "/bootstrap").c_str(), 0755);
  }
  ~Deploy() override { std::filesystem::remove_all(folder); }
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--endpoint", node.endpoint()});
    return run_cli(std::move(args));
  }
  Json body(std::size_t index) { return Json::parse(node.requests()[index].body); }
  FakeNode node;
  std::string folder;
};

const std::string kFunctions = "/2015-03-31/functions";
const std::string kConcurrency = "/2017-10-31/functions/f/concurrency";

TEST_F(Deploy, CreatesWithWhatWasGivenAndSaysWhatIsNext) {
  node.answer("POST", "/2015-03-31/functions", {201, {}, R"({"CodeSize":10,"CodeSha256":"abc"})"});
  node.answer("PUT", "/2017-10-31/functions/f/concurrency", {200, {}, "{}"});
  Outcome outcome =
      run({"deploy", "f", folder, "--env", "A=1", "--env", "B=x=y", "--tag", "team=vision", "--gpu-memory", "2048",
           "--weight", "2.5", "--timeout", "30", "--memory", "1024", "--reserved", "0"});
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("created f"));
  EXPECT_THAT(outcome.err, HasSubstr("fairlead invoke f"));
  Json created = body(0);
  EXPECT_EQ(created["FunctionName"], "f");
  EXPECT_EQ(created["Code"]["Folder"], folder);  // the fake node is on this machine
  EXPECT_EQ(created["Environment"]["Variables"], (Json{{"A", "1"}, {"B", "x=y"}}));
  EXPECT_EQ(created["Tags"], (Json{{"gpu:memory-mib", "2048"}, {"gpu:weight", "2.5"}, {"team", "vision"}}));
  EXPECT_EQ(created["Timeout"], 30);
  EXPECT_EQ(created["MemorySize"], 1024);
  EXPECT_EQ(body(1)["ReservedConcurrentExecutions"], 0);
}

TEST_F(Deploy, AShareIsFourTags) {
  node.answer("POST", "/2015-03-31/functions", {201, {}, "{}"});
  const Outcome outcome = run(
      {"deploy", "f", folder, "--gpu-request", "34", "--gpu-limit", "50", "--gpu-compute", "24", "--replicas", "1:3"});
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_EQ(body(0)["Tags"], (Json{{"gpu:quota-request", "34"},
                                   {"gpu:quota-limit", "50"},
                                   {"gpu:compute-percent", "24"},
                                   {"gpu:replicas", "1:3"}}));
  EXPECT_EQ(run({"deploy", "f", folder, "--gpu-request", "101"}).status, kUsage);
  EXPECT_EQ(run({"deploy", "f", folder, "--gpu-limit", "0"}).status, kUsage);
}

TEST_F(Deploy, AShareThatIsRefusedIsNotTakenForAFunctionThatExists) {
  node.answer("POST", "/2015-03-31/functions", {400, {}, R"({"Message":"gpu:quota-request is 120.0 % of the time"})"});
  const Outcome outcome = run({"deploy", "f", folder, "--gpu-request", "34"});
  EXPECT_NE(outcome.status, kOk);
  EXPECT_THAT(outcome.err, HasSubstr("120.0 %"));
  EXPECT_EQ(node.requests().size(), 1u);
}

TEST_F(Deploy, UpdatesAnExistingFunctionWithoutTouchingWhatWasNotGiven) {
  node.answer("POST", "/2015-03-31/functions", {409, {}, R"({"Message":"Function already exist: f"})"});
  node.answer("PUT", "/2015-03-31/functions/f/configuration", {200, {}, "{}"});
  node.answer("PUT", "/2015-03-31/functions/f/code", {200, {}, R"({"CodeSize":10})"});
  Outcome outcome = run({"deploy", "f", folder, "--timeout", "30"});
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("updated f"));
  ASSERT_EQ(node.requests().size(), 3u);
  EXPECT_EQ(body(1), (Json{{"Timeout", 30}}));
  EXPECT_EQ(body(2), (Json{{"Folder", folder}}));
}

TEST_F(Deploy, UploadSendsAnArchive) {
  node.answer("POST", "/2015-03-31/functions", {201, {}, "{}"});
  ASSERT_EQ(run({"deploy", "f", folder, "--upload"}).status, kOk);
  std::string zip = base64_decode("ZipFile", body(0)["Code"]["ZipFile"].get<std::string>()).value();
  EXPECT_TRUE(zip.starts_with("PK"));
  EXPECT_THAT(zip, HasSubstr("bootstrap"));
}

TEST_F(Deploy, MistakesAreExplainedBeforeAnythingIsSent) {
  EXPECT_THAT(run({"deploy", "f", folder, "--env", "novalue"}).err, HasSubstr("--env: 'novalue'"));
  EXPECT_EQ(run({"deploy", "f", folder, "--timeout", "0"}).status, kUsage);
  EXPECT_EQ(run({"deploy", "bad name", folder}).status, kUsage);
  EXPECT_EQ(run({"deploy", "f", "/nonexistent"}).status, kNotFound);
  chmod((folder + "/bootstrap").c_str(), 0644);
  if (geteuid() != 0 || access((folder + "/bootstrap").c_str(), X_OK) != 0) {
    EXPECT_THAT(run({"deploy", "f", folder}).err, HasSubstr("chmod +x"));
  }
  std::filesystem::remove(folder + "/bootstrap");
  EXPECT_THAT(run({"deploy", "f", folder}).err, HasSubstr("has no file 'bootstrap'"));
  EXPECT_TRUE(node.requests().empty());
}

TEST_F(Deploy, AReservationThatIsRefusedIsAFailure) {
  node.answer("POST", kFunctions, {201, {}, "{}"});
  node.answer("PUT", kConcurrency, {429, {}, R"({"Message":"try later"})"});
  const Outcome outcome = run({"deploy", "f", folder, "--reserved", "3"});
  EXPECT_EQ(outcome.status, kThrottled);
  EXPECT_THAT(outcome.err, HasSubstr("try later"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Deploy, AConfigurationThatIsRefusedLeavesTheCodeAsItIs) {
  node.answer("POST", kFunctions, {409, {}, "{}"});
  node.answer("POST", "/2017-03-31/tags/" + net::percent_encode(function_arn("f")), {204, {}, ""});
  node.answer("PUT", kFunctions + "/f/configuration", {400, {}, R"({"Message":"Timeout is wrong"})"});
  const Outcome outcome = run({"deploy", "f", folder, "--timeout", "30", "--tag", "a=b"});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("Timeout is wrong"));
  EXPECT_EQ(node.requests().size(), 3u) << "tags, then the configuration, then no code";
}

TEST_F(Deploy, AShareThatIsRefusedLeavesAllElseAsItIs) {
  node.answer("POST", kFunctions, {409, {}, "{}"});
  node.answer("POST", "/2017-03-31/tags/" + net::percent_encode(function_arn("f")),
              {400, {}, R"({"Message":"gpu:quota-request is 110.0 % of the device's time at best"})"});
  const Outcome outcome = run({"deploy", "f", folder, "--timeout", "30", "--gpu-request", "60"});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("110.0 %"));
  EXPECT_EQ(node.requests().size(), 2u);
}

TEST_F(Deploy, TagsOfAnExistingFunctionAreAddedToIt) {
  node.answer("POST", kFunctions, {409, {}, "{}"});
  const std::string tags = "/2017-03-31/tags/" + net::percent_encode(function_arn("f"));
  node.answer("POST", tags, {204, {}, ""});
  node.answer("PUT", kFunctions + "/f/code", {200, {}, "{}"});
  ASSERT_EQ(run({"deploy", "f", folder, "--weight", "3"}).status, kOk);
  ASSERT_EQ(node.requests().size(), 3u) << "no configuration was given";
  EXPECT_EQ(node.requests()[1].target, tags);
  EXPECT_EQ(body(1), (Json{{"Tags", {{"gpu:weight", "3"}}}}));
}

TEST_F(Deploy, ANameThatAnotherTenantHasIsTaken) {
  node.answer("POST", kFunctions, {409, {}, R"({"Message":"Function already exist: f"})"});
  const Outcome outcome = run({"deploy", "f", folder});  // the fake node answers the update with 404
  EXPECT_NE(outcome.status, kOk);
  EXPECT_NE(outcome.status, kNotFound);
  EXPECT_THAT(outcome.err, HasSubstr("Function already exist: f"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Deploy, SomethingElseThatIsMissingOfAnUpdateIsNamed) {
  node.answer("POST", kFunctions, {409, {}, R"({"Message":"Function already exist: f"})"});
  node.answer("PUT", kFunctions + "/f/code", {404, {}, R"({"Message":"Code.Folder is gone"})"});
  const Outcome outcome = run({"deploy", "f", folder});
  EXPECT_EQ(outcome.status, kNotFound);
  EXPECT_THAT(outcome.err, HasSubstr("Code.Folder is gone"));
}

TEST_F(Deploy, AnotherErrorThanItsBeingThereIsNoReasonToUpdate) {
  node.answer("POST", kFunctions, {503, {}, R"({"Message":"shutting down"})"});
  EXPECT_EQ(run({"deploy", "f", folder}).status, kUnreachable);
  EXPECT_EQ(node.requests().size(), 1u);
}

TEST_F(Deploy, AnImageIsNamedSoThatTheNodeFindsIt) {
  node.answer("POST", kFunctions, {201, {}, "{}"});
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const Outcome outcome = run({"deploy", "f", "--image", "oci:./layout:v1", "--entrypoint", "/run", "--entrypoint",
                               "-x", "--command", "serve", "--workdir", "/w", "--contract", "http"});
  std::filesystem::current_path(before);
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("created f (image"));
  EXPECT_EQ(body(0)["PackageType"], "Image");
  EXPECT_EQ(body(0)["Code"], (Json{{"ImageUri", "oci:" + folder + "/layout:v1"}}));
  EXPECT_EQ(body(0)["ImageConfig"],
            (Json{{"EntryPoint", {"/run", "-x"}}, {"Command", {"serve"}}, {"WorkingDirectory", "/w"}}));
  EXPECT_EQ(body(0)["Tags"], (Json{{"image:contract", "http"}}));
  EXPECT_FALSE(body(0).contains("Runtime"));
  EXPECT_EQ(run({"deploy", "f", "--image", "quay.io/app:v1"}).status, kOk);
  EXPECT_EQ(body(1)["Code"], (Json{{"ImageUri", "quay.io/app:v1"}}));
}

TEST_F(Deploy, AFolderOrAnImageAndOneOfThem) {
  EXPECT_THAT(run({"deploy", "f"}).err, HasSubstr("FOLDER or --image is missing"));
  EXPECT_EQ(run({"deploy", "f", folder, "--image", "quay.io/app"}).status, kUsage);
  EXPECT_EQ(run({"deploy", "f", folder, "--workdir", "/w"}).status, kUsage) << "means nothing without an image";
  EXPECT_EQ(run({"deploy", "f", "--image", "oci:"}).status, kUsage);
  EXPECT_TRUE(node.requests().empty());
}

TEST_F(Deploy, AKernelTaskNeedsNoProgram) {
  std::filesystem::remove(folder + "/bootstrap");
  std::ofstream(folder + "/task.json") << "{}";
  node.answer("POST", kFunctions, {201, {}, "{}"});
  EXPECT_EQ(run({"deploy", "f", folder}).status, kOk);
}

TEST_F(Deploy, AsJsonItIsWhatTheNodeSaid) {
  node.answer("POST", kFunctions, {201, {}, R"({"CodeSize":10})"});
  const Outcome outcome = run({"--json", "deploy", "f", folder});
  EXPECT_EQ(Json::parse(outcome.out), (Json{{"CodeSize", 10}}));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Deploy, AnArchiveThatWasSentIsNotLeftBehind) {
  node.answer("POST", kFunctions, {201, {}, "{}"});
  const std::string temporary = folder + "-tmp";
  std::filesystem::create_directories(temporary);
  const char* const before = getenv("TMPDIR");
  const std::string was = before == nullptr ? "" : before;
  setenv("TMPDIR", temporary.c_str(), 1);
  EXPECT_EQ(run({"deploy", "f", folder, "--upload"}).status, kOk);
  was.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", was.c_str(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  std::filesystem::remove_all(temporary);
}

// ---- functions in Python; python3 is the machine's, pip is not asked

struct DeployPython : Deploy {
  DeployPython() : cache(folder + "-cache") {
    setenv("FAIRLEAD_CACHE", cache.c_str(), 1);
    std::filesystem::remove(folder + "/bootstrap");
    node.answer("POST", kFunctions, {201, {}, "{}"});
  }
  ~DeployPython() override {
    unsetenv("FAIRLEAD_CACHE");
    std::filesystem::remove_all(cache);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  std::string cache;
};

TEST_F(DeployPython, AFileSaysWhatItsFunctionNeedsAndTheCommandLineWins) {
  const std::string file = write("f.py",
                                 "import fairlead\n@fairlead.function(gpu_memory='1Gi', objective_ms=50, timeout=9)\n"
                                 "def hello(event): return 1\n");
  const Outcome outcome = run({"deploy", file, "--timeout", "30"});
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_EQ(body(0)["FunctionName"], "hello");
  EXPECT_EQ(body(0)["Tags"], (Json{{"gpu:memory-mib", "1024"}, {"gpu:objective-ms", "50"}}));
  EXPECT_EQ(body(0)["Timeout"], 30);
  EXPECT_EQ(body(0)["Handler"], "f.hello");
  EXPECT_FALSE(std::filesystem::exists(body(0)["Code"]["Folder"].get<std::string>())) << "it is removed afterwards";
  EXPECT_EQ(run({"deploy", "other", file + ":hello"}).status, kOk);
  EXPECT_EQ(body(1)["FunctionName"], "other");
}

TEST_F(DeployPython, AFolderWithAHandlerIsOneAndABootstrapGoesFirst) {
  write("handler.py", "def handler(event): return 1\n");
  ASSERT_EQ(run({"deploy", "f", folder}).status, kOk);
  EXPECT_NE(body(0)["Code"]["Folder"], folder);
  chmod(write("bootstrap", "#!/bin/sh\n").c_str(), 0755);
  ASSERT_EQ(run({"deploy", "f", folder}).status, kOk);
  EXPECT_EQ(body(1)["Code"]["Folder"], folder);
}

TEST_F(DeployPython, WhatIsRefusedReachesNoNode) {
  EXPECT_EQ(run({"deploy", write("f.py", "x = 1\n")}).status, kUsage);
  EXPECT_EQ(run({"deploy", folder + "/absent.py"}).status, kUsage);
  EXPECT_TRUE(node.requests().empty());
}

}  // namespace
}  // namespace fairlead::cli
