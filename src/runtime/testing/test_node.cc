// A node for tests that are about its death: starts instances of the given code and prints "ready" when each waits.
//   runtime_test_node <state dir> <code dir> <handler> <count>
//   runtime_test_node spawner ...    as such a node starts it
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "runtime/instance_host.h"
#include "runtime/spawner.h"

int main(int argc, char** argv) {
  using namespace fairlead;
  if (argc > 1 && std::string(argv[1]) == kSpawnerCommand) {
    init_log("off");
    run_launched_spawner(spawner_options_of({argv + 2, argv + argc}).value());
  }
  if (argc != 5) return 2;
  init_log("error");
  const int count = std::atoi(argv[4]);
  boost::asio::io_context io;
  int waiting = 0;
  InstanceEvents events;
  events.next = [&](InstanceId) {
    if (++waiting == count) std::puts("ready"), std::fflush(stdout);
  };
  events.answered = [](InstanceId, Answer) {};
  events.gone = [](InstanceId, ExitInfo info) { std::fprintf(stderr, "gone: %s\n", info.reason.c_str()); };
  const std::string state = argv[1];
  auto host = InstanceHost::create(io, {.state_dir = state, .log_dir = state + "/logs"}, std::move(events));
  if (!host) {
    std::fprintf(stderr, "%s\n", host.error().message.c_str());
    return 1;
  }
  for (int i = 1; i <= count; ++i) {
    InstanceSpec spec;
    spec.instance = InstanceId(static_cast<std::uint64_t>(i));
    spec.function = "f";
    spec.handler = argv[3];
    spec.code_path = argv[2];
    (*host)->start(std::move(spec));
  }
  io.run();
}
