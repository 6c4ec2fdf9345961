// NodeWithoutProcesses with one GPU, "V100", that has seats, and who creates functions and gives them seats.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "node/function_control.h"
#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"
#include "store/test_folder.h"

namespace fairlead {

class NodeWithShares : public NodeWithoutProcesses {
 protected:
  NodeWithShares() {
    control.shares().configure({.mode = SharingMode::kNone, .policy = "fcfs", .keeps_instances = true});
    control.shares().add_device({.id = GpuId(1), .name = "V100", .uuid = "GPU-a", .memory = gib(16)}, 32, 2);
  }

  // Has seats as its tags say.
  Status admit(const std::string& name, std::map<std::string, std::string> tags) {
    FunctionRecord record{.name = name};
    record.config.tags = std::move(tags);
    return control.shares().admit(record, false);
  }
  // And is there.
  void add(const std::string& name, std::map<std::string, std::string> tags) {
    FunctionRecord record{.name = name};
    record.config.tags = std::move(tags);
    record.revision_id = "r1";
    ASSERT_TRUE(control.shares().admit(record, false));
    const RegisteredFunction& function = functions.add(std::move(record), nullptr);
    FlowSpec spec = flow_spec(function, tenants);
    control.shares().describe(name, spec);
    driver.core().add_function(spec);
  }
  std::size_t seats(const std::string& name) const {
    const auto entry = control.shares().entry(name);
    return entry ? entry->seats.size() : 0;
  }

  store::TestFolder folder;
  Worker worker{io};
  FakeStore store;
  mutable FunctionControl control{io,
                                  ImageStoreOptions{.state_dir = folder / "state"},
                                  worker,
                                  store,
                                  functions,
                                  tenants,
                                  request_ids,
                                  driver,
                                  [](const RegisteredFunction&) {}};
};

}  // namespace fairlead
