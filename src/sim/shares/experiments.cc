#include "sim/shares/experiments.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "sim/shares/paper_figures.h"
#include "sim/shares/share_sets.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kBurst = 5;

SharesResult run(const SharesOptions& options, const std::string& scheduler, std::vector<ShareClient> clients,
                 std::uint64_t seed) {
  for (ShareClient& client : clients) {
    client.gap = std::max(client.gap, options.gap);
    if (options.limit_is_request && client.share.request_percent > 0)
      client.share.limit_percent = client.share.request_percent;
    if (options.bursts && client.work == Work::kPoisson) {
      client.work = Work::kBursts;
      client.burst = kBurst;
    }
  }
  return run_shares(options, scheduler, std::move(clients), seed);
}

double missed_percent(const std::vector<ShareClientResult>& results, const std::vector<ShareClient>& clients,
                      std::string_view name) {
  std::uint64_t answered = 0, missed = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (clients[i].name != name) continue;
    answered += results[i].answered;
    missed += results[i].missed;
  }
  return answered == 0 ? 100 : 100 * static_cast<double>(missed) / static_cast<double>(answered);
}

// Numbers of several runs: the mean, or the worst.
class Numbers {
 public:
  void mean(const std::string& name, double value, double runs) { at(name) += value / runs; }
  void least(const std::string& name, double value) {
    double& number = at(name, value);
    number = std::min(number, value);
  }
  void most(const std::string& name, double value) {
    double& number = at(name, value);
    number = std::max(number, value);
  }
  std::vector<std::pair<std::string, double>> list;

 private:
  double& at(const std::string& name, double first = 0) {
    for (auto& [known, value] : list) {
      if (known == name) return value;
    }
    return list.emplace_back(name, first).second;
  }
};

