// Places with real processes: a JSON object of numbers on standard output.
//
//   paced-bench [--real] COMMAND ...
//   delivered KERNEL_US PER CENT ... SECONDS  what the worst of the instances had of its request, in the second that gave it least
//   patterns SECONDS                          the same for one of 50 % beside one of 25 % that uses graphs, captures, streams, forks
//   deep SECONDS                              the same for two, beside one that launches 300 kernels and does not wait
//   small SECONDS                             kernels a second of eight clients of 12 % side by side, and of the same eight in turns
//   leash SECONDS                             kernels a second of a program alone, with places and a leash, and without
//   eight SEED SECONDS                        the paper's eight instances: per cent of requests that miss their objective, of each kind
//   reserved SEED SECONDS                     one of 34 % of the GPU beside four that take what they get: what it misses, what they have
//
// On the software GPU in charge mode; with --real on this computer's GPU, whose MPS daemon `small` starts for itself. What the
// software GPU's kernels take beyond their model, and what else the computer does, is in all of it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/pacing/paced_gpu.h"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using pacing_tests::Client;
using pacing_tests::PacedGpu;

constexpr Duration kStep = 50ms, kWindow = 1s;
constexpr std::size_t kStepsOfWindow = kWindow / kStep;

// A build folder may have been moved.
const std::string& build_folder() {
  static const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return folder;
}

struct Device {
  pacing_tests::Paths paths{build_folder() + "/bin/paced-program", build_folder() + "/lib/libfairlead-shim.so",
                            build_folder() + "/lib/softgpu"};
  std::map<std::string, std::string> environment;  // of every program
};

Device device;

bool first_number = true;
void print(const std::string& name, double value) {
  std::printf("%s\"%s\": %.4f", first_number ? "{" : ", ", name.c_str(), value);
  first_number = false;
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "paced-bench: %s\n", what);
  std::exit(1);
}

struct Paced {
  std::unique_ptr<Client> client;
  int request = 0;
};

// GPU time of each, a number of steps apart; then the least of any second, as part of the request.
std::vector<double> worst_seconds(const std::vector<Paced>& all, double seconds) {
  std::vector<std::vector<Duration>> used(all.size());
  std::vector<Instant> at;
  const Instant began = monotonic_now();
  for (Instant next = began; to_seconds(next - began) <= seconds; next += kStep) {
    std::this_thread::sleep_for(next - monotonic_now());
    at.push_back(monotonic_now());
    for (std::size_t i = 0; i < all.size(); ++i) used[i].push_back(all[i].client->gpu_time());
  }
  std::vector<double> worst;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double least = 1e9;
    for (std::size_t end = kStepsOfWindow; end < at.size(); ++end) {
      const std::size_t begin = end - kStepsOfWindow;
      const double part = to_seconds(used[i][end] - used[i][begin]) / to_seconds(at[end] - at[begin]);
      least = std::min(least, part / (all[i].request / 100.0));
    }
    worst.push_back(least);
  }
  return worst;
}

void settle() {
  std::this_thread::sleep_for(1500ms);
}

void report(const std::vector<double>& worst, const PaceSnapshot& end) {
  print("worst", *std::min_element(worst.begin(), worst.end()));
  for (std::size_t i = 0; i < worst.size(); ++i) print("worst_" + std::to_string(i), worst[i]);
  print("frame_ms", to_ms(end.frame));
  print("late", static_cast<double>(end.late));
  print("is_realtime", end.is_realtime ? 1 : 0);
  std::uint64_t revoked = 0;
  for (const DeliveredService& one : end.instances) revoked += one.revoked;
  print("revoked", static_cast<double>(revoked));
}

struct Member {
  int request;
  std::vector<std::string> words;
  std::size_t processes = 1;
};

struct Delivered {
  std::vector<double> worst;
  std::vector<double> kernels;  // of each, until the end
  PaceSnapshot end;
};

Delivered deliver(const std::vector<Member>& set, double seconds) {
  PacedGpu gpu(device.paths, device.environment);
  PaceDriver driver{PaceDriverOptions{}};
  std::vector<Paced> all;
  for (const auto& [request, words, processes] : set) {
    all.push_back({gpu.start(words, processes), request});
    must(all.back().client != nullptr, "a program has not registered");
    const Status paced =
        PacedGpu::pace(driver, InstanceId(all.size()), {.request_percent = request}, *all.back().client);
    must(bool(paced), "an instance was refused");
  }
  settle();
  Delivered delivered{.worst = worst_seconds(all, seconds), .kernels = {}, .end = driver.snapshot()};
  for (const Paced& one : all) delivered.kernels.push_back(static_cast<double>(one.client->kernels()));
  return delivered;
}

