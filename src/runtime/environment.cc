#include "runtime/environment.h"

#include "runtime/sandbox_root.h"
#include "wire/shim_frames.h"

namespace fairlead {
namespace {

// arn:aws:lambda:<region>:<account>:function:<name>
std::string region_of(const std::string& arn) {
  std::size_t begin = 0;
  for (int field = 0; field < 3; ++field) {
    begin = arn.find(':', begin);
    if (begin == std::string::npos) return "us-east-1";
    ++begin;
  }
  return arn.substr(begin, arn.find(':', begin) - begin);
}

// The shim comes first in LD_PRELOAD: what the author preloads may itself look for the driver.
void add_shim(const InstanceSpec& spec, std::map<std::string, std::string>& values) {
  values.erase(wire::kShimSocketVariable);
  values.erase(wire::kShimTokenVariable);
  if (!spec.shim) return;
  const auto authors = values.find("LD_PRELOAD");
  const bool more = authors != values.end() && !authors->second.empty();
  values["LD_PRELOAD"] = more ? kShimLibraryPath + (":" + authors->second) : kShimLibraryPath;
  values[wire::kShimSocketVariable] = kShimSocketPath;
  values[wire::kShimTokenVariable] = std::to_string(spec.shim->token);
}

}  // namespace

std::vector<std::string> sandbox_environment(const InstanceSpec& spec) {
  const std::string region = region_of(spec.arn);
  std::map<std::string, std::string> values = {
      {"TZ", ":UTC"},
      {"HOME", "/tmp"},
      {"AWS_REGION", region},
      {"AWS_DEFAULT_REGION", region},
      // Not credentials: SDKs refuse to start without any.
      {"AWS_ACCESS_KEY_ID", "none"},
      {"AWS_SECRET_ACCESS_KEY", "none"},
      {"AWS_SESSION_TOKEN", "none"},
  };
  if (spec.container) {
    // The image's programs and libraries are where it says, by default where every engine assumes them.
    values["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if (spec.container->http_port) values["PORT"] = std::to_string(*spec.container->http_port);
  } else {
    values["PATH"] = "/usr/local/bin:/usr/bin:/bin:/opt/bin";
    values["LD_LIBRARY_PATH"] = "/var/task:/var/task/lib:/opt/lib";
    values["LANG"] = "en_US.UTF-8";
    values["AWS_EXECUTION_ENV"] = "AWS_Lambda_provided.al2023";
  }
  for (const auto& [name, value] : spec.environment) values[name] = value;
  const std::map<std::string, std::string> reserved = {
      {"_HANDLER", spec.handler},
      {"LAMBDA_TASK_ROOT", kTaskDir},
      {"LAMBDA_RUNTIME_DIR", "/var/runtime"},
      {"AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001"},
      {"FAIRLEAD_RUNTIME_SOCKET", kRuntimeSocketPath},
      {"AWS_LAMBDA_FUNCTION_NAME", spec.function},
      {"AWS_LAMBDA_FUNCTION_VERSION", spec.version},
      {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", std::to_string(spec.memory_limit.count() >> 20)},
      {"AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/" + spec.function},
      {"AWS_LAMBDA_LOG_STREAM_NAME", "[" + spec.version + "]" + std::to_string(spec.instance.value())},
      {"AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"},
  };
  for (const auto& [name, value] : reserved) values[name] = value;
  add_shim(spec, values);

  std::vector<std::string> environment;
  environment.reserve(values.size());
  for (const auto& [name, value] : values) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace fairlead
