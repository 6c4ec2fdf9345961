// What the shim costs, beside the same calls without it, in one run: a JSON object of numbers on standard output.
//
//   shim-bench calls        (the shim preloaded) ns per call through the hook and past it
//   shim-bench start SHIM   us from exec to the end of the first call, with the shim, without it, and with a node
//   shim-bench gate SHIM    us from opening the gate in one process to a launch going on in another, and from sending a token
//                           over TCP to a process that waits for it
//   shim-bench leash SHIM   ns per launch of a process that needs places, with and without a leash
//
// The driver is null_driver.cc, which does nothing.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"
#include "shim/clock.h"
#include "shim/futex.h"
#include "shim/testing/node.h"

extern "C" {
decltype(cuLaunchKernel) bare_cuLaunchKernel;
decltype(cuMemGetInfo_v2) bare_cuMemGetInfo_v2;
decltype(cuMemAlloc_v2) bare_cuMemAlloc_v2;
decltype(cuMemFree_v2) bare_cuMemFree_v2;
decltype(cuCtxSynchronize) bare_cuCtxSynchronize;
}

namespace {

using fairlead::shim::now_ns;
using fairlead::shim::testing::Connection;
using fairlead::shim::testing::Node;

bool first_number = true;

void print(const std::string& name, double value) {
  std::printf("%s\"%s\": %.3f", first_number ? "{" : ", ", name.c_str(), value);
  first_number = false;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double percentile_99(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() * 99 / 100];
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

// ---- calls ----

constexpr int kRounds = 21;
constexpr int kCalls = 200000;

void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "shim-bench: a call returned %d\n", result);
  std::exit(1);
}

template <typename Call>
double ns_per_call(const Call& call, int calls) {
  const std::uint64_t start = now_ns();
  for (int i = 0; i < calls; ++i) check(call());
  return static_cast<double>(now_ns() - start) / calls;
}

// Rounds of one and the other in turn, so that what else the machine does hits both.
template <typename Hooked, typename Bare>
void compare(const char* name, const Hooked& hooked, const Bare& bare, int calls = kCalls) {
  std::vector<double> with, without, added;
  for (int round = 0; round < kRounds; ++round) {
    with.push_back(ns_per_call(hooked, calls));
    without.push_back(ns_per_call(bare, calls));
    added.push_back(with.back() - without.back());
  }
  print(std::string(name) + "_bare", median(without));
  print(std::string(name) + "_shim", median(with));
  print(std::string(name) + "_added", median(added));
}

int some_function;

template <typename Launch>
auto launches(Launch* launch) {
  return [launch] {
    void* parameters[1] = {};
    return launch(reinterpret_cast<CUfunction>(&some_function), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
  };
}

template <typename Allocate, typename Free>
auto allocations(Allocate* allocate, Free* release) {
  return [=] {
    CUdeviceptr address = 0;
    check(allocate(&address, 4096));
    return release(address);
  };
}

template <typename Launch, typename Wait>
auto launches_and_waits(Launch* launch, Wait* wait) {
  return [=] {
    check(launches(launch)());
    return wait();
  };
}

template <typename Query>
auto queries(Query* query) {
  return [query] {
    std::size_t free = 0;
    std::size_t total = 0;
    return query(&free, &total);
  };
}

void compare_beside_another_thread() {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load(std::memory_order_relaxed)) launches(cuLaunchKernel)();
  });
  compare("launch_2_threads", launches(cuLaunchKernel), launches(bare_cuLaunchKernel));
  stop.store(true);
  other.join();
}

void compare_allocations_with(int live) {
  std::vector<CUdeviceptr> kept(static_cast<std::size_t>(live));
  for (CUdeviceptr& address : kept) check(cuMemAlloc_v2(&address, 4096));
  compare(("allocate_and_free_" + std::to_string(live)).c_str(), allocations(cuMemAlloc_v2, cuMemFree_v2),
          allocations(bare_cuMemAlloc_v2, bare_cuMemFree_v2), kCalls / 4);
  for (const CUdeviceptr address : kept) check(cuMemFree_v2(address));
}

void calls() {
  check(cuInit(0));
  compare("launch", launches(cuLaunchKernel), launches(bare_cuLaunchKernel));
  compare_beside_another_thread();
  compare("launch_and_wait", launches_and_waits(cuLaunchKernel, cuCtxSynchronize),
          launches_and_waits(bare_cuLaunchKernel, bare_cuCtxSynchronize), kCalls / 4);
  compare("memory_query", queries(cuMemGetInfo_v2), queries(bare_cuMemGetInfo_v2));
  for (const int live : {0, 1000, 100000}) compare_allocations_with(live);
}

// ---- start ----

constexpr int kStarts = 41;
constexpr int kAtOnce = 8;
constexpr std::size_t kMostConnections = 64;  // kept open: their processes have ended by then

