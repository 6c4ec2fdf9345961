#include "decide/pipeline/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "decide/pipeline/joined_outputs.h"

namespace fairlead {
namespace {

static_assert(kMaxComponents <= 64, "one bit each");

struct Step {
  std::uint64_t bit = 0;
  std::vector<std::uint64_t> needs;  // one of each has to have run; what also comes from the request is not among them
  std::optional<std::size_t> decider;
  std::uint64_t decided_by = 0;
  bool is = true;
};

std::uint64_t bit_of(std::size_t component) {
  return std::uint64_t{1} << component;
}

std::vector<TensorSource> deciders_of(const Dag& dag) {
  std::vector<TensorSource> deciders;
  for (const Component& one : dag.components) {
    const bool is_new = one.when && std::find(deciders.begin(), deciders.end(), one.when->value) == deciders.end();
    if (is_new) deciders.push_back(one.when->value);
  }
  return deciders;
}

std::vector<Step> steps_of(const Dag& dag, const std::vector<TensorSource>& deciders) {
  std::vector<Step> steps;
  for (const std::size_t index : topological_order(dag)) {
    const Component& one = dag.components[index];
    Step step{.bit = bit_of(index)};
    for (const ComponentInput& input : one.inputs) {
      std::uint64_t any = 0;
      bool comes = false;
      for (const TensorSource& source : input.sources) {
        source.component ? void(any |= bit_of(*source.component)) : void(comes = true);
      }
      if (!comes) step.needs.push_back(any);
    }
    if (one.when) {
      const auto found = std::find(deciders.begin(), deciders.end(), one.when->value);
      step.decider = static_cast<std::size_t>(found - deciders.begin());
      step.decided_by = bit_of(*one.when->value.component);
      step.is = one.when->is;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::uint64_t run(const std::vector<Step>& steps, std::uint64_t world) {
  std::uint64_t ran = 0;
  for (const Step& step : steps) {
    const bool is_true = step.decider && (world >> *step.decider & 1) != 0;
    if (step.decider && ((ran & step.decided_by) == 0 || is_true != step.is)) continue;
    if (std::all_of(step.needs.begin(), step.needs.end(), [&](std::uint64_t any) { return (ran & any) != 0; })) {
      ran |= step.bit;
    }
  }
  return ran;
}

}  // namespace

std::optional<std::string> what_may_not_come(const Dag& dag) {
  const std::vector<TensorSource> deciders = deciders_of(dag);
  if (deciders.size() > kMaxDeciders) {
    return fmt::format("{} values decide about branches, {} are possible", deciders.size(), kMaxDeciders);
  }
  const std::vector<Step> steps = steps_of(dag, deciders);
  const std::vector<JoinedOutput> outputs = joined_outputs(dag);
  for (std::uint64_t world = 0; world < std::uint64_t{1} << deciders.size(); ++world) {
    const std::uint64_t ran = run(steps, world);
    for (const JoinedOutput& output : outputs) {
      const auto comes = [&](std::size_t entry) {
        const auto& component = dag.outputs[entry].from.component;
        return !component || (ran & bit_of(*component)) != 0;
      };
      if (std::any_of(output.entries.begin(), output.entries.end(), comes)) continue;
      std::string from;
      for (const std::size_t entry : output.entries) {
        from += (from.empty() ? "" : " or ") + dag.name_of(dag.outputs[entry].from);
      }
      std::string when;
      for (std::size_t i = 0; i < deciders.size(); ++i) {
        when += fmt::format("{}{} is {}", i == 0 ? "" : " and ", dag.name_of(deciders[i]), (world >> i & 1) != 0);
      }
      return fmt::format("output {} from {} does not always come: not when {}; join what comes then", output.name, from,
                         when);
    }
  }
  return std::nullopt;
}

}  // namespace fairlead
