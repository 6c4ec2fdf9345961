// What the command line accepts, refuses and says, without a node.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/command.h"
#include "cli/places.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kCommands{
    "serve",        "doctor",  "deploy",     "list",   "describe", "remove", "invoke", "logs", "status", "top",
    "dead-letters", "version", "completion", "object", "graph",    "new",    "dev",    "warm", "unload"};

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

TEST(CommandLine, MistypedCommandIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(run_cli({"stauts"}).err,
            "fairlead: 'stauts' is no command; did you mean 'status'?\nTry 'fairlead --help'.\n");
  EXPECT_EQ(run_cli({"--endpoint", "http://127.0.0.1:1", "frobnicate", "status"}).err,
            "fairlead: 'frobnicate' is no command\nTry 'fairlead --help'.\n");
  EXPECT_EQ(run_cli({"--json", "invok", "f"}).status, kUsage);
}

TEST(CommandLine, MistypedOptionsAndActionsAreNamedWithWhatWasMeant) {
  EXPECT_EQ(run_cli({"list", "--jsn"}).err,
            "fairlead: '--jsn' is no option; did you mean '--json'?\nTry 'fairlead list --help'.\n");
  EXPECT_THAT(run_cli({"deploy", "f", ".", "--gpu-memroy=5"}).err,
              HasSubstr("'--gpu-memroy' is no option; did you mean '--gpu-memory'?"));
  EXPECT_THAT(run_cli({"--endpont", "x", "list"}).err, HasSubstr("did you mean '--endpoint'?"));
  EXPECT_THAT(run_cli({"secret", "lst"}).err,
              HasSubstr("'secret lst' is no command; did you mean 'list'?\nTry 'fairlead secret --help'."));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"list", "--frobnicate"}, {"describe", "f", "--"}, {"sim", "x.toml", "--frobnicate"}}) {
    const Outcome outcome = run_cli(args);
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("did you mean"))) << "nothing is near";
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("is no command")));
  }
}

TEST(CommandLine, VersionIsTextOrJson) {
  EXPECT_EQ(run_cli({"--version"}).out, run_cli({"version"}).out);
  EXPECT_EQ(run_cli({"--version"}).status, kOk);
  EXPECT_THAT(run_cli({"version"}).out, testing::MatchesRegex("fairlead [0-9.]+( .*)?\n"));
  EXPECT_TRUE(Json::parse(run_cli({"version", "--json"}).out).contains("version"));
}

// serve

struct ServeCommand : testing::Test {
  Outcome serve(std::vector<std::string> args) {
    args.insert(args.begin(), "serve");
    return run_cli(std::move(args), "", [this](const ServeOptions& seen, const RereadSettings& seen_reread) {
      options = seen;
      reread = seen_reread;
      return 42;
    });
  }
  ServeOptions options;
  RereadSettings reread;
};

TEST_F(ServeCommand, DefaultsAreWhatMeasuredBest) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.policy, "mqfq-setup");
  EXPECT_EQ(options.over_run_seconds, 8);
  EXPECT_EQ(options.slots.most, 2);
  EXPECT_EQ(options.instances_per_gpu, 32);
  EXPECT_EQ(options.memory_policy, MemoryPolicy::kPrefetchSwap);
  EXPECT_EQ(options.eviction, EvictionKind::kCost);
  EXPECT_FALSE(options.cold_duplicates);
  EXPECT_GE(options.starts_per_gpu, 1);
  EXPECT_LE(options.starts_per_gpu, 4);
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:9001"));
  EXPECT_EQ(options.state_dir, default_state_dir());
}

TEST_F(ServeCommand, FlagsReachTheNode) {
  ASSERT_EQ(serve({"--state",  "/tmp/x/../s", "--listen",     "127.0.0.1:1", "--listen",          "unix:/tmp/n",
                   "--policy", "fcfs",        "--over-run",   "2.5",         "--slots",           "4",
                   "--pool",   "8",           "--ttl-factor", "3",           "--queue-limit",     "100",
                   "--drain",  "5",           "--log-level",  "debug",       "--gpu-library-dir", "/tmp"})
                .status,
            42);
  EXPECT_EQ(options.state_dir, "/tmp/s");
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:1", "unix:/tmp/n"));
  EXPECT_EQ(options.policy, "fcfs");
  EXPECT_EQ(options.over_run_seconds, 2.5);
  EXPECT_EQ(options.slots.most, 4);
  EXPECT_EQ(options.instances_per_gpu, 8);
  EXPECT_EQ(options.ttl_factor, 3);
  EXPECT_EQ(options.queue_limit, 100);
  EXPECT_EQ(options.drain_seconds, 5);
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.gpu_library_dir, "/tmp");
}