void run_set(const std::vector<Member>& set, double seconds) {
  const Delivered delivered = deliver(set, seconds);
  report(delivered.worst, delivered.end);
}

void patterns(double seconds) {
  const std::vector<Member> all = {{25, {"100", "deep", "300"}},
                                   {25, {"100", "graph", "20"}},
                                   {25, {"100", "streams", "8"}},
                                   {25, {"100", "capture", "5"}},
                                   {25, {"100", "fork"}, 2}};
  for (const Member& one : all) {
    const Delivered delivered = deliver({{50, {"300", "sync"}}, one}, seconds);
    print("beside_" + one.words[1], delivered.worst[0]);
    print(one.words[1] + "_kernels", delivered.kernels[1]);
  }
}

double kernels_per_second(const std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  const auto sum = [&] {
    std::uint64_t kernels = 0;
    for (const auto& client : clients) kernels += client->kernels();
    return kernels;
  };
  const std::uint64_t before = sum();
  const Instant began = monotonic_now();
  std::this_thread::sleep_for(from_seconds(seconds));
  return static_cast<double>(sum() - before) / to_seconds(monotonic_now() - began);
}

void run(const std::string& command, const char* what) {
  must(std::system(command.c_str()) == 0, what);  // NOLINT(concurrency-mt-unsafe): one thread
}

bool is_real() {
  return device.paths.softgpu_libraries.empty();
}

// For as long as it lives.
class Mps {
 public:
  explicit Mps(const PacedGpu& gpu) {
    if (!is_real()) {  // the folder is made with what follows, and goes with `gpu`
      run("SOFTGPU_HOME=" + gpu.machine() + " SOFTGPU_MODE=charge SOFTGPU_MEMORY_SCALE=64 " + build_folder() +
              "/bin/softgpu mps start >/dev/null",
          "softgpu mps start failed");
      return;
    }
    folder_ = gpu.machine() + "-mps";
    std::filesystem::create_directory(folder_);
    daemon_ = "CUDA_MPS_PIPE_DIRECTORY=" + folder_ + " CUDA_MPS_LOG_DIRECTORY=" + folder_ + " nvidia-cuda-mps-control";
    run(daemon_ + " -d", "the MPS daemon did not start");
  }
  ~Mps() {
    if (!daemon_.empty()) run("echo quit | " + daemon_ + " >/dev/null", "the MPS daemon did not end");
  }
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  std::map<std::string, std::string> environment() const {
    if (daemon_.empty()) return {};
    return {{"CUDA_MPS_PIPE_DIRECTORY", folder_}};
  }

 private:
  std::string folder_, daemon_;
};

constexpr int kClients = 8, kWidth = 12;
const std::vector<std::string> kSmallKernel = {"300", "sync"};
const std::map<std::string, std::string> kFewBlocks = {{"PACED_BLOCKS", "9"}};

double side_by_side(double seconds) {
  PacedGpu gpu(device.paths, device.environment);
  const Mps mps(gpu);
  PaceDriver driver{PaceDriverOptions{}};
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint64_t i = 1; i <= kClients; ++i) {
    auto environment = mps.environment();
    environment.insert(kFewBlocks.begin(), kFewBlocks.end());
    environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(kWidth);
    clients.push_back(gpu.start(kSmallKernel, 1, environment));
    must(clients.back() != nullptr, "a program has not registered");
    must(bool(PacedGpu::pace(driver, InstanceId(i), {.width_percent = kWidth, .request_percent = 90}, *clients.back())),
         "an instance was refused");
  }
  settle();
  return kernels_per_second(clients, seconds);
}

double in_turns(double seconds) {
  PacedGpu gpu(device.paths, device.environment);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(gpu.start(kSmallKernel, 1, kFewBlocks));
    must(clients.back() != nullptr, "a program has not registered");
  }
  settle();
  return kernels_per_second(clients, seconds);
}

void small(double seconds) {
  print("in_turns", in_turns(seconds));
  print("side_by_side", side_by_side(seconds));
}

// Instances side by side under MPS, each of a width.
struct Guest {
  std::string name;
  PacedShare share;
  std::vector<std::string> words;
};