Result<std::vector<SharesRow>> delivered(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  for (const std::string& mix : options.mixes) {
    for (const std::string& scheduler : options.schedulers) {
      Numbers numbers;
      SharesRow row{.experiment = "delivered", .scheduler = scheduler, .workload = mix};
      const auto runs = static_cast<double>(options.sets * options.seeds);
      for (std::uint64_t set = 1; set <= options.sets * options.seeds; ++set) {
        auto clients = random_set(mix, options.reserve_percent, options.most_kernel, set);
        if (!clients) return fail(clients.error());
        const SharesResult result = run(options, scheduler, std::move(*clients), set);
        double worst = 1;
        for (const ShareClientResult& client : result.clients) worst = std::min(worst, client.worst_part);
        numbers.least("worst", worst);
        numbers.mean("mean_of_worst", worst, runs);
        numbers.mean("sets_below_0.97_percent", worst < 0.97 ? 100 : 0, runs);
        numbers.mean("sm_share", result.sm_share, runs);
        numbers.mean("instances", static_cast<double>(result.clients.size()), runs);
        row.state_hash = row.state_hash * 31 + result.state_hash;
      }
      row.numbers = std::move(numbers.list);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Result<std::vector<SharesRow>> objectives(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  const std::vector<ShareClient> clients = papers_eight(0.7, options.most_kernel);
  for (const std::string& scheduler : options.schedulers) {
    Numbers numbers;
    SharesRow row{.experiment = "objectives", .scheduler = scheduler, .workload = "paper's eight"};
    for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
      const SharesResult result = run(options, scheduler, clients, seed);
      for (const char* kind : {"resnet", "rnnt", "bert"}) {
        numbers.mean(fmt::format("{}_missed_percent", kind), missed_percent(result.clients, clients, kind),
                     static_cast<double>(options.seeds));
      }
      numbers.mean("sm_share", result.sm_share, static_cast<double>(options.seeds));
      row.state_hash = row.state_hash * 31 + result.state_hash;
    }
    row.numbers = std::move(numbers.list);
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<SharesRow>> reserved(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  const std::vector<ShareClient> clients = reserved_beside_best_effort(options);
  const auto seeds = static_cast<double>(options.seeds);
  std::vector<std::string> schedulers = options.schedulers;
  schedulers.emplace_back("alone");  // the reserved one, with nobody beside it: what no scheduler can better
  for (const std::string& scheduler : schedulers) {
    const bool is_alone = scheduler == "alone";
    Numbers numbers;
    SharesRow row{.experiment = "reserved", .scheduler = scheduler, .workload = "34 % beside four flows"};
    for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
      const SharesResult result =
          is_alone ? run(options, "pacer", {clients.front()}, seed) : run(options, scheduler, clients, seed);
      numbers.mean("missed_percent", missed_percent(result.clients, clients, "reserved"), seeds);
      numbers.mean("p99_ms", to_ms(result.clients.front().latency.percentile(0.99)), seeds);
      numbers.mean("best_effort_share", result.best_effort_share, seeds);
      numbers.most("gap_percent", 100 * result.best_effort_gap);
      numbers.mean("sm_share", result.sm_share, seeds);
      row.state_hash = row.state_hash * 31 + result.state_hash;
    }
    row.numbers = std::move(numbers.list);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A kernel that fills 24 % of the SMs takes half as long on the whole device as on 12 % of it; the host needs 4 us between two.
std::vector<ShareClient> small_clients(bool side_by_side) {
  const int slower = side_by_side ? 2 : 1;
  return std::vector<ShareClient>(8, {.name = "small",
                                      .share = {.width_percent = side_by_side ? 12 : kWholeDevice},
                                      .least_kernel = slower * 10us,
                                      .most_kernel = slower * 50us,
                                      .gap = 4us,
                                      .intensity = side_by_side ? 0.5 : 0.12,
                                      .work = Work::kClosed,
                                      .request = slower * 14ms});
}

Result<std::vector<SharesRow>> small(const SharesOptions& options) {
  std::vector<SharesRow> rows;
  double one_at_a_time = 0;
  std::vector<std::string> schedulers = {"one"};  // time sharing first: the others are compared with it
  for (const std::string& scheduler : options.schedulers) {
    if (scheduler != "one") schedulers.push_back(scheduler);
  }
  for (const std::string& scheduler : schedulers) {
    const bool side_by_side = scheduler != "one";
    Numbers numbers;
    SharesRow row{.experiment = "small", .scheduler = scheduler, .workload = side_by_side ? "8 at 12 %" : "8 in turns"};
    for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
      const SharesResult result = run(options, scheduler, small_clients(side_by_side), seed);
      Histogram latency;
      double answered = 0;
      for (const ShareClientResult& client : result.clients) {
        answered += static_cast<double>(client.answered);
        latency.merge(client.latency);
      }
      const auto seeds = static_cast<double>(options.seeds);
      numbers.mean("answered_per_s", answered / to_seconds(options.length), seeds);
      numbers.mean("p99_ms", to_ms(latency.percentile(0.99)), seeds);
      row.state_hash = row.state_hash * 31 + result.state_hash;
    }
    if (!side_by_side) one_at_a_time = numbers.list.front().second;
    numbers.mean("times_one", numbers.list.front().second / one_at_a_time, 1);
    row.numbers = std::move(numbers.list);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<ShareClient> reserved_beside_best_effort(const SharesOptions& options) {
  std::vector<ShareClient> clients = {{.name = "reserved",
                                       .share = {.width_percent = 50, .request_percent = 68},
                                       .least_kernel = options.most_kernel / 10,
                                       .most_kernel = options.most_kernel,
                                       .intensity = 0.5,
                                       .work = Work::kPoisson,
                                       .request = 20ms,
                                       .rate_per_s = 0.7 * 0.68 / 0.020,
                                       .objective = 100ms}};
  for (const int width : {25, 50, 50, 50}) {
    clients.push_back({.name = "best-effort",
                       .share = {.width_percent = width},
                       .least_kernel = options.best_effort_kernel / 10,
                       .most_kernel = options.best_effort_kernel,
                       .intensity = 0.5});
  }
  return clients;
}

SharesResult run_shares(const SharesOptions& options, const std::string& scheduler, std::vector<ShareClient> clients,
                        std::uint64_t seed) {
  return SharesSimulation({.clients = std::move(clients),
                           .scheduler = scheduler,
                           .options = options.places,
                           .leash = options.leash,
                           .tells_deadlines = options.tells_deadlines,
                           .warm_up = options.warm_up,
                           .length = options.length,
                           .seed = seed})
      .run();
}

std::vector<std::string_view> share_experiments() {
  return {"delivered", "objectives", "reserved", "small", "profile", "disturbed", "pods", "packed"};
}

Result<std::vector<SharesRow>> run_experiment(std::string_view experiment, const SharesOptions& options) {
  for (const std::string& scheduler : options.schedulers) {
    if (auto made = make_place_scheduler(scheduler, options.places); !made) return fail(made.error());
  }
  if (experiment == "delivered") return delivered(options);
  if (experiment == "objectives") return objectives(options);
  if (experiment == "reserved") return reserved(options);
  if (experiment == "small") return small(options);
  if (experiment == "profile") return profile_figure(options);
  if (experiment == "disturbed") return disturbed_figure(options);
  if (experiment == "pods") return pods_figure(options);
  if (experiment == "packed") return packed_figure(options);
  return fail(Errc::kInvalidArgument, "experiment is \"{}\", it must be one of {}", experiment,
              fmt::join(share_experiments(), ", "));
}

}  // namespace fairlead::sim
