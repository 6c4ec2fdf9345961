// node_load: measures a running HTTP endpoint and the machine's own round trip. Prints one JSON object.
//
//   node_load pingpong [--cores 1|2]                  unix-socket round trip between two processes, pinned
//   node_load http --port P --path /... --requests N  closed loop: latency percentiles, requests per second
//   node_load echo                                    serves echoes with the node's HTTP library
#include <fmt/core.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "base/clock.h"
#include "bench/echo_server.h"
#include "bench/http_load.h"

namespace fairlead::bench {
namespace {

void print(std::vector<Duration>& latencies, Duration elapsed, std::uint64_t failures) {
  fmt::print("{{\"requests\": {}, \"failures\": {}, \"p50_us\": {:.2f}, \"p99_us\": {:.2f}, \"per_second\": {:.0f}}}\n",
             latencies.size(), failures, to_us(percentile(latencies, 0.5)), to_us(percentile(latencies, 0.99)),
             static_cast<double>(latencies.size()) / to_seconds(elapsed));
}

// To the nth of the processors that this process may use; the last one where there are fewer.
void pin_to_processor(int n) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && n >= 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    --n;
  }
  sched_setaffinity(0, sizeof(one), &one);
}

[[noreturn]] void answer_pings(int fd) {
  char buffer[64];
  while (read(fd, buffer, sizeof(buffer)) == sizeof(buffer) && write(fd, buffer, sizeof(buffer)) > 0) {
  }
  _exit(0);
}

// Pinned, because the kernel puts both ends on one processor in some runs and on two in others: 5 us or 50.
int ping_pong(std::size_t rounds, int cores) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  const pid_t child = fork();
  pin_to_processor(child == 0 ? cores - 1 : 0);
  if (child == 0) answer_pings(pair[1]);
  std::vector<Duration> latencies;
  char buffer[64] = {};
  const Instant begin = monotonic_now();
  for (std::size_t i = 0; i < rounds; ++i) {
    const Instant sent = monotonic_now();
    if (write(pair[0], buffer, sizeof(buffer)) < 0 || read(pair[0], buffer, sizeof(buffer)) < 0) return 1;
    latencies.push_back(monotonic_now() - sent);
  }
  print(latencies, monotonic_now() - begin, 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return 0;
}

int http(const LoadOptions& options) {
  auto result = run_load(options);
  if (!result) {
    fmt::print(stderr, "node_load: {}\n", result.error().message);
    return 1;
  }
  print(result->latencies, result->elapsed, result->failures);
  return 0;
}

}  // namespace
}  // namespace fairlead::bench

int main(int argc, char** argv) {
  using namespace fairlead::bench;
  CLI::App app("Load generation and baselines for tools/bench");
  app.require_subcommand(1);
  std::size_t rounds = 20'000;
  CLI::App* pingpong = app.add_subcommand("pingpong");
  pingpong->add_option("--rounds", rounds);
  int cores = 2;
  pingpong->add_option("--cores", cores)->check(CLI::Range(1, 2));
  LoadOptions options;
  CLI::App* load = app.add_subcommand("http");
  load->add_option("--host", options.host);
  load->add_option("--port", options.port)->required();
  load->add_option("--path", options.paths)->required();
  load->add_option("--connections", options.connections);
  load->add_option("--body", options.body);
  load->add_option("--header", options.headers, "Name: value")->take_all();
  load->add_option("--tls-ca", options.tls_ca);
  load->add_option("--warm-up", options.warm_up);
  load->add_option("--requests", options.requests);
  CLI::App* echo = app.add_subcommand("echo");
  CLI11_PARSE(app, argc, argv);

  if (*pingpong) return ping_pong(rounds, cores);
  if (*echo) return run_echo_server() ? 0 : 1;
  return http(options);
}
