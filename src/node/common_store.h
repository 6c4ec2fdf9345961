// A node beside others on one store: takes over functions that others deploy, and events whose nodes are gone.
//
//   the store says f changed ──> f's name taken for the change ──> its code fetched ──> the core told
//   the store says there are events of ended epochs ──> places in the queue ──> claimed ──> run here
//
// One function after another, the last state of each. What cannot be taken over now (its code does not come, it is being changed
// here, there is no room for its share) is tried again, at longer and longer intervals.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/async_invocations.h"
#include "node/function_control.h"
#include "node/functions.h"
#include "store/shared_store.h"

namespace fairlead {

class CommonStore {
 public:
  struct Ports {
    SharedStore& store;
    Functions& functions;
    FunctionControl& control;
    AsyncInvocations& events;
    std::function<void(const std::string& scope_before, const FunctionRecord&)> updated;  // a function that was here
    std::function<void()> pull_back;                      // of what was submitted, what has not begun to run
    std::function<void(SharedDocuments)> documents = {};  // as they are now
    bool runs_nothing = false;                            // then it claims no events
  };
  CommonStore(boost::asio::io_context& io, Ports ports);

  // From now on. `late`: functions that the store had at the start, and whose code is not here.
  void start(std::vector<FunctionChange> late);
  void drain() { is_draining_ = true; }

  std::size_t waiting() const { return changes_.size(); }  // functions that are not taken over yet

 private:
  struct Waiting {
    FunctionChange change;
    Instant due;  // not before
    int failures = 0;
  };

  void changed(std::vector<FunctionChange> changes);
  void next();
  void take_over(const std::string& name);
  void apply(FunctionChange change, int failures);
  void try_again(FunctionChange change, int failures, const Error& error);
  void done();
  void claim();
  void look_at_lease();

  const Ports ports_;
  std::map<std::string, Waiting> changes_;  // by function
  bool is_busy_ = false;                    // with one of them
  bool is_claiming_ = false;
  bool is_draining_ = false;
  bool may_start_ = true;  // events, as was last seen
  boost::asio::steady_timer timer_, lease_timer_;
};

}  // namespace fairlead
