// The device servers of a node, one for each GPU and isolation domain, and how callbacks find the one that they are of.
//
// What is asked of a server's process is answered later: by then the process, the server or all servers may be gone, and another may be
// in the same place. So whatever may come late holds a handle, which finds the server only while its process is that one.
//
// Example: a constant of A is opened for the server on GPU 1. The server ends and is started again (renew): the constant that comes now
// is of no use to the new process, the handle finds nothing, and A's constants are opened anew.
//
// Threads: the loop's.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "model/kernel_task.h"
#include "runtime/device_servers/server_fetches.h"
#include "runtime/device_servers/server_life.h"
#include "runtime/device_servers/server_objects.h"
#include "runtime/device_servers/server_process.h"
#include "wire/device_frames.h"

namespace fairlead {

// As people see it.
struct DeviceServerView {
  GpuId gpu;
  std::string tenant;  // ServerPlace::kAllTenants: of a server for all
  std::int64_t pid = 0;
  std::string device;
  std::size_t sessions = 0;
  std::uint64_t restarts = 0, calls = 0;
  TaskPhases phases;              // of all calls
  wire::ServerCounters counters;  // of the present process
};

struct ServerPlace {
  static constexpr const char* kAllTenants = "*";  // no tenant's name

  GpuId gpu;
  std::string domain;  // a tenant, or kAllTenants

  bool is_shared() const { return domain == kAllTenants; }
  auto operator<=>(const ServerPlace&) const = default;
};

struct DeviceServer {
  DeviceServer(boost::asio::io_context& io, const ServerPlace& at, std::map<std::string, std::string> variables,
               const ServerRecovery::Options& recovery)
      : place(at),
        environment(std::move(variables)),
        life(recovery, at.is_shared()),
        restart(io),
        idle(io),
        view{.gpu = at.gpu, .tenant = at.domain} {}

  // An output of its process, into that file. `done` on its answer, or by whoever hears of its end.
  void fetch(std::uint64_t object, UniqueFd destination, ServerFetches::Done done);

  const ServerPlace place;
  const std::map<std::string, std::string> environment;
  ServerLife life;
  boost::asio::steady_timer restart;  // until the next process is started
  boost::asio::steady_timer idle;
  std::unique_ptr<ServerProcess> process;
  std::uint64_t generation = 0;  // of its process, or of the wait for one; no two have one number
  std::uint64_t number = 0;      // of the server, for SessionMemory; never reused
  Bytes memory{0};               // of the process, for objects
  DeviceServerView view;
  ServerObjects objects;
  std::string fault;  // why its process is about to end; "": nobody has said
  std::string ended;  // why the last one ended
  ServerFetches fetches;
};

class ServerTable {
 public:
  class Handle {
   public:
    bool outlives_all() const { return life_.ended(); }
    DeviceServer* find() const;  // null: it is not there any more

   private:
    friend class ServerTable;
    Handle(ServerTable& servers, const DeviceServer& server)
        : servers_(&servers), life_(servers.life_.watch()), place_(server.place), generation_(server.generation) {}

    ServerTable* servers_;
    Lifetime::Watch life_;
    ServerPlace place_;
    std::uint64_t generation_;
  };

  ServerTable(boost::asio::io_context& io, const ServerRecovery::Options& recovery) : io_(io), recovery_(recovery) {}

  // The one in that place; where none is, a new one, whose processes have that environment.
  DeviceServer& at(const ServerPlace& place, const std::map<std::string, std::string>& environment);
  DeviceServer* find(const ServerPlace& place);  // null: none is there
  void erase(const ServerPlace& place) { servers_.erase(ServerPlace(place)); }
  // What was asked of its process counts no more: handles of before find nothing.
  void renew(DeviceServer& server) { server.generation = ++last_generation_; }
  Handle handle_of(const DeviceServer& server) { return {*this, server}; }

  std::vector<ServerPlace> on(GpuId gpu) const;
  std::vector<DeviceServerView> views() const;

 private:
  boost::asio::io_context& io_;
  const ServerRecovery::Options recovery_;
  std::map<ServerPlace, DeviceServer> servers_;
  std::uint64_t last_number_ = 0, last_generation_ = 0;
  Lifetime life_;
};

}  // namespace fairlead
