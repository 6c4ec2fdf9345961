#include "runtime/device_servers/server_table.h"

#include <utility>

namespace fairlead {

void DeviceServer::fetch(std::uint64_t object, UniqueFd destination, ServerFetches::Done done) {
  const std::uint64_t fetch = fetches.add(std::move(done));
  const int descriptors[] = {destination.get()};
  process->send(wire::FetchObject{fetch, object}, descriptors);
}

DeviceServer* ServerTable::Handle::find() const {
  if (life_.ended()) return nullptr;
  DeviceServer* const there = servers_->find(place_);
  return there != nullptr && there->generation == generation_ ? there : nullptr;
}

DeviceServer& ServerTable::at(const ServerPlace& place, const std::map<std::string, std::string>& environment) {
  const auto [found, added] = servers_.try_emplace(place, io_, place, environment, recovery_);
  if (added) found->second.number = ++last_number_;
  return found->second;
}

DeviceServer* ServerTable::find(const ServerPlace& place) {
  const auto found = servers_.find(place);
  return found == servers_.end() ? nullptr : &found->second;
}

std::vector<ServerPlace> ServerTable::on(GpuId gpu) const {
  std::vector<ServerPlace> places;
  for (const auto& [place, server] : servers_) {
    if (place.gpu == gpu) places.push_back(place);
  }
  return places;
}

std::vector<DeviceServerView> ServerTable::views() const {
  std::vector<DeviceServerView> views;
  for (const auto& [place, server] : servers_) {
    views.push_back(server.view);
    views.back().sessions = server.life.sessions().size();
  }
  return views;
}

}  // namespace fairlead
