#include "node/event_configs.h"

#include <utility>

#include "base/clock.h"

namespace fairlead {

void EventConfigs::set(std::string function, EventInvokeConfig config, EventService::Callback<EventInvokeConfig> done) {
  if (const auto known = functions_.get(function); !known) return done(fail(known.error()));
  if (Status valid = validate(config); !valid) return done(fail(valid.error()));
  config.last_modified_ms = wall_clock_ms();
  store_.put_event_config(function, config, [this, function, config, done = std::move(done)](Status written) {
    if (!written) return done(fail(written.error()));
    const auto known = functions_.get(function);
    if (!known) return done(fail(known.error()));  // deleted meanwhile
    configs_[function] = config;
    done(config);
  });
}

Result<EventInvokeConfig> EventConfigs::get(const std::string& function) const {
  if (const auto known = functions_.get(function); !known) return fail(known.error());
  const auto found = configs_.find(function);
  if (found != configs_.end()) return found->second;
  return fail(Errc::kNotFound, "The function {} doesn't have an EventInvokeConfig", function_arn(function));
}

void EventConfigs::remove(std::string function, std::function<void(Status)> done) {
  if (const auto known = get(function); !known) return done(fail(known.error()));
  store_.delete_event_config(function, [this, function, done = std::move(done)](Status written) {
    if (written) configs_.erase(function);
    done(written);
  });
}

void EventConfigs::seen(const std::string& function, const std::optional<EventInvokeConfig>& config) {
  if (config) {
    configs_[function] = *config;
  } else {
    configs_.erase(function);
  }
}

EventLimits EventConfigs::limits(const std::string& function) const {
  const auto found = configs_.find(function);
  return found == configs_.end() ? EventLimits() : limits_of(found->second);
}

}  // namespace fairlead
