#include "sim/shares/paper_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "sim/shares/function_shapes.h"

namespace fairlead::sim {
namespace {

constexpr int kWidths[] = {6, 12, 24, 50, 60, 80, 100};
constexpr int kQuotas[] = {20, 40, 60, 80, 100};
constexpr int kUsers = 16;
constexpr int kMostPods = 8;
constexpr const char* kTurns = "one";  // time sharing

const FunctionShape& shape_of(std::string_view name) {
  const auto& shapes = function_shapes();
  const auto found =
      std::find_if(shapes.begin(), shapes.end(), [&](const FunctionShape& one) { return one.name == name; });
  FL_CHECK(found != shapes.end(), "{}", name);
  return *found;
}

ShareClient instance_of(std::string_view name, const PacedShare& share, Duration most_kernel) {
  const ThroughputModel& model = shape_of(name).model;
  const double width = share.width_percent;
  return {.name = std::string(name),
          .share = share,
          .least_kernel = most_kernel / 10,
          .most_kernel = most_kernel,
          .intensity = 0.5,
          .fills_percent = model.saturation_percent,
          .work = Work::kClosed,
          .host = from_seconds(model.fixed_ms / 1000),
          .request = from_seconds((model.execution_ms(width) - model.fixed_ms) / 1000)};
}

double per_s(const ShareClientResult& client, const SharesOptions& options) {
  return static_cast<double>(client.answered) / to_seconds(options.length);
}

SharesRow row_of(const char* experiment, std::string scheduler, std::string workload, std::uint64_t seed) {
  return {.experiment = experiment,
          .scheduler = std::move(scheduler),
          .workload = std::move(workload),
          .numbers = {{"seed", static_cast<double>(seed)}}};
}

// Schedulers that place instances side by side.
std::vector<std::string> side_by_side(const SharesOptions& options) {
  std::vector<std::string> names;
  std::copy_if(options.schedulers.begin(), options.schedulers.end(), std::back_inserter(names),
               [](const std::string& name) { return name != kTurns; });
  return names;
}

void add(SharesRow& row, std::string name, double value) {
  row.numbers.emplace_back(std::move(name), value);
}

void add_hash(SharesRow& row, const SharesResult& result) {
  row.state_hash = row.state_hash * 31 + result.state_hash;
}

}  // namespace

std::vector<SharesRow> profile_figure(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  for (const std::string& scheduler : side_by_side(options)) {
    for (const char* name : {"resnet", "rnnt", "gnmt", "bert"}) {
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        SharesRow row = row_of("profile", scheduler, name, seed);
        for (const int width : kWidths) {
          for (const int quota : kQuotas) {
            const PacedShare share{.width_percent = width, .request_percent = quota, .limit_percent = quota};
            const SharesResult result =
                run_shares(options, scheduler, {instance_of(name, share, options.most_kernel)}, seed);
            add(row, fmt::format("per_s_{}_{}", width, quota), per_s(result.clients.front(), options));
            add_hash(row, result);
          }
        }
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

std::vector<SharesRow> disturbed_figure(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  for (const std::string& scheduler : options.schedulers) {
    for (const int width : {kWholeDevice, 24}) {
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        std::vector<ShareClient> both = {
            instance_of("resnet", {.width_percent = width, .request_percent = 50, .limit_percent = 80},
                        options.most_kernel),
            instance_of("rnnt", {.width_percent = width, .request_percent = 50, .limit_percent = 50},
                        options.most_kernel)};
        // Requests always wait, and the host's part of the next is done meanwhile: the quota is what holds the instance back.
        for (ShareClient& one : both) one.host = Duration(0);
        SharesRow row = row_of("disturbed", scheduler, fmt::format("{} %", width), seed);
        const SharesResult alone = run_shares(options, scheduler, {both.front()}, seed);
        const SharesResult beside = run_shares(options, scheduler, both, seed);
        add(row, "resnet_alone_per_s", per_s(alone.clients.front(), options));
        add(row, "resnet_beside_per_s", per_s(beside.clients.front(), options));
        add(row, "rnnt_beside_per_s", per_s(beside.clients.back(), options));
        add_hash(row, alone);
        add_hash(row, beside);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

namespace {

struct Split {
  const char* name;
  int width;
};

void add_pods(SharesRow& row, const SharesOptions& options, const ShareClient& pod, int pods, std::uint64_t seed) {
  std::vector<ShareClient> clients(static_cast<std::size_t>(pods), pod);
  for (int i = 0; i < kUsers; ++i) {
    if (i >= pods) ++clients[static_cast<std::size_t>(i % pods)].users;
  }
  const SharesResult result = run_shares(options, row.scheduler, std::move(clients), seed);
  Histogram latency;
  double answered = 0;
  for (const ShareClientResult& one : result.clients) {
    latency.merge(one.latency);
    answered += per_s(one, options);
  }
  add(row, fmt::format("per_s_{}", pods), answered);
  add(row, fmt::format("p99_ms_{}", pods), to_ms(latency.percentile(0.99)));
  add(row, fmt::format("busy_{}", pods), result.busy);
  add(row, fmt::format("occupancy_{}", pods), result.occupancy);
  add_hash(row, result);
}

}  // namespace

std::vector<SharesRow> pods_figure(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  for (const char* name : {"resnet", "rnnt", "gnmt"}) {
    for (const Split& split : {Split{"racing", kWholeDevice}, Split{"12 %", 12}, Split{"24 %", 24}}) {
      const bool is_racing = split.width == kWholeDevice;
      for (const std::string& scheduler : is_racing ? std::vector<std::string>{kTurns} : side_by_side(options)) {
        for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
          SharesRow row = row_of("pods", scheduler, fmt::format("{}, {}", name, split.name), seed);
          const ShareClient pod = instance_of(name, {.width_percent = split.width}, options.most_kernel);
          for (int pods = 1; pods <= kMostPods; ++pods) add_pods(row, options, pod, pods, seed);
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

namespace {

struct Pod {
  const char* name;
  int width, quota;
};
constexpr Pod kResnet{"resnet", 12, 40}, kRnnt{"rnnt", 24, 40}, kBert{"bert", 50, 60};

// `is_busy`: requests always wait, and the quota is what holds an instance back. Else Poisson at 70 % of what it serves on its rectangle,
// the same rate wherever it stands.
ShareClient packed_pod(const Pod& pod, bool in_turns, bool is_busy, const SharesOptions& options) {
  const PacedShare share{
      .width_percent = in_turns ? kWholeDevice : pod.width, .request_percent = pod.quota, .limit_percent = pod.quota};
  ShareClient client = instance_of(pod.name, share, options.most_kernel);
  if (is_busy) {
    client.host = Duration(0);
    return client;
  }
  client.work = Work::kPoisson;
  client.rate_per_s = 0.7 * shape_of(pod.name).model.rate_per_s(pod.width, pod.quota);
  return client;
}

}  // namespace

std::vector<SharesRow> packed_figure(const SharesOptions& options) {
  // First fit of quotas by descending size, as time sharing packs: 60 + 40 twice, 40 + 40 twice.
  const std::vector<std::vector<Pod>> four = {{kBert, kResnet}, {kBert, kResnet}, {kResnet, kRnnt}, {kResnet, kRnnt}};
  const std::vector<std::vector<Pod>> one = {{kResnet, kResnet, kResnet, kResnet, kRnnt, kRnnt, kBert, kBert}};
  std::vector<SharesRow> rows;
  for (const bool is_busy : {true, false}) {
    for (const std::string& scheduler : options.schedulers) {
      const bool in_turns = scheduler == kTurns;
      const auto& devices = in_turns ? four : one;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        SharesRow row = row_of("packed", scheduler, is_busy ? "always busy" : "Poisson at 0.7", seed);
        double busy = 0, occupancy = 0, answered = 0;
        for (const std::vector<Pod>& pods : devices) {
          std::vector<ShareClient> clients;
          for (const Pod& pod : pods) clients.push_back(packed_pod(pod, in_turns, is_busy, options));
          const SharesResult result = run_shares(options, scheduler, std::move(clients), seed);
          busy += result.busy / static_cast<double>(devices.size());
          occupancy += result.occupancy / static_cast<double>(devices.size());
          for (const ShareClientResult& client : result.clients) answered += per_s(client, options);
          add_hash(row, result);
        }
        add(row, "devices", static_cast<double>(devices.size()));
        add(row, "busy", busy);
        add(row, "occupancy", occupancy);
        add(row, "answered_per_s", answered);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace fairlead::sim
