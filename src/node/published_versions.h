// The published versions of functions and the aliases that lead to them: kept in memory and in the store, and flows of their own once they
// are called.
//
//   publish ──written──> version 3 ──its first call──> a flow in the family of $LATEST's ──> instances of its own
//
// What is a version's own: code, handler, runtime, memory, timeout, environment (of a secret its name, not its value) and what its program
// needs of a device (kVersionTags). What is the function's, and one for all its versions: tenant, weight, consent to models, reserved
// concurrency, event configuration, log, secrets' values. $LATEST alone has quotas and sizes that the node finds.
//
// A version has seats where its function's tag gpu:provisioned keeps instances of it, or of an alias that leads to it
// (model/provisioned_tag.h): its flow is there from then on, and moves with the alias.
//
// Example: f has reserved concurrency 2, and 100 versions that are called at once: two of these calls run. A function that is called through
// ten of its versions gets what one that is called through one gets.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "edge/version_service.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/request_id.h"
#include "node/shares.h"
#include "node/tenants.h"
#include "store/store.h"

namespace fairlead {

class PublishedVersions final : public VersionService {
 public:
  struct Ports {
    Store& store;
    Functions& functions;
    Tenants& tenants;
    RequestIds& request_ids;
    CoreDriver& driver;
    Shares& shares;
    std::function<void(const RegisteredFunction&)> removed;  // a flow of a version, before it is forgotten
    std::function<void()> seats_changed;                     // seats were given back: others may have them
  };
  explicit PublishedVersions(Ports ports) : ports_(std::move(ports)) {}

  // After the functions, at the start. `task_of`: of a version that is a kernel task, what runs it.
  using TaskOf = std::function<std::shared_ptr<const BundledTask>(const FunctionRecord&)>;
  void recover(PublishedState state, const TaskOf& task_of);

  // Those of one function, as another node left them.
  void replace(const std::string& function, PublishedState state, const TaskOf& task_of);

  // Seats for the versions of which `latest` is to keep instances. kInvalidArgument: as Shares::admit(), and all is as before. What comes of
  // it is told by function_changed(), also that nothing came of it.
  Status admit(const FunctionRecord& latest);

  // The flow that a call of the version goes to, which is made where there is none yet. Null: no such version. 0: $LATEST's.
  RegisteredFunction* flow_of(const std::string& function, std::uint64_t version);
  void function_changed(const std::string& function);  // what its versions take over from it may be another
  void recover_seats();  // at the start, of all functions; who finds them is Shares::settle(), once there are devices
  void function_removed(const std::string& function);

  void publish(PublishRequest request, Callback<FunctionRecord> done) override;
  Result<std::vector<FunctionRecord>> versions(const std::string& function) override;
  void remove_version(std::string function, std::uint64_t version, std::function<void(Status)> done) override;
  void put_alias(std::string function, FunctionAlias alias, bool is_new, Callback<FunctionAlias> done) override;
  Result<FunctionAlias> alias(const std::string& function, const std::string& name) override;
  Result<std::vector<FunctionAlias>> aliases(const std::string& function) override;
  void remove_alias(std::string function, std::string name, std::function<void(Status)> done) override;
  Result<std::uint64_t> choose(const std::string& function, std::string_view qualifier,
                               std::string_view request_id) override;
  Result<FunctionRecord> find(const std::string& function, std::string_view qualifier) override;

 private:
  struct Version {
    FunctionRecord record;
    std::shared_ptr<const BundledTask> kernel_task;  // when it is one
  };
  struct Known {
    std::map<std::uint64_t, Version> versions;
    std::uint64_t last = 0;  // number that was given
    std::map<std::string, FunctionAlias> aliases;
  };

  // Those of a function that is there; nothing, where it has none.
  Known& known(const std::string& function) { return known_[function]; }
  const Version* find_version(const std::string& function, std::uint64_t version) const;
  Status check_version(const std::string& function, std::uint64_t version) const;
  Status check_publish(const PublishRequest& request, const RegisteredFunction& function) const;
  FunctionRecord in_force(const Version& version, const FunctionRecord& latest) const;
  int kept(const FunctionRecord& latest, std::uint64_t version) const;
  enum class Seating { kNone, kGivesBack, kKeeps };  // fewer seats than it asked for before; as many or more
  Seating seating_of(const Version& version, const FunctionRecord& latest) const;
  struct Held {
    bool has_others = false;  // other seats than before
    bool is_open = false;     // somebody's seats are to be found: what it gave back, or what it lacks
  };
  Held hold_seats(const Version& version, const FunctionRecord& latest);
  bool renew(const std::string& function);
  void tell_flow(const Version& version, const RegisteredFunction& latest, bool has_other_seats);
  FlowSpec spec_of(const RegisteredFunction& flow, FlowId family) const;
  void remove_flow(const std::string& function, std::uint64_t version);

  const Ports ports_;
  std::map<std::string, Known> known_;  // by function; those that have anything
};

// The tags that a version keeps as they were, and those that follow the function's.
FunctionRecord version_of(const FunctionRecord& latest, std::uint64_t number);

}  // namespace fairlead