TEST_F(ServeCommand, DeviceMemoryOptionsReachTheNode) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.memory_backend, wire::MemoryBackend::kVmm);
  EXPECT_EQ(options.host_memory_bytes, default_host_memory_bytes());
  ASSERT_EQ(serve({"--memory-backend", "uvm", "--uvm-mode", "advise", "--host-memory", "3GiB"}).status, 42);
  EXPECT_EQ(options.memory_backend, wire::MemoryBackend::kUvm);
  EXPECT_EQ(options.uvm_mode, wire::UvmMode::kAdvise);
  EXPECT_EQ(options.host_memory_bytes, std::uint64_t{3} << 30);
  ASSERT_EQ(serve({"--memory-backend", "checkpoint"}).status, 42);
  EXPECT_EQ(options.memory_backend, wire::MemoryBackend::kCheckpoint);
  EXPECT_THAT(serve({"--memory-backend", "magic"}).err,
              AllOf(HasSubstr("--memory-backend"), HasSubstr("vmm"), HasSubstr("checkpoint")));
  EXPECT_THAT(serve({"--host-memory", "much"}).err, HasSubstr("--host-memory"));
}

TEST_F(ServeCommand, MemoryFlagsReachTheNode) {
  ASSERT_EQ(serve({"--memory-policy", "none", "--eviction", "cost"}).status, 42);
  EXPECT_EQ(options.memory_policy, MemoryPolicy::kNone);
  EXPECT_EQ(options.eviction, EvictionKind::kCost);
}

TEST_F(ServeCommand, BadValuesNameFlagValueAndBound) {
  Outcome outcome = serve({"--slots", "0"});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--slots"), HasSubstr("0"), HasSubstr("1"), HasSubstr("64")));
  EXPECT_THAT(serve({"--policy", "best"}).err, AllOf(HasSubstr("--policy"), HasSubstr("best"), HasSubstr("fcfs")));
  EXPECT_THAT(serve({"--memory-policy", "swap"}).err, AllOf(HasSubstr("--memory-policy"), HasSubstr("prefetch-swap")));
  EXPECT_THAT(serve({"--eviction", "fifo"}).err, AllOf(HasSubstr("--eviction"), HasSubstr("lru"), HasSubstr("cost")));
  EXPECT_THAT(serve({"--over-run", "soon"}).err, AllOf(HasSubstr("--over-run"), HasSubstr("soon")));
  EXPECT_THAT(serve({"--softgpu", "--gpu-library-dir", "/tmp"}).err, HasSubstr("--softgpu"));
}

TEST_F(ServeCommand, SlotsAreANumberOrFollowTheLoad) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.slots.per_slice(), 1);
  EXPECT_FALSE(options.slots.is_dynamic);
  EXPECT_EQ(serve({"--slots", "3"}).status, 42);
  EXPECT_EQ(options.slots.per_slice(), 3) << "said for every device";
  EXPECT_EQ(serve({"--slots", "auto"}).status, 42);
  EXPECT_TRUE(options.slots.is_dynamic);
  EXPECT_EQ(options.slots.most, 8);
  EXPECT_EQ(options.slots.per_slice(), 1);
  EXPECT_EQ(serve({"--slots", "auto:4"}).status, 42);
  EXPECT_EQ(options.slots.most, 4);
  for (const char* wrong : {"auto:", "auto:0", "auto:65", "auto4", "automatic", "2x", "", "-1"}) {
    EXPECT_EQ(serve({"--slots", wrong}).status, kUsage) << wrong;
  }
}

TEST_F(ServeCommand, TenantsAreANameAWeightAndPerhapsALimit) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_TRUE(options.tenants.empty());
  ASSERT_EQ(serve({"--tenant", "vision:2", "--tenant", "batch:0.5:3"}).status, 42);
  ASSERT_EQ(options.tenants.size(), 2u);
  EXPECT_EQ(options.tenants[1].name, "batch");
  EXPECT_EQ(options.tenants[1].share.max_concurrency, 3u);
  EXPECT_THAT(serve({"--tenant", "vision"}).err, AllOf(HasSubstr("--tenant"), HasSubstr("between 0.01 and 100")));
  EXPECT_THAT(serve({"--tenant", "a:1", "--tenant", "a:2"}).err, HasSubstr("'a' is given twice"));
}

