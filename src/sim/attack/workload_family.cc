#include "sim/attack/workload_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"

namespace fairlead::sim {
namespace {

constexpr double kLeastCalls = 300, kMostCalls = 1500;  // of one run, in the mean
constexpr double kSeconds = 1800, kLoad = 0.8, kExponent = 1.1;
constexpr double kMostGpus = 100, kMostMemoryMib = 16 * 1024;  // all of the device

// Plain numbers, as a scenario file has them: what is found must be what a file says, to the last digit.
struct Group {
  std::string name;
  double warm_s, cold_start_s, memory_mib = 1536, rate_per_s = 0, rate_cv = 1, burst = 1, copies = 3;
};
struct Shape {
  std::vector<Group> groups;
  double gpus = 1;
};
struct Knob {
  std::string name;
  std::function<void(Shape&, double factor)> scale;
};
struct Family {
  const char* name;
  std::vector<Knob> (*knobs)();
};

// Three digits: a number that people can read, and much finer than what matters.
double rounded(double value) {
  if (value <= 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::stod(fmt::format("{:.9f}", std::round(value / unit) * unit));
}

double whole(double value) {
  return std::max(1.0, std::round(value));
}

Shape base() {
  Shape shape;
  double offered = 0;
  for (const FunctionModel& function : table1()) {
    Group group{function.name, rounded(to_seconds(function.warm)), rounded(to_seconds(function.cold_start))};
    group.rate_per_s = std::pow(static_cast<double>(shape.groups.size() + 1), -kExponent);
    offered += group.rate_per_s * group.warm_s * group.copies;
    shape.groups.push_back(group);
  }
  for (Group& group : shape.groups) group.rate_per_s = rounded(group.rate_per_s * kLoad / offered);
  return shape;
}

// One knob for each group, on one of its numbers.
std::vector<Knob> of_each_group(const std::string& what, double Group::*number, double (*round)(double), double most) {
  std::vector<Knob> knobs;
  const Shape shape = base();
  for (std::size_t i = 0; i < shape.groups.size(); ++i) {
    knobs.push_back({what + " of " + shape.groups[i].name, [=](Shape& scaled, double factor) {
                       double& value = scaled.groups[i].*number;
                       value = std::min(round(value * factor), most);
                     }});
  }
  return knobs;
}

std::vector<Knob> joined(std::vector<Knob> first, const std::vector<Knob>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Knob> starts() {
  return of_each_group("cold_start_s", &Group::cold_start_s, rounded, 1e9);
}
std::vector<Knob> run_times() {
  return of_each_group("warm_s", &Group::warm_s, rounded, 1e9);
}
std::vector<Knob> sizes() {
  return of_each_group("memory_mib", &Group::memory_mib, whole, kMostMemoryMib);
}
std::vector<Knob> bursts() {
  return joined(of_each_group("burst", &Group::burst, whole, 1e9),
                of_each_group("rate_cv", &Group::rate_cv, rounded, 1e9));
}
std::vector<Knob> counts() {
  std::vector<Knob> knobs = joined(of_each_group("copies", &Group::copies, whole, 1e9),
                                   of_each_group("rate_per_s", &Group::rate_per_s, rounded, 1e9));
  knobs.push_back({"gpus", [](Shape& shape, double factor) { shape.gpus = std::min(whole(factor), kMostGpus); }});
  return knobs;
}

constexpr Family kFamilies[] = {
    {"starts", starts}, {"run-times", run_times}, {"sizes", sizes}, {"bursts", bursts}, {"counts", counts}};

const Family* family_named(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return f.name == name; });
  return found == std::end(kFamilies) ? nullptr : found;
}

double seconds_of(const Shape& shape) {
  double rate = 0;
  for (const Group& group : shape.groups) rate += group.rate_per_s * group.copies;
  return rounded(std::clamp(kSeconds, kLeastCalls / rate, kMostCalls / rate));
}

std::string toml_of(const Group& group) {
  std::string text =
      fmt::format("\n[[function]]\nname = \"{}\"\ncopies = {}\nwarm_s = {}\ncold_start_s = {}\nmemory_mib = {}\n",
                  group.name, group.copies, group.warm_s, group.cold_start_s, group.memory_mib);
  text += fmt::format("rate_per_s = {}\n", group.rate_per_s);
  if (group.rate_cv != 1) text += fmt::format("rate_cv = {}\n", group.rate_cv);
  if (group.burst != 1) text += fmt::format("burst = {}\n", group.burst);
  return text;
}

}  // namespace

std::vector<std::string> workload_families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

Result<std::vector<std::string>> scaled_by(const std::string& name) {
  const Family* family = family_named(name);
  if (family == nullptr) {
    return fail(Errc::kNotFound, "family \"{}\" is unknown; known are {}", name, fmt::join(workload_families(), ", "));
  }
  std::vector<std::string> names;
  for (const Knob& knob : family->knobs()) names.push_back(knob.name);
  return names;
}

std::string workload_toml(const std::string& name, const std::vector<double>& powers, const std::string& head) {
  const Family* family = family_named(name);
  FL_CHECK(family != nullptr, "{}", name);
  const std::vector<Knob> knobs = family->knobs();
  FL_CHECK(knobs.size() == powers.size(), "{}: {} powers", name, powers.size());
  Shape shape = base();
  for (std::size_t i = 0; i < knobs.size(); ++i) knobs[i].scale(shape, std::pow(10, powers[i]));
  std::string text = head;
  text += fmt::format(
      "name = \"attack-{}\"\nduration_s = {}\ndevices = {}\n\n[pool]\ninstances = 12\nslots = 2\n\n[workload]\nkind = "
      "\"own\"\n",
      name, seconds_of(shape), shape.gpus);
  for (const Group& group : shape.groups) text += toml_of(group);
  return text;
}

Scenario workload_of(const std::string& family, const std::vector<double>& powers) {
  auto scenario = parse_scenario(workload_toml(family, powers, ""), family, *built_in_scenario("zipf"));
  FL_CHECK(scenario, "{}", scenario.error().message);
  return *std::move(scenario);
}

}  // namespace fairlead::sim