struct Started {
  const char* shim = nullptr;    // preloaded
  const char* socket = nullptr;  // of a node
};

pid_t start_child(const Started& how, const std::vector<std::string>& words) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (how.shim != nullptr) {
    ::setenv("LD_PRELOAD", how.shim, 1);
  } else {
    ::unsetenv("LD_PRELOAD");
  }
  if (how.socket != nullptr) ::setenv("FAIRLEAD_SHIM_SOCKET", how.socket, 1);
  std::vector<char*> arguments = {const_cast<char*>("shim-bench")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::_Exit(127);
}

void wait_child(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "shim-bench: a program ended with status %d\n", status);
    std::exit(1);
  }
}

double us_of_starts(const Started& how, int at_once) {
  std::vector<pid_t> children;
  const std::uint64_t start = now_ns();
  for (int i = 0; i < at_once; ++i) children.push_back(start_child(how, {"first-call"}));
  for (const pid_t child : children) wait_child(child);
  return static_cast<double>(now_ns() - start) / 1e3;
}

void start(const char* shim) {
  const std::string socket = "/tmp/shim-bench-" + std::to_string(::getpid());
  Node node(socket);
  std::atomic<bool> stop{false};
  std::thread server([&] {
    std::vector<std::unique_ptr<Connection>> connections;
    while (!stop.load()) {
      connections.push_back(node.accept(fairlead::wire::MemoryBackend::kNone, 50));
      if (connections.size() > kMostConnections) connections.erase(connections.begin());
    }
  });
  for (const int at_once : {1, kAtOnce}) {
    std::vector<double> bare, alone, joined;
    for (int i = 0; i < kStarts; ++i) {
      bare.push_back(us_of_starts({}, at_once));
      alone.push_back(us_of_starts({.shim = shim}, at_once));
      joined.push_back(us_of_starts({.shim = shim, .socket = socket.c_str()}, at_once));
    }
    const std::string suffix = "_of_" + std::to_string(at_once);
    // The least of many: what else the machine does can only add.
    print("start_bare" + suffix, least(bare));
    print("start_shim" + suffix, least(alone));
    print("start_node" + suffix, least(joined));
  }
  stop.store(true);
  server.join();
}

// ---- gate ----

constexpr int kHandOffs = 1000;

// Shared with the child: when it first went on after it had stood still; 0: not since the parent looked.
struct Stamps {
  std::atomic<std::uint64_t> resumed{0};
  std::atomic<double> ns_per_launch{0};  // of launch-and-measure; 0: not measured since the parent looked
};
constexpr std::uint64_t kStoodStillNs = 300000;
constexpr unsigned kPauseUs = 200;

Stamps* map_stamps(int descriptor) {
  void* const memory = ::mmap(nullptr, sizeof(Stamps), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory != MAP_FAILED ? static_cast<Stamps*>(memory) : nullptr;
}

void launch_and_stamp(int descriptor) {
  Stamps* const stamps = map_stamps(descriptor);
  check(cuInit(0));
  while (true) {
    ::usleep(kPauseUs);  // a program that computed all the time would have to wait for the processor, too
    const std::uint64_t before = now_ns();
    check(launches(cuLaunchKernel)());
    const std::uint64_t now = now_ns();
    std::uint64_t none = 0;
    if (now - before > kStoodStillNs) stamps->resumed.compare_exchange_strong(none, now);
  }
}

double us_of_hand_off(Connection& child, Stamps& stamps) {
  fairlead::wire::ShimPage& page = child.page();
  const std::uint64_t waits = page.gate_waits.load();
  page.gate.fetch_or(fairlead::wire::kGateNode);
  while (page.gate_waits.load() == waits) ::usleep(100);
  ::usleep(1000);  // until it sleeps, and has stood still
  stamps.resumed.store(0);
  const std::uint64_t opened = now_ns();
  page.gate.fetch_and(~fairlead::wire::kGateNode);
  fairlead::shim::futex_wake_all(page.gate);
  while (stamps.resumed.load() == 0) ::usleep(100);
  return static_cast<double>(stamps.resumed.load() - opened) / 1e3;
}

void tokens(int descriptor, Stamps& stamps);

void gate(const char* shim) {
  const int descriptor = ::memfd_create("stamps", 0);
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Stamps)) != 0) std::exit(1);
  Stamps* const stamps = map_stamps(descriptor);
  const std::string socket = "/tmp/shim-bench-" + std::to_string(::getpid());
  Node node(socket);
  const pid_t pid =
      start_child({.shim = shim, .socket = socket.c_str()}, {"launch-and-stamp", std::to_string(descriptor)});
  const auto child = node.accept();
  if (child == nullptr) std::exit(1);
  std::vector<double> times;
  for (int i = 0; i < kHandOffs; ++i) times.push_back(us_of_hand_off(*child, *stamps));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  print("gate_hand_off", median(times));
  print("gate_hand_off_p99", percentile_99(times));
  tokens(descriptor, *stamps);
}