TEST_F(ServeCommand, TheHistoryHasABound) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.history_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(serve({"--history", "1GiB"}).status, 42);
  EXPECT_EQ(options.history_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(serve({"--history", "0"}).status, 42);
  EXPECT_THAT(serve({"--history", "1MiB"}).err,
              AllOf(HasSubstr("--history"), HasSubstr("0, or a size from 8MiB to 1TiB")));
}

TEST_F(ServeCommand, SharingIsOneOfItsModes) {
  EXPECT_EQ(serve({"--sharing", "mps"}).status, 42);
  EXPECT_EQ(options.sharing, SharingMode::kMps);
  EXPECT_THAT(serve({"--sharing", "vgpu"}).err, AllOf(HasSubstr("--sharing"), HasSubstr("mps"), HasSubstr("mig")));
}

TEST_F(ServeCommand, ALibraryThatCannotBeLoadedIsTheCommandLinesFault) {
  const Outcome outcome = serve({"--cublas", "/nonexistent"});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--cublas"), HasSubstr("/nonexistent")));
}

class TemporaryConfig {
 public:
  explicit TemporaryConfig(const std::string& text) : path_(testing::TempDir() + "fairlead-config.toml") {
    std::ofstream(path_) << text;
  }
  ~TemporaryConfig() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(ServeCommand, ConfigFileSetsDefaultsAndFlagsWin) {
  TemporaryConfig file(
      "[serve]\nslots = 3\npool = 5\nlisten = [\"127.0.0.1:7\", \"127.0.0.1:8\"]\npolicy = \"fcfs\"\n");
  Outcome outcome = serve({"--config", file.path(), "--pool", "6"});
  ASSERT_EQ(outcome.status, 42) << outcome.err;
  EXPECT_EQ(options.slots.most, 3);
  EXPECT_EQ(options.instances_per_gpu, 6);
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1:7", "127.0.0.1:8"));
  EXPECT_EQ(options.policy, "fcfs");
}

class ServeVariables : public ServeCommand {
 protected:
  ~ServeVariables() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(ServeVariables, SetDefaultsAndFlagsWin) {
  set("FAIRLEAD_SERVE_SLOTS", "5");
  set("FAIRLEAD_SERVE_OVER_RUN", "2.5");
  set("FAIRLEAD_SERVE_OBJECT_MEMORY", "2GiB");
  ASSERT_EQ(serve({"--slots", "6"}).status, 42);
  EXPECT_EQ(options.slots.most, 6);
  EXPECT_EQ(options.over_run_seconds, 2.5);
  EXPECT_EQ(options.object_memory_bytes, std::uint64_t{2} << 30);
}

TEST_F(ServeVariables, OldNamesOfSlotsWorkForARelease) {
  set("FAIRLEAD_SERVE_TOKENS", "5");
  ASSERT_EQ(serve({}).status, 42);
  EXPECT_EQ(options.slots.most, 5);
  ASSERT_EQ(serve({"--tokens", "6"}).status, 42);
  EXPECT_EQ(options.slots.most, 6);
  ASSERT_EQ(::unsetenv("FAIRLEAD_SERVE_TOKENS"), 0);
  TemporaryConfig file("[serve]\ntokens = 7\n");
  ASSERT_EQ(serve({"--config", file.path()}).status, 42);
  EXPECT_EQ(options.slots.most, 7);
}

TEST_F(ServeVariables, BadValuesAreRefused) {
  set("FAIRLEAD_SERVE_POOL", "0");
  EXPECT_THAT(serve({}).err, AllOf(HasSubstr("--pool"), HasSubstr("1 to 1024")));
}

TEST_F(ServeVariables, HelpNamesThem) {
  EXPECT_THAT(run_cli({"serve", "--help"}).out, HasSubstr("FAIRLEAD_SERVE_SLOTS"));
}

TEST_F(ServeVariables, WinOverTheFile) {
  TemporaryConfig file("endpoint = \"unix:/from/file\"\n[serve]\npool = 5\n");
  set("FAIRLEAD_SERVE_POOL", "6");
  ASSERT_EQ(serve({"--config", file.path()}).status, 42);
  EXPECT_EQ(options.instances_per_gpu, 6);
  EXPECT_THAT(run_cli({"list", "--config", file.path()}).err, HasSubstr("/from/file"));
  set("FAIRLEAD_ENDPOINT", "unix:/from/environment");
  EXPECT_THAT(run_cli({"list", "--config", file.path()}).err, HasSubstr("/from/environment"));
}

TEST_F(ServeVariables, OneThatIsMistypedIsPointedOut) {
  set("FAIRLEAD_SERVE_POOOL", "6");
  const Outcome outcome = serve({});
  EXPECT_EQ(outcome.status, 42);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'FAIRLEAD_SERVE_POOL'?"));
}

TEST_F(ServeCommand, TheFileIsReadAgainForAReload) {
  EXPECT_EQ(serve({}).status, 42);
  EXPECT_FALSE(reread) << "there is nothing to read";
  TemporaryConfig file("[serve]\nqueue-limit = 5\n");
  ASSERT_EQ(serve({"--config", file.path(), "--drain", "7"}).status, 42);
  std::ofstream(file.path()) << "[serve]\nqueue-limit = 6\ndrain = 8\n";
  const Result<ServeOptions> again = reread();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->queue_limit, 6);
  EXPECT_EQ(again->drain_seconds, 7) << "the command line still wins";
  EXPECT_EQ(again->state_dir, options.state_dir);
  std::ofstream(file.path()) << "[serve]\nqueue-limit = 0\n";
  EXPECT_THAT(reread().error().message, HasSubstr("--queue-limit is '0'"));
}

TEST_F(ServeCommand, PrintsItsSettingsAndStartsNothing) {
  const Outcome outcome = serve({"--print-config", "--pool", "7"});
  EXPECT_EQ(outcome.status, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("\npool = \"7\"  # command line\n"));
  EXPECT_THAT(serve({"--print-config", "--json"}).out, HasSubstr("\"origin\": \"default\""));
  EXPECT_EQ(serve({"--print-config", "--pool", "0"}).status, kUsage);
  EXPECT_THAT(serve({"--settings"}).out, HasSubstr("| `pool` |"));
}

TEST_F(ServeCommand, AScalarIsGivenOnce) {
  EXPECT_THAT(serve({"--pool", "1", "--pool", "2"}).err,
              AllOf(HasSubstr("--pool is given 2 times"), HasSubstr("Try 'fairlead serve --help'")));
}

TEST_F(ServeCommand, ConfigFileMistakesAreRefused) {
  TemporaryConfig unknown("[serve]\nslotts = 3\n");
  Outcome outcome = serve({"--config", unknown.path()});
  EXPECT_EQ(outcome.status, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("slotts"));
  TemporaryConfig out_of_range("[serve]\nslots = 300\n");
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
[[ "${COMPREPLY[*]}" == "dev deploy describe dead-letters" ]] || exit 1
COMP_WORDS=(fairlead --json serve --slo); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "--slots" ]] || exit 2
COMP_WORDS=(fairlead serve --sharing m); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "mps mig" ]] || exit 3
COMP_WORDS=(fairlead serve --eviction =); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "lru inactive-first cost" ]] || exit 4
COMP_WORDS=(fairlead deploy f --contract = h); COMP_CWORD=5; _fairlead
[[ "${COMPREPLY[*]}" == "http" ]] || exit 5
COMP_WORDS=(fairlead serve --slots a); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "auto" ]] || exit 6
COMP_WORDS=(fairlead serve --cublas ""); COMP_CWORD=3; _fairlead
[[ "${COMPREPLY[*]}" == "auto off" ]] || exit 7
)";
  EXPECT_EQ(run_shell("bash", script), 0);
}

