// Scenario files: TOML whose tables and keys are the settings (settings.h), and [[function]] tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/read_file.h"
#include "base/toml.h"
#include "sim/scenario.h"
#include "sim/settings.h"

namespace fairlead::sim {
namespace {

// As set() reads it: scalars as written, arrays joined by commas, pairs by colons.
Result<std::string> text_of(const std::string& key, const toml::node& node) {
  if (const auto text = node.value<std::string>()) return *text;
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* boolean = node.as_boolean()) return std::string(boolean->get() ? "true" : "false");
  const auto* array = node.as_array();
  if (array == nullptr) return fail(Errc::kInvalidArgument, "{} must be a number, a text or an array", key);
  std::string joined;
  for (const toml::node& element : *array) {
    auto part = text_of(key, element);
    if (!part) return part;
    if (element.is_array()) std::replace(part->begin(), part->end(), ',', ':');
    joined += (joined.empty() ? "" : ",") + *part;
  }
  return joined;
}

// What a number may be at most: seconds, calls and MiB all fit their types up to here.
constexpr double kLargestNumber = 1e9;
constexpr double kMostCopies = 100'000;  // of a function

// `field`: "tenant.weight" is the key weight of a table.
template <typename Number>
Status read_number(const toml::table& table, const std::string& field, double least, Number& into,
                   double most = kLargestNumber) {
  const toml::node* node = table.get(field.substr(field.find('.') + 1));
  if (node == nullptr) return {};
  const auto value = node->value<double>();
  if (!value || !(*value >= least && *value <= most)) {
    return fail(Errc::kInvalidArgument, "{} must be a number from {} to {}", field, least, most);
  }
  into = static_cast<Number>(*value);
  return {};
}

Status unknown_keys(const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    static const char* const known[] = {"name",    "warm_s", "cold_start_s", "memory_mib", "weight",
                                        "tenant",  "copies", "objective_s",  "gpu_share",  "rate_per_s",
                                        "rate_cv", "burst",  "calls",        "begin_s"};
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      return fail(Errc::kInvalidArgument, "function.{} is unknown; known are {}", name, fmt::join(known, ", "));
    }
  }
  return {};
}

// When the function is called, for workloads of kind "own".
Status read_calls(const toml::table& table, Calls& calls) {
  double begin = 0;
  for (const Status& read :
       {read_number(table, "function.rate_per_s", 0, calls.per_second),
        read_number(table, "function.rate_cv", 0, calls.cv), read_number(table, "function.burst", 1, calls.together),
        read_number(table, "function.calls", 1, calls.most), read_number(table, "function.begin_s", 0, begin)}) {
    if (!read) return read;
  }
  calls.begin = from_seconds(begin);
  return {};
}

Status read_function(const toml::table& table, std::vector<FunctionModel>& functions) {
  if (Status known = unknown_keys(table); !known) return known;
  FunctionModel function;
  function.name = table["name"].value_or(fmt::format("f{}", functions.size() + 1));
  function.tenant = table["tenant"].value_or(std::string());
  double warm = 0, cold = 0, memory = 1536, objective = 0, copies = 1;
  for (const Status& read :
       {read_number(table, "function.warm_s", 1e-6, warm), read_number(table, "function.cold_start_s", 0, cold),
        read_number(table, "function.memory_mib", 0, memory),
        read_number(table, "function.weight", 1e-3, function.weight),
        read_number(table, "function.objective_s", 1e-6, objective),
        read_number(table, "function.copies", 1, copies, kMostCopies),
        read_number(table, "function.gpu_share", 0, function.gpu_share), read_calls(table, function.calls)}) {
    if (!read) return read;
  }
  if (function.gpu_share > 1) {
    return fail(Errc::kInvalidArgument, "function.gpu_share of {} is {}, it must be from 0 to 1", function.name,
                function.gpu_share);
  }
  if (warm <= 0) return fail(Errc::kInvalidArgument, "function.warm_s of {} is missing", function.name);
  function.warm = from_seconds(warm);
  function.cold_start = from_seconds(cold);
  function.memory = mib(static_cast<std::int64_t>(memory));
  if (objective > 0) function.objective = from_seconds(objective);
  const std::string name = function.name;
  for (int i = 1; i <= static_cast<int>(copies); ++i) {
    if (i > 1) function.name = fmt::format("{}-{}", name, i);
    functions.push_back(function);
  }
  return {};
}

Status read_functions(const toml::node& node, Scenario& scenario) {
  const auto* array = node.as_array();
  if (array == nullptr) return fail(Errc::kInvalidArgument, "function must be written as [[function]]");
  scenario.functions.clear();
  for (const toml::node& element : *array) {
    const auto* table = element.as_table();
    if (table == nullptr) return fail(Errc::kInvalidArgument, "function must be written as [[function]]");
    if (Status read = read_function(*table, scenario.functions); !read) return read;
  }
  return {};
}

