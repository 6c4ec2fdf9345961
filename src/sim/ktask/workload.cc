#include "sim/ktask/setup.h"

#include <fmt/ranges.h>

namespace fairlead::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How much of a V100 one request's kernels use. The source says 1.6 to 4.3 times for sixteen clients, not which is which:
// large dense kernels get the lower end, small ones the upper, in between the geometric mean (docs/how-to/simulator-ktask.md).
constexpr double kLarge = 1 / 1.6, kMixed = 1 / 2.6, kSmall = 1 / 4.3;

// What the paper's authors measured: with more clients than GPUs, four GPUs of eTasks answer 1.5 requests a second, 0.5 of
// BERT, whatever their kernels take.
constexpr Duration kColdStart = milliseconds(2600), kColdStartOfBert = milliseconds(7800);

constexpr Bytes mb(std::int64_t n) {
  return Bytes(n * 1'000'000);
}

}  // namespace

const std::vector<KtaskWorkload>& ktask_workloads() {
  static const std::vector<KtaskWorkload> kAll = {
      {"micro", mib(12), mib(8), microseconds(600), Duration(0), kLarge, kColdStart},
      {"resnet50", mb(129), mb(6), milliseconds(4), milliseconds(10), kMixed, kColdStart},
      {"bert", mb(1300), mb(6), milliseconds(92), milliseconds(132), kLarge, kColdStartOfBert},
      {"cgemm", mb(2000), mb(8), milliseconds(39), Duration(0), kLarge, kColdStart},
      {"jacobi", Bytes(0), mb(1), milliseconds(52), Duration(0), kSmall, kColdStart},
  };
  return kAll;
}

Result<std::vector<KtaskWorkload>> ktask_clients(std::string_view workloads, std::size_t replicas) {
  std::vector<KtaskWorkload> clients;
  for (std::size_t begin = 0; begin <= workloads.size();) {
    const std::size_t end = std::min(workloads.find('+', begin), workloads.size());
    const std::string_view name = workloads.substr(begin, end - begin);
    const auto& all = ktask_workloads();
    const auto found = std::find_if(all.begin(), all.end(), [&](const KtaskWorkload& one) { return one.name == name; });
    if (found == all.end()) {
      std::vector<std::string_view> known;
      for (const KtaskWorkload& one : all) known.push_back(one.name);
      return fail(Errc::kInvalidArgument, "workload \"{}\" is unknown; known are {}, and several joined by +", name,
                  fmt::join(known, ", "));
    }
    clients.insert(clients.end(), replicas, *found);
    begin = end + 1;
  }
  return clients;
}

}  // namespace fairlead::sim