class SideBySide {
 public:
  explicit SideBySide(const std::vector<Guest>& guests) {
    for (const Guest& guest : guests) {
      const int width = guest.share.width_percent;
      auto environment = mps_.environment();
      environment["PACED_BLOCKS"] = std::to_string(std::max(1, width * kSms / 100));
      environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(width);
      clients_.push_back(gpu_.start(guest.words, 1, environment));
      must(clients_.back() != nullptr, "a program has not registered");
      must(bool(PacedGpu::pace(driver_, InstanceId(clients_.size()), guest.share, *clients_.back())),
           "an instance was refused");
    }
    settle();
  }
  const Client& client(std::size_t i) const { return *clients_[i]; }
  // For how long it has waited for places.
  Duration waited(std::size_t i) const {
    for (const DeliveredService& one : driver_.delivered()) {
      if (one.instance == InstanceId(i + 1)) return one.waits.total();
    }
    return Duration(0);
  }

 private:
  static constexpr int kSms = 80;  // of the profile v100-16
  PacedGpu gpu_{device.paths, device.environment};
  const Mps mps_{gpu_};
  PaceDriver driver_{PaceDriverOptions{}};
  std::vector<std::unique_ptr<Client>> clients_;
};

// Requests of `takes_ms` at the instance's width, in kernels of a millisecond, at 70 % of what it is promised.
Guest serving(const std::string& name, int width, int request, int takes_ms, int objective_ms, std::uint64_t seed) {
  const double rate = 0.7 * request / 100 / (takes_ms / 1000.0);
  return {name,
          {.width_percent = width, .request_percent = request},
          {"1000", "requests", std::to_string(takes_ms), std::to_string(rate), std::to_string(objective_ms),
           std::to_string(seed)}};
}

// Per cent of the requests of that name that were late, of those that came in the time, and what a request's time went by: behind others
// of its instance, waiting for a place, on the device, and else (its program, its leash, the computer).
class Misses {
 public:
  Misses(const std::vector<Guest>& guests, const SideBySide& device) : guests_(guests), device_(device) {
    before_ = count();
  }
  void report() const {
    for (const auto& [name, now] : count()) {
      const Requests& before = before_.at(name);
      const double requests = std::max(1.0, now.answered - before.answered);
      const auto ms_of = [&](Duration Requests::*time) { return to_ms(now.*time - before.*time) / requests; };
      print(name + "_requests", now.answered - before.answered);
      print(name + "_missed_percent", 100 * (now.missed - before.missed) / requests);
      print(name + "_queue_ms", ms_of(&Requests::queued));
      print(name + "_place_ms", ms_of(&Requests::waited));
      print(name + "_device_ms", ms_of(&Requests::used));
      print(name + "_else_ms", ms_of(&Requests::served) - ms_of(&Requests::waited) - ms_of(&Requests::used));
    }
  }

 private:
  struct Requests {
    double answered = 0, missed = 0;
    Duration queued{0}, served{0}, waited{0}, used{0};
  };
  std::map<std::string, Requests> count() const {
    std::map<std::string, Requests> all;
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      if (guests_[i].words[1] != "requests") continue;
      const Client& client = device_.client(i);
      Requests& of_name = all[guests_[i].name];
      of_name.answered += static_cast<double>(client.answered());
      of_name.missed += static_cast<double>(client.missed());
      of_name.queued += client.queued();
      of_name.served += client.served();
      of_name.waited += device_.waited(i);
      of_name.used += client.gpu_time();
    }
    return all;
  }
  const std::vector<Guest>& guests_;
  const SideBySide& device_;
  std::map<std::string, Requests> before_;
};

void eight(std::uint64_t seed, double seconds) {
  std::vector<Guest> guests;
  for (std::uint64_t i = 0; i < 4; ++i) guests.push_back(serving("resnet", 12, 40, 14, 69, seed * 8 + i));
  for (std::uint64_t i = 4; i < 6; ++i) guests.push_back(serving("rnnt", 24, 40, 80, 500, seed * 8 + i));
  for (std::uint64_t i = 6; i < 8; ++i) guests.push_back(serving("bert", 50, 60, 35, 400, seed * 8 + i));
  const SideBySide all(guests);
  const Misses misses(guests, all);
  std::this_thread::sleep_for(from_seconds(seconds));
  misses.report();
}