Status read_tenants(const toml::node& node, Scenario& scenario) {
  const auto* array = node.as_array();
  if (array == nullptr) return fail(Errc::kInvalidArgument, "tenant must be written as [[tenant]]");
  for (const toml::node& element : *array) {
    const auto* table = element.as_table();
    const auto name = table == nullptr ? std::nullopt : (*table)["name"].value<std::string>();
    if (!name) return fail(Errc::kInvalidArgument, "tenant must be written as [[tenant]], each with a name");
    for (const auto& [key, value] : *table) {
      if (key == "name" || key == "weight" || key == "max_in_flight") continue;
      return fail(Errc::kInvalidArgument, "tenant.{} is unknown; known are name, weight, max_in_flight", key.str());
    }
    TenantShare& share = scenario.tenants[*name];
    double most = 0;
    if (Status read = read_number(*table, "tenant.weight", 1e-3, share.weight); !read) return read;
    if (Status read = read_number(*table, "tenant.max_in_flight", 1, most); !read) return read;
    if (most > 0) share.max_concurrency = static_cast<std::size_t>(most);
  }
  return {};
}

Status read_seeds(const toml::node& node, Scenario& scenario) {
  scenario.seeds.clear();
  if (const auto count = node.value<std::int64_t>()) {
    for (std::int64_t seed = 1; seed <= *count; ++seed) scenario.seeds.push_back(static_cast<std::uint64_t>(seed));
  } else if (const auto* list = node.as_array()) {
    for (const toml::node& element : *list) {
      const auto seed = element.value<std::int64_t>();
      if (!seed) return fail(Errc::kInvalidArgument, "seeds must be a number of seeds or a list of numbers");
      scenario.seeds.push_back(static_cast<std::uint64_t>(*seed));
    }
  }
  if (scenario.seeds.empty())
    return fail(Errc::kInvalidArgument, "seeds must be a number of seeds or a list of numbers");
  return {};
}

// Before the other settings, wherever it is written: they are what differs from it.
Status read_preset(const toml::table& table, Scenario& scenario) {
  const toml::node* node = table.get("preset");
  if (node == nullptr) return {};
  const auto name = text_of("preset", *node);
  if (!name) return fail(name.error());
  return set(scenario, "preset", *name);
}

Status read_table(const toml::table& table, const std::string& prefix, Scenario& scenario) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    Status read;
    if (name == "name" || name == "base" || name == "preset") {
      continue;
    } else if (name == "function") {
      read = read_functions(node, scenario);
    } else if (name == "tenant") {
      read = read_tenants(node, scenario);
    } else if (name == "seeds") {
      read = read_seeds(node, scenario);
    } else if (const auto* inner = node.as_table()) {
      // [policy] has the name of the policy beside its options.
      read = read_table(*inner, name + ".", scenario);
    } else {
      const auto text = text_of(name, node);
      read = text ? set(scenario, name == "policy.name" ? "policy" : name, *text) : Status(fail(text.error()));
    }
    if (!read) return read;
  }
  return {};
}

// A rate that the workload does not look at would be a silent mistake.
Status uses_rates(const Scenario& scenario) {
  if (scenario.workload.kind == WorkloadKind::kOwn) return {};
  for (const FunctionModel& function : scenario.functions) {
    if (function.calls.per_second == 0) continue;
    return fail(
        Errc::kInvalidArgument,
        "function.rate_per_s of {} is {}, but workload.kind is not \"own\", so that nothing reads it; write [workload] "
        "kind = \"own\"",
        function.name, function.calls.per_second);
  }
  return {};
}

// A trace is named from where the scenario is.
void name_from_beside(const std::string& scenario, std::string& trace) {
  if (trace.empty() || std::filesystem::path(trace).is_absolute()) return;
  trace = (std::filesystem::path(scenario).parent_path() / trace).string();
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::string& origin, Scenario scenario) {
  const auto named = [&](const Error& error) { return fail(error.code, "{}: {}", origin, error.message); };
  auto parsed = parse_toml(text, origin);
  if (!parsed) return fail(parsed.error());
  const toml::table& table = *parsed;
  if (const auto base = table["base"].value<std::string>()) {
    auto found = built_in_scenario(*base);
    if (!found) return fail(Errc::kInvalidArgument, "{}: base: {}", origin, found.error().message);
    scenario = *std::move(found);
  }
  scenario.name = table["name"].value_or(origin);
  if (Status preset = read_preset(table, scenario); !preset) return named(preset.error());
  if (Status read = read_table(table, "", scenario); !read) return named(read.error());
  if (Status valid = validate(scenario); !valid) return named(valid.error());
  if (Status used = uses_rates(scenario); !used) return named(used.error());
  name_from_beside(origin, scenario.workload.trace_path);
  return scenario;
}

Result<Scenario> read_scenario(const std::string& path, Scenario scenario) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(Errc::kNotFound, "scenario {} is a folder; name the file in it, for example {}/scenario.toml", path,
                path);
  }
  const auto text = read_whole_file(path);
  if (!text) return fail(Errc::kNotFound, "scenario {}: cannot be read", path);
  return parse_scenario(*text, path, std::move(scenario));
}

}  // namespace fairlead::sim
