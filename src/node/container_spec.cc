#include "node/container_spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace fairlead {
namespace {

constexpr std::uint16_t kDefaultPort = 8080;
constexpr const char* kWatchdogHealth = "/_/health";
constexpr const char* kLists[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};

void add_platform(const std::map<std::string, std::string>& platform, std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : platform) {
    std::string& present = environment[name];
    const bool is_list = std::find(std::begin(kLists), std::end(kLists), name) != std::end(kLists);
    present = is_list && !present.empty() ? value + ":" + present : value;
  }
}

std::uint16_t port_of(const std::map<std::string, std::string>& environment) {
  const auto found = environment.find("PORT");
  if (found == environment.end()) return kDefaultPort;
  std::uint16_t port = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [last, error] = std::from_chars(found->second.data(), end, port);
  return error == std::errc() && last == end && port > 0 ? port : kDefaultPort;
}

}  // namespace

void describe_container(const FunctionRecord& record, const std::map<std::string, std::string>& platform,
                        InstanceSpec& spec) {
  const ImageDefaults& defaults = record.image->defaults;
  const ImageOverrides& overrides = record.config.image_config;
  InstanceSpec::Container container{.rootfs = record.code_path + "/rootfs",
                                    .arguments = image_arguments(defaults, overrides),
                                    .working_directory = overrides.working_directory.empty()
                                                             ? defaults.working_directory
                                                             : overrides.working_directory,
                                    .uid = defaults.uid,
                                    .gid = defaults.gid,
                                    .http_port = {},
                                    .http_health = {}};
  spec.environment = defaults.environment;
  add_platform(platform, spec.environment);
  for (const auto& [name, value] : record.config.environment) spec.environment[name] = value;
  const std::string contract = image_contract(record.config);
  const bool is_watchdog = contract == "openfaas" || (contract.empty() && has_watchdog(container.arguments));
  if (is_watchdog || contract == "http" || (contract.empty() && !speaks_lambda(defaults, container.arguments))) {
    container.http_port = port_of(spec.environment);
  }
  if (is_watchdog) {
    container.http_health = kWatchdogHealth;
    spec.environment.try_emplace("port", std::to_string(*container.http_port));  // the watchdog's name for it
  }
  const std::vector<std::string>& command = overrides.command.empty() ? defaults.command : overrides.command;
  spec.handler = command.empty() ? "" : command.front();
  spec.container = std::move(container);
}

Status check_image_program(const FunctionRecord& record) {
  if (!record.image || !image_arguments(record.image->defaults, record.config.image_config).empty()) return {};
  return fail(Errc::kInvalidArgument,
              "image {} names no program: it has neither an entry point nor a command; set ImageConfig.EntryPoint",
              record.image->uri);
}

}  // namespace fairlead
