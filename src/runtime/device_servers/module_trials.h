// Trials of modules: before a device server loads a module, a process of its own fences and loads it, on the same GPU
// (`fairlead device-server --try-modules`). What the fence and the driver's compiler make of it, a crash or no end at all,
// happens there and not in the server of all tenants. What passed once on a GPU passes from then on, as long as it is
// remembered: then it is fenced again, which gives the same text, and not loaded.
//
// What is tried is the very text that the server would load: a module for another range of addresses, or with its
// variables elsewhere, is another one. So a module cannot behave in its trial and not in the server by looking at where its
// variables are.
//
//   kMeasuring ── ModulesMeasured ──> kPlacing ── place() ──> kFencing ── ModulesFenced ──> kLoading ── TrialEnded ──> over
//       └─────────────────────── TrialEnded with an error ────────┴──────────────────────────────────────────────> over
//
// Trials take a process each, and nobody has asked for those that fail. So their tenant rests after one, nine times as long
// as it took, and uses at most a tenth of a processor for them; who mends a module and tries again notices nothing.
//
// Modules that are not fenced begin at kLoading. A frame that is not the next one ends the process: what is fenced is taken
// from it only before its driver has compiled anything.
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
#include "base/lifetime.h"
#include "base/tenant_turns.h"
#include "base/units.h"
#include "runtime/device_servers/passed_modules.h"
#include "runtime/device_servers/server_process.h"

namespace fairlead {

class ModuleTrials {
 public:
  struct Options {
    std::string program;                 // `fairlead`
    std::vector<std::string> arguments;  // of every device server
    Launcher launcher = {};
    Duration patience;               // for the process's start, and then for each module
    std::size_t at_once = 2;         // device_server.cc leaves memory of the device for as many
    std::size_t remembered = 16384;  // modules that passed
    // After a trial that failed a tenant has no other one for so many times as long as it took, and no longer than that: a
    // start that waits for a trial keeps others from starting.
    int rests = 9;
    Duration longest_rest = std::chrono::seconds(2);
  };
  struct Request {
    InstanceId instance;
    GpuId gpu;
    std::string tenant;
    std::map<std::string, std::string> environment;  // of the process
    wire::ModuleTrial trial;
  };
  // What the server must be told: ModulesMeasured, ModulesFenced, and last TrialEnded, with an error of one module or none.
  using Tell = std::function<void(const wire::FrameToServer&)>;

  ModuleTrials(boost::asio::io_context& io, Options options);

  // An earlier request of the instance is forgotten.
  void start(Request request, Tell tell);
  // The server's answer to ModulesMeasured.
  void place(InstanceId instance, wire::VariablesPlaced placed);
  // Nobody waits for it: it is not begun any more. What is being loaded goes on, for what that finds out is of use the next
  // time.
  void forget(InstanceId instance);

 private:
  enum class Phase { kMeasuring, kPlacing, kFencing, kLoading };
  struct Trial {
    Request request;
    Tell tell;  // null: answered, or nobody waits
    Phase phase = Phase::kLoading;
    std::vector<std::uint64_t> addresses;  // of the modules' variables
    std::vector<std::uint32_t> left;       // of the request's modules, those that the process loads
    std::unique_ptr<ServerProcess> process;
    std::unique_ptr<boost::asio::steady_timer> timer;
    Instant began;
    std::size_t tried = 0;  // of `left`
    bool late = false;
  };

  static std::string key(const Trial& trial, std::uint32_t module);
  std::vector<std::uint32_t> untried(const Trial& trial);
  void start_next();
  void begin(std::uint64_t id, Trial& trial);
  void arm(std::uint64_t id, Trial& trial);
  void on_frame(std::uint64_t id, wire::FrameToNode& frame);
  bool advance(Trial& trial, Phase from, Phase to);
  void on_ended(Trial& trial, const wire::TrialEnded& ended);
  std::uint32_t module_at_hand(const Trial& trial) const;
  void on_gone(std::uint64_t id, const std::string& reason);
  void answer(Trial& trial, const std::string& error);  // of the last module
  void answer(Trial& trial, const std::string& error, std::uint32_t module);
  void end(std::uint64_t id);
  void end_failed(std::uint64_t id);
  void post(std::function<void()> call);

  boost::asio::io_context& io_;
  const Options options_;
  TenantTurns order_;
  PassedModules passed_;
  std::map<std::uint64_t, Trial> trials_;
  std::map<InstanceId, std::uint64_t> of_instance_;           // those that somebody waits for
  std::map<std::uint64_t, boost::asio::steady_timer> rests_;  // until they are over
  std::uint64_t last_ = 0;
  Lifetime life_;
};

}  // namespace fairlead
