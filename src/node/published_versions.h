// The published versions of functions and the aliases that lead to them: kept in memory and in the store, and flows of their own once they
// are called.
//
//   publish ──written──> version 3 ──its first call──> a flow in the family of $LATEST's ──> instances of its own
//
// What is a version's own: code, handler, runtime, memory, timeout, environment (of a secret its name, not its value) and what its program
// needs of a device (kVersionTags). What is the function's, and one for all its versions: tenant, weight, consent to models, reserved
// concurrency, event configuration, log, secrets' values. $LATEST alone has seats, quotas and sizes that the node finds.
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
    const Shares& shares;
    std::function<void(const RegisteredFunction&)> removed;  // a flow of a version, before it is forgotten
  };
  explicit PublishedVersions(Ports ports) : ports_(std::move(ports)) {}

  // After the functions, at the start. `task_of`: of a version that is a kernel task, what runs it.
  using TaskOf = std::function<std::shared_ptr<const BundledTask>(const FunctionRecord&)>;
  void recover(PublishedState state, const TaskOf& task_of);

  // Those of one function, as another node left them.
  void replace(const std::string& function, PublishedState state, const TaskOf& task_of);

  // The flow that a call of the version goes to, which is made where there is none yet. Null: no such version. 0: $LATEST's.
  RegisteredFunction* flow_of(const std::string& function, std::uint64_t version);
  void function_changed(const std::string& function);  // what its versions take over from it may be another
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
  FlowSpec spec_of(const RegisteredFunction& flow, FlowId family) const;
  void remove_flow(const std::string& function, std::uint64_t version);

  const Ports ports_;
  std::map<std::string, Known> known_;  // by function; those that have anything
};

// The tags that a version keeps as they were, and those that follow the function's.
FunctionRecord version_of(const FunctionRecord& latest, std::uint64_t number);

}  // namespace fairlead
