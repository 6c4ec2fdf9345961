#include "runtime/device_server/module_order.h"

#include "base/check.h"

namespace fairlead {

void ModuleOrder::add(const std::string& key, Bytes bytes) {
  const bool added = modules_.try_emplace(key, Module{.bytes = bytes, .users = 1}).second;
  FL_CHECK(added, "module {} is there already", key);
}

void ModuleOrder::use(const std::string& key) {
  Module& module = modules_.at(key);
  if (module.users++ > 0) return;
  left_.erase(module.left);
  unused_bytes_ = unused_bytes_ - module.bytes;
}

void ModuleOrder::leave(const std::string& key) {
  Module& module = modules_.at(key);
  FL_CHECK(module.users > 0, "module {} has no user", key);
  if (--module.users > 0) return;
  module.left = ++clock_;
  left_.emplace(module.left, key);
  unused_bytes_ = unused_bytes_ + module.bytes;
}

bool ModuleOrder::within(std::size_t times) const {
  return left_.size() <= times * limits_.count &&
         unused_bytes_.count() <= static_cast<std::int64_t>(times) * limits_.bytes.count();
}

std::vector<std::string> ModuleOrder::take_surplus(std::size_t times) {
  std::vector<std::string> taken;
  if (within(times)) return taken;
  while (!within(1)) taken.push_back(take_oldest());
  return taken;
}

std::vector<std::string> ModuleOrder::take_unused() {
  std::vector<std::string> taken;
  while (!left_.empty()) taken.push_back(take_oldest());
  return taken;
}

std::string ModuleOrder::take_oldest() {
  std::string key = left_.extract(left_.begin()).mapped();
  unused_bytes_ = unused_bytes_ - modules_.at(key).bytes;
  modules_.erase(key);
  return key;
}

}  // namespace fairlead
