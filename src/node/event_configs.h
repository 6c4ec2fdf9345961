// How often and how long events of each function are tried: what their authors set, in memory and on disk.
//
// Threads: the io_context's; callbacks run on it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "edge/event_service.h"
#include "model/event_invoke_config.h"
#include "node/functions.h"
#include "store/store.h"

namespace fairlead {

class EventConfigs {
 public:
  EventConfigs(Store& store, Functions& functions) : store_(store), functions_(functions) {}

  void restore(std::map<std::string, EventInvokeConfig> configs) { configs_ = std::move(configs); }

  // As in EventService.
  void set(std::string function, EventInvokeConfig config, EventService::Callback<EventInvokeConfig> done);
  Result<EventInvokeConfig> get(const std::string& function) const;
  void remove(std::string function, std::function<void(Status)> done);
  void function_removed(const std::string& name) { configs_.erase(name); }
  // As another node set it; none: it did away with it.
  void seen(const std::string& function, const std::optional<EventInvokeConfig>& config);

  EventLimits limits(const std::string& function) const;

 private:
  Store& store_;
  Functions& functions_;
  std::map<std::string, EventInvokeConfig> configs_;
};

}  // namespace fairlead
