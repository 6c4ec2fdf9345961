// What the daemon says to each command.
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "softgpu/device/key_value.h"
#include "softgpu/mps/daemon.h"

namespace softgpu::mps {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_client(const ClientActivity& client, const Clients& clients) {
  return client.mps.load() != 0 && client.contexts.load() > 0 && clients.alive(Owner::unpack(client.owner.load()));
}

}  // namespace

std::string Daemon::answer(const std::string& line, bool& quit) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty()) return "";
  const std::string& command = words.front();
  const std::string self = std::to_string(::getpid());
  if (command == "quit") {
    quit = true;
    return "";
  }
  if (command == "get_server_list") return self + "\n";
  if (command == "start_server") return "";  // it runs
  if (command == "get_server_status") {
    return words.size() == 2 && words[1] == self ? status() + "\n" : "Server not found\n";
  }
  if (command == "ps" || command == "get_client_list") {
    std::string list;
    for (const int pid : client_pids()) list += std::to_string(pid) + "\n";
    return list;
  }
  if (command.ends_with("_default_active_thread_percentage")) return set_percentage(words);
  if (command.ends_with("_default_device_pinned_mem_limit")) return memory_limit(words);
  return "Unknown command \"" + line + "\"\n";
}

bool Daemon::has_clients(const DeviceView& view) const {
  for (const ClientActivity& client : view.control().activity) {
    if (is_client(client, clients_)) return true;
  }
  return false;
}

std::vector<int> Daemon::client_pids() const {
  std::vector<int> pids;
  for (const Watched& device : devices_) {
    for (std::uint32_t slot = 0; slot < kMaxClients; ++slot) {
      if (!is_client(device.view->control().activity[slot], clients_)) continue;
      if (const auto live = clients_.live(slot)) pids.push_back(live->pid);
    }
  }
  return pids;
}

// FAULT from a client's fault until the last client of then has gone, as on hardware.
std::string Daemon::status() {
  bool fault = false;
  for (Watched& device : devices_) {
    const auto faults = static_cast<std::uint32_t>(device.view->control().mps_fault.load() >> 32);
    if (faults == device.faults) continue;
    if (has_clients(*device.view)) {
      fault = true;
    } else {
      device.faults = faults;
    }
  }
  return fault ? "FAULT" : "ACTIVE";
}

std::string Daemon::set_percentage(const std::vector<std::string>& words) {
  if (words.front().starts_with("set_")) {
    const auto number = words.size() == 2 ? parse_number("percentage", words[1], 1, 100) : failure("no percentage");
    if (!number) return number.error() + "\n";
    settings_.default_percentage = static_cast<unsigned>(*number);
    if (const auto written = write_settings(); !written) return written.error() + "\n";
  }
  char text[16];
  std::snprintf(text, sizeof text, "%u.0\n", settings_.default_percentage);
  return text;
}

std::string Daemon::memory_limit(const std::vector<std::string>& words) {
  const bool set = words.front().starts_with("set_");
  if (words.size() != (set ? 3U : 2U)) return "usage: " + words.front() + (set ? " <dev> <value>\n" : " <dev>\n");
  const auto limits = parse_memory_limits(words[1] + "=" + (set ? words[2] : "1G"));
  if (!limits) return limits.error() + "\n";
  const auto [device, bytes] = *limits->begin();
  if (set) {
    settings_.memory_limits[device] = bytes;
    if (const auto written = write_settings(); !written) return written.error() + "\n";
    return "";
  }
  const auto found = settings_.memory_limits.find(device);
  return std::to_string(found == settings_.memory_limits.end() ? 0 : found->second >> 20) + "M\n";
}

}  // namespace softgpu::mps