// The gap: the most that one of the equally wide had more than another in a second, of the whole device's second.
void reserved(std::uint64_t seed, double seconds) {
  std::vector<Guest> guests = {serving("reserved", 50, 68, 20, 100, seed)};
  for (const int width : {25, 50, 50, 50})
    guests.push_back({"best effort", {.width_percent = width}, {"1000", "sync"}});
  const SideBySide all(guests);
  const Misses misses(guests, all);
  std::vector<std::vector<double>> used;  // SM seconds of the whole device, second by second
  const Instant began = monotonic_now();
  for (Instant next = began; to_seconds(next - began) <= seconds; next += kWindow) {
    std::this_thread::sleep_for(next - monotonic_now());
    used.emplace_back();
    for (std::size_t i = 1; i < guests.size(); ++i) {
      used.back().push_back(to_seconds(all.client(i).gpu_time()) * guests[i].share.width_percent / 100);
    }
  }
  misses.report();
  double share = 0, gap = 0;
  for (std::size_t i = 0; i < used.front().size(); ++i) share += used.back()[i] - used.front()[i];
  for (std::size_t second = 1; second < used.size(); ++second) {
    double least = 1, most = 0;
    for (std::size_t i = 1; i < used[second].size(); ++i) {  // those of 50
      const double had = used[second][i] - used[second - 1][i];
      least = std::min(least, had), most = std::max(most, had);
    }
    gap = std::max(gap, most - least);
  }
  print("best_effort_share", share / static_cast<double>(used.size() - 1));
  print("gap_percent", 100 * gap);
}

// In turn, so that what else the computer does hits both.
void leash(double seconds) {
  for (const int us : {10, 100, 300}) {
    PacedGpu gpu(device.paths, device.environment);
    std::vector<std::unique_ptr<Client>> clients;
    clients.push_back(gpu.start({std::to_string(us), "deep", "100"}));
    must(clients.back() != nullptr, "the program has not registered");
    std::vector<double> without, with;
    for (int round = 0; round < 5; ++round) {
      std::this_thread::sleep_for(300ms);
      without.push_back(kernels_per_second(clients, seconds));
      PaceDriver driver{PaceDriverOptions{}};
      must(bool(PacedGpu::pace(driver, InstanceId(1), {}, *clients.back())), "the instance was refused");
      must(bool(driver.set_share(InstanceId(2), {})), "the other was refused");  // who might want the device
      std::this_thread::sleep_for(300ms);
      with.push_back(kernels_per_second(clients, seconds));
    }
    const auto median = [](std::vector<double> values) {
      std::sort(values.begin(), values.end());
      return values[values.size() / 2];
    };
    print("without_" + std::to_string(us), median(without));
    print("with_" + std::to_string(us), median(with));
  }
}

// Instead of the software GPU: this computer's driver, as the caller would find it.
void use_real_device() {
  device.paths.softgpu_libraries.clear();
  for (const char* const name : {"LD_LIBRARY_PATH", "PATH", "CUDA_VISIBLE_DEVICES"}) {
    if (const char* const value = std::getenv(name)) device.environment[name] = value;
  }
  std::FILE* const answer = ::popen((device.paths.program + " calibrate").c_str(), "r");
  double rounds = 0;
  must(answer != nullptr && std::fscanf(answer, "%lf", &rounds) == 1 && ::pclose(answer) == 0 && rounds > 0,
       "paced-program calibrate failed");
  device.environment["PACED_ROUNDS_PER_US"] = std::to_string(rounds);
}

int usage() {
  std::fprintf(
      stderr,
      "usage: paced-bench [--real] delivered KERNEL_US PER_CENT... SECONDS | deep SECONDS | patterns SECONDS |\n"
      "                            small SECONDS | leash SECONDS | eight SEED SECONDS | reserved SEED SECONDS\n");
  return 2;
}

int run_command(const std::vector<std::string>& words, double seconds) {
  const std::string& what = words[0];
  if (what == "delivered" && words.size() >= 4) {
    std::vector<Member> set;
    for (std::size_t i = 2; i + 1 < words.size(); ++i) set.push_back({std::atoi(words[i].c_str()), {words[1], "sync"}});
    run_set(set, seconds);
  } else if (what == "deep" && words.size() == 2) {
    run_set({{50, {"300", "sync"}}, {25, {"100", "deep", "300"}}}, seconds);
  } else if (what == "patterns" && words.size() == 2) {
    patterns(seconds);
  } else if (what == "small" && words.size() == 2) {
    small(seconds);
  } else if (what == "leash" && words.size() == 2) {
    leash(seconds);
  } else if (what == "eight" && words.size() == 3) {
    eight(static_cast<std::uint64_t>(std::atoll(words[1].c_str())), seconds);
  } else if (what == "reserved" && words.size() == 3) {
    reserved(static_cast<std::uint64_t>(std::atoll(words[1].c_str())), seconds);
  } else {
    return usage();
  }
  std::printf("}\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  const bool real = !words.empty() && words[0] == "--real";
  if (real) words.erase(words.begin());
  const double seconds = words.size() > 1 ? std::atof(words.back().c_str()) : 0;
  if (seconds <= 0) return usage();
  if (real) use_real_device();
  return run_command(words, seconds);
}
