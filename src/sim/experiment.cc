#include "sim/experiment.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/check.h"
#include "base/mutex.h"
#include "sim/settings.h"
#include "sim/simulation.h"

namespace fairlead::sim {

Result<std::vector<Variant>> variants(Scenario scenario, const std::vector<std::string>& policies,
                                      const std::string& sweep_key, const std::vector<std::string>& sweep_values) {
  if (Status loaded = load_trace(scenario); !loaded) return fail(loaded.error());
  std::vector<Variant> all;
  const std::vector<std::string> values = sweep_key.empty() ? std::vector<std::string>{""} : sweep_values;
  for (const std::string& policy : policies.empty() ? std::vector<std::string>{""} : policies) {
    for (const std::string& value : values) {
      Variant variant{"", scenario};
      // The policy last: a preset, as value of the sweep, sets that too.
      if (!sweep_key.empty()) {
        if (Status is_set = set(variant.scenario, sweep_key, value); !is_set) return fail(is_set.error());
      }
      if (!policy.empty()) {
        if (Status is_set = set(variant.scenario, "policy", policy); !is_set) return fail(is_set.error());
      }
      variant.label = variant.scenario.policy;
      if (!sweep_key.empty()) variant.label += " " + sweep_key + "=" + value;
      if (Status valid = validate(variant.scenario); !valid) return fail(valid.error());
      all.push_back(std::move(variant));
    }
  }
  return all;
}

std::vector<Outcomes> run_all(const std::vector<Variant>& variants, unsigned threads,
                              const std::function<void(double)>& progress) {
  std::vector<Outcomes> outcomes;
  std::vector<std::pair<std::size_t, std::size_t>> work;  // variant, seed
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const Scenario& scenario = variants[v].scenario;
    outcomes.push_back({variants[v].label, scenario, std::vector<RunResult>(scenario.seeds.size()), {}});
    for (std::size_t s = 0; s < scenario.seeds.size(); ++s) work.emplace_back(v, s);
  }

  std::atomic<std::size_t> next = 0;
  Mutex mutex;  // of `done` and the callback
  std::size_t done = 0;
  const auto run_some = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      Outcomes& outcome = outcomes[work[i].first];
      const std::uint64_t seed = outcome.scenario.seeds[work[i].second];
      const std::string note =
          fmt::format("scenario {}, policy {}, seed {}", outcome.scenario.name, outcome.label, seed);
      const CheckNote if_it_fails(note.c_str());
      outcome.runs[work[i].second] = Simulation(outcome.scenario, seed, make_arrivals(outcome.scenario, seed)).run();
      const MutexLock lock(mutex);
      ++done;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(work.size()));
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < std::min<std::size_t>(threads, work.size()); ++t) pool.emplace_back(run_some);
  run_some();
  for (std::thread& thread : pool) thread.join();
  for (Outcomes& outcome : outcomes) {
    outcome.total = outcome.runs.front();
    for (std::size_t s = 1; s < outcome.runs.size(); ++s) outcome.total.merge(outcome.runs[s]);
  }
  return outcomes;
}

}  // namespace fairlead::sim
