// Profiles of functions, in memory and on disk: the newest first, one for each code and model of device.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "model/device.h"
#include "model/function_profile.h"
#include "node/functions.h"
#include "store/store.h"

namespace fairlead {

class ProfileBook {
 public:
  using Done = std::function<void(Result<FunctionProfile>)>;
  using Visit = std::function<void(const FunctionProfile&)>;

  // `kept`: of each that is on disk, before its `done`.
  ProfileBook(Store& store, Functions& functions, Visit kept)
      : store_(store), functions_(functions), kept_(std::move(kept)) {}

  Status recover();  // those that the store holds, at the start
  // kNotFound: the function was deleted meanwhile. `done` may be empty.
  void keep(FunctionProfile profile, Done done);
  void forget(const std::string& function) { profiles_.erase(function); }

  std::vector<FunctionProfile> all(const std::string& function) const;
  void each(const Visit& visit) const;  // of a function the oldest first
  // Of its code, on the model of one of the devices: the newest. Null: there is none.
  const FunctionProfile* of(const FunctionRecord& record, const std::vector<Device>& devices) const;

 private:
  Store& store_;
  Functions& functions_;
  const Visit kept_;
  std::map<std::string, std::vector<FunctionProfile>> profiles_;  // by function
  Lifetime life_;
};

}  // namespace fairlead