// The manual and the file of a package

TEST(Manual, SaysWhatEveryCommandsHelpSays) {
  const std::string page = run_cli({"manual"}).out;
  for (const std::string& command : kCommands) {
    std::string name;
    for (const char c : command) name += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page, HasSubstr(".SS fairlead " + name)) << command;
  }
  EXPECT_THAT(page, HasSubstr("\\-\\-eviction"));
  EXPECT_THAT(page, HasSubstr(".SS fairlead object put"));
  EXPECT_THAT(page, Not(HasSubstr("device\\-server")));  // hidden
}

TEST(Template, IsAFileInWhichNothingIsSet) {
  const Outcome text = run_cli({"serve", "--print-template"});
  TemporaryConfig file(text.out);
  const Outcome settled = run_cli({"serve", "--config", file.path(), "--print-config"});
  EXPECT_EQ(settled.out, run_cli({"serve", "--print-config"}).out);
  // And taking the sign away sets it.
  std::string changed = text.out;
  const std::string line = "# pool = \"32\"\n";
  ASSERT_NE(changed.find(line), std::string::npos);
  changed.replace(changed.find(line), line.size(), "pool = \"31\"\n");
  TemporaryConfig other(changed);
  EXPECT_THAT(run_cli({"serve", "--config", other.path(), "--print-config"}).out, HasSubstr("\npool = \"31\"  # "));
}

}  // namespace
}  // namespace fairlead::cli
