// The functions a node knows, by name and by flow, with their counters. A function keeps its FlowId while it exists; a
// deleted and re-created one gets a new one.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "gateway/node_service.h"
#include "model/function.h"
#include "node/kernel_tasks.h"
#include "node/tenants.h"

namespace fairlead {

struct RegisteredFunction {
  FlowId flow;
  FunctionRecord record;
  FunctionStats stats;
  std::shared_ptr<const BundledTask> kernel_task;  // when it is one; shared with what is being started
};

// The scheduling view of a record. REQUIRES: its configuration was validated.
FlowSpec flow_spec(FlowId flow, const FunctionRecord& record, Tenants& tenants);

class Functions {
 public:
  // REQUIRES: the name is free
  RegisteredFunction& add(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  void remove(const std::string& name);

  RegisteredFunction* find(const std::string& name);
  RegisteredFunction* find(FlowId flow);
  Result<RegisteredFunction*> get(const std::string& name);  // kNotFound names the function

  const std::map<std::string, RegisteredFunction>& all() const { return by_name_; }
  std::vector<std::string> code_paths() const;

  // A name that is being created or changed cannot be created or changed again: kConflict.
  Status begin_change(const std::string& name);
  void end_change(const std::string& name) { changing_.erase(name); }

 private:
  std::map<std::string, RegisteredFunction> by_name_;
  std::unordered_map<FlowId, RegisteredFunction*> by_flow_;  // into by_name_, whose nodes do not move
  std::set<std::string> changing_;
  std::uint64_t last_flow_ = 0;
};

// Counts a finished invocation.
void count(FunctionStats& stats, const Complete& complete);

}  // namespace fairlead