// A token server as GPU sharing has them: a client sends its wish over a TCP connection and waits for the answer.
void wait_for_tokens(int port, int descriptor) {
  Stamps* const stamps = map_stamps(descriptor);
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::exit(1);
  const int now_delay = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &now_delay, sizeof now_delay);
  char token = 0;
  while (::send(connection, "a", 1, MSG_NOSIGNAL) == 1 && ::recv(connection, &token, 1, 0) == 1) {
    stamps->resumed.store(now_ns());
  }
}

double us_of_token(int connection, Stamps& stamps) {
  char wish = 0;
  if (::recv(connection, &wish, 1, 0) != 1) std::exit(1);
  ::usleep(1000);  // until it sleeps
  stamps.resumed.store(0);
  const std::uint64_t sent = now_ns();
  if (::send(connection, "t", 1, MSG_NOSIGNAL) != 1) std::exit(1);
  while (stamps.resumed.load() == 0) ::usleep(100);
  return static_cast<double>(stamps.resumed.load() - sent) / 1e3;
}

void tokens(int descriptor, Stamps& stamps) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 1) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::exit(1);
  }
  const pid_t pid =
      start_child({}, {"wait-for-tokens", std::to_string(ntohs(address.sin_port)), std::to_string(descriptor)});
  const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const int now_delay = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &now_delay, sizeof now_delay);
  std::vector<double> times;
  for (int i = 0; i < kHandOffs; ++i) times.push_back(us_of_token(connection, stamps));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(connection);
  ::close(listener);
  print("tcp_hand_off", median(times));
  print("tcp_hand_off_p99", percentile_99(times));
}

// ---- leash ----

constexpr int kLeashRounds = 41;

void launch_and_measure(int descriptor) {
  Stamps* const stamps = map_stamps(descriptor);
  check(cuInit(0));
  while (true) {
    const double ns = ns_per_call(launches(cuLaunchKernel), kCalls / 4);
    double none = 0;
    stamps->ns_per_launch.compare_exchange_strong(none, ns);
  }
}

// A place for whoever has given its own back, because this driver's work ends at once.
void grant_to_who_asks(fairlead::wire::ShimPage& page) {
  if (page.asking.load() == 0) return;
  page.grant.fetch_add(1);
  page.gate.fetch_and(~fairlead::wire::kGateNode);
  fairlead::shim::futex_wake_all(page.gate);
}

double ns_under(Connection& child, std::uint32_t pace, Stamps& stamps) {
  child.page().pace.store(pace);
  for (int i = 0; i < 2; ++i) {  // the first is of both
    stamps.ns_per_launch.store(0);
    while (stamps.ns_per_launch.load() == 0) {
      grant_to_who_asks(child.page());
      ::usleep(1000);
    }
  }
  return stamps.ns_per_launch.load();
}

void leash(const char* shim) {
  const int descriptor = ::memfd_create("stamps", 0);
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Stamps)) != 0) std::exit(1);
  Stamps* const stamps = map_stamps(descriptor);
  const std::string socket = "/tmp/shim-bench-" + std::to_string(::getpid());
  Node node(socket);
  const pid_t pid =
      start_child({.shim = shim, .socket = socket.c_str()}, {"launch-and-measure", std::to_string(descriptor)});
  const auto child = node.accept();
  if (child == nullptr) std::exit(1);
  child->page().open_until_ns.store(UINT64_MAX / 2);
  std::vector<double> without, with, added;
  for (int i = 0; i < kLeashRounds; ++i) {
    without.push_back(ns_under(*child, fairlead::wire::kPacePlaces, *stamps));
    with.push_back(ns_under(*child, fairlead::wire::kPacePlaces | fairlead::wire::kPaceLeash, *stamps));
    added.push_back(with.back() - without.back());
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  print("launch_places", median(without));
  print("launch_leash", median(with));
  print("launch_leash_added", median(added));
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "first-call") return cuInit(0) == CUDA_SUCCESS ? 0 : 1;
  if (what == "launch-and-stamp" && count == 3) launch_and_stamp(std::atoi(words[2]));
  if (what == "wait-for-tokens" && count == 4) return wait_for_tokens(std::atoi(words[2]), std::atoi(words[3])), 0;
  if (what == "launch-and-measure" && count == 3) launch_and_measure(std::atoi(words[2]));
  if (what == "calls") {
    calls();
  } else if (what == "start" && count == 3) {
    start(words[2]);
  } else if (what == "gate" && count == 3) {
    gate(words[2]);
  } else if (what == "leash" && count == 3) {
    leash(words[2]);
  } else {
    std::fprintf(stderr, "usage: shim-bench calls | start SHIM | gate SHIM | leash SHIM\n");
    return 2;
  }
  std::printf("}\n");
}
