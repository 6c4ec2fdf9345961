// Trials of modules: before a device server loads a module, a process of its own does, on the same GPU
// (`fairlead device-server --try-modules`). What the driver's compiler makes of it, a crash or no end at all, happens there
// and not in the server of all tenants. What passed once on a GPU passes from then on, as long as it is remembered.
//
// What is tried is the very text that the server would load: a module for another range of addresses is another one. So a
// module cannot behave in its trial and not in the server by looking at where its variables are.
//
// Threads: the loop's. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "runtime/device_servers/passed_modules.h"
#include "runtime/device_servers/server_process.h"
#include "runtime/device_servers/trial_order.h"

namespace fairlead {

class ModuleTrials {
 public:
  struct Options {
    std::string program;                 // `fairlead`
    std::vector<std::string> arguments;  // of every device server
    Duration patience;                   // for the process's start, and then for each module
    std::size_t at_once = 2;             // device_server.cc leaves memory of the device for as many
    std::size_t remembered = 16384;      // modules that passed
  };
  struct Request {
    InstanceId instance;
    GpuId gpu;
    std::string tenant;
    std::map<std::string, std::string> environment;  // of the process
    wire::ModuleTrial trial;
  };
  using Done = std::function<void(const wire::TrialEnded&)>;  // an error of one module, or of none

  ModuleTrials(boost::asio::io_context& io, Options options);

  // An earlier request of the instance is forgotten.
  void start(Request request, Done done);
  // Nobody waits for it: it is not begun any more. What runs goes on, for what it finds out is of use the next time.
  void forget(InstanceId instance);

 private:
  struct Trial {
    Request request;
    Done done;                        // null: answered, or nobody waits
    std::vector<std::uint32_t> left;  // of the request's modules, those that the process tries
    std::unique_ptr<ServerProcess> process;
    std::unique_ptr<boost::asio::steady_timer> timer;
    std::size_t tried = 0;  // of `left`
    bool late = false;
  };

  static std::string key(const Request& request, std::uint32_t module);
  std::vector<std::uint32_t> untried(const Request& request);
  void start_next();
  void begin(std::uint64_t id, Trial& trial);
  void arm(std::uint64_t id, Trial& trial);
  void on_frame(std::uint64_t id, const wire::FrameToNode& frame);
  void on_gone(std::uint64_t id, const std::string& reason);
  void answer(Trial& trial, const std::string& error);
  void end(std::uint64_t id);
  void post(std::function<void()> call);

  boost::asio::io_context& io_;
  const Options options_;
  TrialOrder order_;
  PassedModules passed_;
  std::map<std::uint64_t, Trial> trials_;
  std::map<InstanceId, std::uint64_t> of_instance_;  // those that somebody waits for
  std::uint64_t last_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fairlead
