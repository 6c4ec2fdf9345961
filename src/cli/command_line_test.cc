// What the command line accepts, refuses and says, without a node.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/places.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kCommands{"serve", "doctor", "deploy", "list",         "describe", "remove",    "invoke",
                                         "logs",  "status", "top",    "dead-letters", "version",  "completion"};

TEST(CommandLine, HelpNamesEveryCommandAndTheExitStatus) {
  Outcome help = run_cli({"--help"});
  EXPECT_EQ(help.status, kOk);
  for (const std::string& command : kCommands) EXPECT_THAT(help.out, HasSubstr("\n  " + command));
  EXPECT_THAT(help.out, HasSubstr("5 throttled"));
}

TEST(CommandLine, EveryCommandHasHelp) {
  for (const std::string& command : kCommands) {
    Outcome help = run_cli({command, "--help"});
    EXPECT_EQ(help.status, kOk) << command;
    EXPECT_THAT(help.out, HasSubstr("Usage: fairlead " + command));
  }
}

TEST(CommandLine, MistakesAreUsageErrorsOnStderr) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{}, {"frobnicate"}, {"list", "--frobnicate"}, {"describe"}, {"invoke"}}) {
    Outcome outcome = run_cli(args);
    EXPECT_EQ(outcome.status, kUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("--help"));
  }
  EXPECT_THAT(run_cli({"invoke", "f", "-d", "x", "-p", "y"}).err, AllOf(HasSubstr("--data"), HasSubstr("--payload")));
}

TEST(CommandLine, VersionIsTextOrJson) {
  EXPECT_THAT(run_cli({"version"}).out, testing::MatchesRegex("fairlead [0-9.]+\n"));
  EXPECT_TRUE(Json::parse(run_cli({"version", "--json"}).out).contains("version"));
}

// serve

struct ServeCommand : testing::Test {
  Outcome serve(std::vector<std::string> args) {
    args.insert(args.begin(), "serve");
    return run_cli(std::move(args), "", [this](const ServeOptions& seen) {
      options = seen;
      return 42;
    });
  }
  ServeOptions options;
};

TEST_F(ServeCommand, DefaultsAreThePapers) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.policy, "mqfq-sticky");
  EXPECT_EQ(options.over_run_seconds, 10);
  EXPECT_EQ(options.tokens_per_gpu, 2);
  EXPECT_EQ(options.instances_per_gpu, 32);
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:9001"));
  EXPECT_EQ(options.state_dir, default_state_dir());
}

TEST_F(ServeCommand, FlagsReachTheNode) {
  ASSERT_EQ(serve({"--state",  "/tmp/x/../s", "--listen",     "127.0.0.1:1", "--listen",          "unix:/tmp/n",
                   "--policy", "fcfs",        "--over-run",   "2.5",         "--tokens",          "4",
                   "--pool",   "8",           "--ttl-factor", "3",           "--queue-limit",     "100",
                   "--drain",  "5",           "--log-level",  "debug",       "--gpu-library-dir", "/tmp"})
                .status,
            42);
  EXPECT_EQ(options.state_dir, "/tmp/s");
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:1", "unix:/tmp/n"));
  EXPECT_EQ(options.policy, "fcfs");
  EXPECT_EQ(options.over_run_seconds, 2.5);
  EXPECT_EQ(options.tokens_per_gpu, 4);
  EXPECT_EQ(options.instances_per_gpu, 8);
  EXPECT_EQ(options.ttl_factor, 3);
  EXPECT_EQ(options.queue_limit, 100);
  EXPECT_EQ(options.drain_seconds, 5);
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.gpu_library_dir, "/tmp");
}

TEST_F(ServeCommand, BadValuesNameFlagValueAndBound) {
  Outcome outcome = serve({"--tokens", "0"});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--tokens"), HasSubstr("0"), HasSubstr("1"), HasSubstr("64")));
  EXPECT_THAT(serve({"--policy", "best"}).err, AllOf(HasSubstr("--policy"), HasSubstr("best"), HasSubstr("fcfs")));
  EXPECT_THAT(serve({"--over-run", "soon"}).err, AllOf(HasSubstr("--over-run"), HasSubstr("soon")));
  EXPECT_THAT(serve({"--softgpu", "--gpu-library-dir", "/tmp"}).err, HasSubstr("--softgpu"));
}

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) : path_(testing::TempDir() + "fairlead-config.toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(ServeCommand, ConfigFileSetsDefaultsAndFlagsWin) {
  ConfigFile file("[serve]\ntokens = 3\npool = 5\nlisten = [\"127.0.0.1:7\", \"127.0.0.1:8\"]\npolicy = \"fcfs\"\n");
  Outcome outcome = serve({"--config", file.path(), "--pool", "6"});
  ASSERT_EQ(outcome.status, 42) << outcome.err;
  EXPECT_EQ(options.tokens_per_gpu, 3);
  EXPECT_EQ(options.instances_per_gpu, 6);
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:7", "127.0.0.1:8"));
  EXPECT_EQ(options.policy, "fcfs");
}

TEST_F(ServeCommand, ConfigFileMistakesAreRefused) {
  ConfigFile unknown("[serve]\ntokkens = 3\n");
  Outcome outcome = serve({"--config", unknown.path()});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("tokkens"));
  ConfigFile out_of_range("[serve]\ntokens = 300\n");
  EXPECT_EQ(serve({"--config", out_of_range.path()}).status, kUsage);
  EXPECT_EQ(serve({"--config", "/nonexistent.toml"}).status, kUsage);
}

// completion

int run_shell(const std::string& command, const std::string& script) {
  FILE* pipe = popen(command.c_str(), "w");
  std::fwrite(script.data(), 1, script.size(), pipe);
  return pclose(pipe);
}

TEST(Completion, KnowsEveryCommandAndOptionInEveryShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Outcome outcome = run_cli({"completion", shell});
    EXPECT_EQ(outcome.status, kOk);
    for (const std::string& command : kCommands) EXPECT_THAT(outcome.out, HasSubstr(command)) << shell;
    EXPECT_THAT(outcome.out, HasSubstr("over-run")) << shell;
    EXPECT_THAT(outcome.out, HasSubstr("endpoint")) << shell;
  }
  EXPECT_EQ(run_cli({"completion", "tcsh"}).status, kUsage);
}

TEST(Completion, BashCompletesCommandsAndOptions) {
  if (find_program("bash").empty()) GTEST_SKIP() << "bash is not installed";
  const std::string script = run_cli({"completion", "bash"}).out + R"(
COMP_WORDS=(fairlead de); COMP_CWORD=1; _fairlead
[[ "${COMPREPLY[*]}" == "deploy describe" || "${COMPREPLY[*]}" == "deploy describe dead-letters" ]] || exit 1
COMP_WORDS=(fairlead --json serve --to); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "--tokens" ]] || exit 2
)";
  EXPECT_EQ(run_shell("bash", script), 0);
}

}  // namespace
}  // namespace fairlead::cli
