#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <string>

namespace fairlead {

void init_log(std::string_view level) {
  auto logger = spdlog::stderr_logger_mt("fairlead");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->set_level(spdlog::level::from_str(std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace fairlead
