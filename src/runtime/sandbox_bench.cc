// What a sandbox costs: from start() to gone() of a static program that ends at once, next to `crun run` of the same
// program with the same namespaces, limits and mounts, and a round trip of an invocation.
#include <benchmark/benchmark.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/instance_host.h"

extern char** environ;

namespace fairlead {
namespace {

namespace fs = std::filesystem;

class Bed {
 public:
  explicit Bed(bool use_cgroups) {
    spdlog::set_level(spdlog::level::err);
    char pattern[] = "/tmp/fairlead-bench-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    fs::permissions(dir_, fs::perms(0755));
    fs::create_directories(dir_ + "/code");
    fs::copy_file(TEST_FUNCTION, dir_ + "/code/bootstrap");
    InstanceEvents events;
    events.next = [this](InstanceId) { waiting = true; };
    events.answered = [](InstanceId, Answer) {};
    events.gone = [this](InstanceId, ExitInfo) { gone = true; };
    InstanceHostOptions options;
    options.state_dir = dir_ + "/state";
    options.log_dir = dir_ + "/logs";
    options.use_cgroups = use_cgroups;
    auto created = InstanceHost::create(io, std::move(options), std::move(events));
    if (created) host = std::move(*created);
  }
  ~Bed() {
    host.reset();
    fs::remove_all(dir_);
  }

  void start(const char* handler) {
    InstanceSpec spec;
    spec.instance = InstanceId(++started_);
    spec.function = "f";
    spec.handler = handler;
    spec.code_path = dir_ + "/code";
    spec.memory_limit = mib(256);
    gone = waiting = false;
    host->start(std::move(spec));
  }
  void run_until(const bool& flag) {
    while (!flag) io.run_one();
  }
  InstanceId instance() const { return InstanceId(started_); }

  boost::asio::io_context io;
  std::unique_ptr<InstanceHost> host;
  bool waiting = false;
  bool gone = false;

 private:
  std::string dir_;
  std::uint64_t started_ = 0;
};

// pause_ms: time without a start in between. 0: the next start follows at once, so that no sandbox is prepared ahead.
void BM_SandboxStartToExit(benchmark::State& state) {
  Bed bed(state.range(1) != 0);
  if (!bed.host) return state.SkipWithError("no sandboxes on this machine");
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(state.range(0)));
    state.ResumeTiming();
    bed.start("true");
    bed.run_until(bed.gone);
  }
}
BENCHMARK(BM_SandboxStartToExit)
    ->ArgNames({"pause_ms", "cgroups"})
    ->ArgsProduct({{0, 100}, {0, 1}})
    ->Iterations(100)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// Until the program's first instruction, by its own clock. Prepared ahead, cgroups on: as a node starts instances.
void BM_SandboxStartToExec(benchmark::State& state) {
  Bed bed(true);
  if (!bed.host) return state.SkipWithError("no sandboxes on this machine");
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const Instant begin = monotonic_now();
    bed.start("clock");
    bed.run_until(bed.waiting);
    std::string printed;
    while ((printed = bed.host->stats(bed.instance()).log_tail).empty()) bed.io.run_one();
    state.SetIterationTime(to_seconds(Duration(std::stoll(printed)) - begin.time_since_epoch()));
    bed.host->kill(bed.instance());
    bed.run_until(bed.gone);
  }
}
BENCHMARK(BM_SandboxStartToExec)->Iterations(100)->UseManualTime()->Unit(benchmark::kMicrosecond);

// Until the function's first `next`.
void BM_SandboxStartToReady(benchmark::State& state) {
  Bed bed(true);
  if (!bed.host) return state.SkipWithError("no sandboxes on this machine");
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    state.ResumeTiming();
    bed.start("unix");
    bed.run_until(bed.waiting);
    state.PauseTiming();
    bed.host->kill(bed.instance());
    bed.run_until(bed.gone);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_SandboxStartToReady)->Iterations(50)->UseRealTime()->Unit(benchmark::kMicrosecond);

// Deliver to the next `next` of a function that answers at once; CPU is the node's share.
void BM_Invocation(benchmark::State& state) {
  Bed bed(true);
  if (!bed.host) return state.SkipWithError("no sandboxes on this machine");
  bed.start(state.range(0) != 0 ? "unix" : "serve");
  bed.run_until(bed.waiting);
  std::uint64_t count = 0;
  for (auto _ : state) {
    bed.waiting = false;
    bed.host->deliver(bed.instance(),
                      {.id = InvocationId(++count),
                       .invocation = {.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd", .payload = "echo hello"}});
    bed.run_until(bed.waiting);
  }
}
BENCHMARK(BM_Invocation)->ArgName("unix")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);

constexpr const char* kCrunConfig = R"({"ociVersion":"1.0.0","root":{"path":"rootfs","readonly":true},
"hostname":"sandbox","process":{"terminal":false,"user":{"uid":65530,"gid":65530},"args":["/bootstrap"],
"env":["_HANDLER=true"],"cwd":"/","noNewPrivileges":true},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
{"destination":"/tmp","type":"tmpfs","source":"tmpfs","options":["nosuid","nodev","size=65536k"]},
{"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755","size=64k"]}],
"linux":{"namespaces":[{"type":"pid"},{"type":"mount"},{"type":"ipc"},{"type":"uts"},{"type":"network"}],
"resources":{"memory":{"limit":268435456},"pids":{"limit":257}}}})";

void BM_CrunRun(benchmark::State& state) {
  if (!fs::exists("/usr/bin/crun")) return state.SkipWithError("crun is not installed");
  // crun refuses a hybrid cgroup layout; without the unified mount it takes version 1.
  if (::unshare(CLONE_NEWNS) != 0) return state.SkipWithError("crun needs root here");
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  ::umount2("/sys/fs/cgroup/unified", MNT_DETACH);
  char pattern[] = "/tmp/fairlead-crun-XXXXXX";
  const std::string bundle = ::mkdtemp(pattern);
  for (const char* dir : {"/rootfs/proc", "/rootfs/tmp", "/rootfs/dev"}) fs::create_directories(bundle + dir);
  fs::copy_file(TEST_FUNCTION, bundle + "/rootfs/bootstrap");
  std::ofstream(bundle + "/config.json") << kCrunConfig;
  int count = 0;
  for (auto _ : state) {
    std::string name = "fairlead-bench-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    const char* argv[] = {"crun", "run", "--bundle", bundle.c_str(), name.c_str(), nullptr};
    pid_t pid = -1;
    int status = -1;
    if (::posix_spawn(&pid, "/usr/bin/crun", nullptr, nullptr, const_cast<char**>(argv), environ) == 0) {
      ::waitpid(pid, &status, 0);
    }
    if (status != 0) state.SkipWithError("crun run failed");
  }
  fs::remove_all(bundle);
}
BENCHMARK(BM_CrunRun)->Iterations(50)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fairlead
