// Creates, changes and deletes functions. Every change is validated, made durable, and only then seen by the core.
//
//   create / update ──> valid? ──> name taken for the change ──> code prepared on a worker ──> written ──> core told ──> done
//
// One change of a function at a time: another one meanwhile is kConflict.
//
// Threads: everything on the io_context's thread; code is unpacked, images are fetched, on workers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "edge/node_service.h"
#include "model/in_place.h"
#include "node/core_driver.h"
#include "node/functions.h"
#include "node/published_versions.h"
#include "node/request_id.h"
#include "node/shares.h"
#include "node/tenants.h"
#include "node/worker.h"
#include "store/image_store.h"
#include "store/shared_store.h"
#include "store/store.h"

namespace fairlead {

class FunctionControl {
 public:
  template <typename T>
  using Callback = NodeService::Callback<T>;
  // Called with the function, or with a version of it that was called, before it is forgotten.
  using Removed = std::function<void(const RegisteredFunction&)>;

  // `worker` unpacks code. `images.state_dir` is the node's. All that is named here must outlive it.
  FunctionControl(boost::asio::io_context& io, ImageStoreOptions images, Worker& worker, Store& store,
                  Functions& functions, Tenants& tenants, RequestIds& request_ids, CoreDriver& driver, Removed removed);
  ~FunctionControl();  // ends what is being fetched

  // With a common store: code goes there before a function does, and seats, which are this node's own, do not.
  void share(SharedStore& store) { shared_ = &store; }
  // Which folders may run in place; none until it is called.
  void set_in_place(InPlaceTerms terms) { in_place_ = std::move(terms); }

  // Those that the store holds, at the start; the folders of no function, and of no version of one, are removed, unless the store may lack
  // functions (StateDamage). With a common store, `late` are those whose code is not here.
  Status recover(std::vector<FunctionChange>* late = nullptr);

  // What other nodes did. Code of these that is not here, from the common store or, of an image, from its registry.
  void fetch_code(std::vector<FunctionRecord> records, std::function<void(Status)> done);
  Status take_in(FunctionRecord record);  // REQUIRES: its code is here. kResourceExhausted: no room for its share
  void take_in_published(const std::string& function, PublishedState published);
  void drop(const std::string& name) { forget(name); }  // REQUIRES: it is there

  void create(std::string name, FunctionConfig config, CodeSource code, Callback<FunctionRecord> done);
  void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done);
  void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done);
  void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done);
  void remove(std::string name, std::function<void(Status)> done);

  // A function that no client can call, and that is on no disk: an instance of it starts in the seats of its share. kInvalidArgument: they
  // are not there. REQUIRES: its configuration was validated; the name is free.
  Status add_trial(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  // What it runs is ended, and its seats are free. REQUIRES: it was added.
  void remove_trial(const std::string& name);

  // As Shares::scale(), and the core is told: of a share that is another than before, all instances are replaced. Of `parked_to_stop` those go that
  // have no seat then and run nothing. Seats that it gives back are others' at once, where they wait for them.
  Shares::Placed scale(const std::string& name, const Share& share, const Shares::Wanted& wanted,
                       std::vector<InstanceId> parked_to_stop = {});

  Shares& shares() { return shares_; }
  PublishedVersions& versions() { return versions_; }
  // After devices came or went: the core is told of seats that are others now.
  void settle_shares();

 private:
  struct PreparedCode {
    CodeBundle bundle;
    std::shared_ptr<const BundledTask> kernel_task;
  };
  Status keep_code(const CodeBundle& bundle, std::string_view zip);
  void prepare_code(const FunctionConfig& config, CodeSource code, std::function<void(Result<PreparedCode>)> done);
  void prepare_in_place(const FunctionConfig& config, CodeSource code, std::function<void(Result<PreparedCode>)> done);
  void save(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task, Callback<FunctionRecord> done);
  FlowSpec spec_of(const RegisteredFunction& function);
  void tell_seats(const std::vector<std::string>& changed, std::vector<InstanceId> parked_to_stop = {});
  void keep_seats(const std::string& name);
  void forget(const std::string& name);
  Status check_hold(const FunctionRecord& record, const BundledTask* task);
  void tell_core(const FunctionRecord& record, std::shared_ptr<const BundledTask> kernel_task);

  const std::string state_dir_;
  Worker& worker_;
  Store& store_;
  Functions& functions_;
  Tenants& tenants_;
  RequestIds& request_ids_;
  CoreDriver& driver_;
  const Removed removed_;
  SharedStore* shared_ = nullptr;  // none: this node has a store of its own
  InPlaceTerms in_place_{.obstacle = "this node was not told which folders may", .state_dir = {}, .volumes = {}};
  Shares shares_;
  PublishedVersions versions_;
  std::unique_ptr<ImageStore> images_;
  Worker image_worker_;  // apart, since fetching an image takes minutes
};

}  // namespace fairlead
