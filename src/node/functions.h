// The functions a node knows, by name and by flow, with their counters. A function keeps its FlowId while it exists; a
// deleted and re-created one gets a new one. Tasks of one-off requests are functions that only their flow leads to, and
// the name that their content gives them: no client can name, see or change them.
//
// A published version that was called is a flow of its own: its own instances and its own queue, in the family of the function's flow, so
// that a function is one in all that is shared, however many versions of it are called.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "decide/core/core.h"
#include "edge/node_service.h"
#include "model/function.h"
#include "node/kernel_tasks.h"
#include "node/tenants.h"

namespace fairlead {

struct RegisteredFunction {
  FlowId flow;
  FunctionRecord record;
  FunctionStats stats;
  std::shared_ptr<const BundledTask> kernel_task;  // when it is one; shared with what is being started
  bool requested = false;                          // of a one-off request
  bool is_leaving = false;                         // its removal is being written: it accepts no events any more
  std::string start_failure;   // why its last instance did not get ready; "": it did, or none has started
  GpuId pipeline_device = {};  // of a pipeline: what its slices together are for the core (pipelines.h)

  bool is_pipeline() const { return kernel_task && kernel_task->pipeline; }
};
// The device of a pipeline's function; no device of the machine has such a number.
inline constexpr std::uint64_t kFirstPipelineDevice = std::uint64_t{1} << 40;
inline bool is_pipeline_device(GpuId gpu) {
  return gpu.value() >= kFirstPipelineDevice;
}
std::size_t pipeline_seats(const PipelineProgram& program);  // requests that are in it at a time

// "hello"; of a version "hello:3": for people, and for what is kept by the name of what runs.
std::string flow_name(const FunctionRecord& record);

// The scheduling view of a record. REQUIRES: its configuration was validated.
FlowSpec flow_spec(const RegisteredFunction& function, Tenants& tenants);

class Functions {
 public:
  Functions();

  // REQUIRES: the name is free
  RegisteredFunction& add(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  void remove(const std::string& name);

  RegisteredFunction* find(const std::string& name);
  RegisteredFunction* find(FlowId flow);
  Result<RegisteredFunction*> get(const std::string& name);  // kNotFound names the function

  const std::map<std::string, RegisteredFunction>& all() const { return by_name_; }
  std::vector<std::string> code_paths() const;

  // REQUIRES: the name is free, that of a request (kept_tasks.h)
  RegisteredFunction& add_requested(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  void remove_requested(const std::string& name);
  RegisteredFunction* find_requested(const std::string& name);
  const std::map<std::string, RegisteredFunction>& requested() const { return requested_; }

  // REQUIRES: add_version: the version has no flow; the function is there, or (the second) it has.
  RegisteredFunction& add_version(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  void remove_version(const std::string& name, std::uint64_t version);
  RegisteredFunction* find_version(const std::string& name, std::uint64_t version);
  RegisteredFunction* find_flow(const std::string& flow_name);                             // of a function or a version
  const std::map<std::string, RegisteredFunction>& versions() const { return versions_; }  // by flow_name()
  // Its flows, $LATEST's first. Empty: there is no such function.
  std::vector<RegisteredFunction*> family(const std::string& name);

  // Counts a finished invocation; service that was charged after it. No effect when the function is not there any more.
  void count(const Complete& complete);
  void add_service(FlowId flow, Duration service);
  void start_ended(FlowId flow, std::string failure);                        // of an instance; "": it is ready
  void count_first_byte(FlowId flow, Duration after);                        // of an answer that was streamed
  const FunctionStats& requested_stats() const { return requested_stats_; }  // of all one-off requests, ever

  // A name that is being created or changed cannot be created or changed again: kConflict.
  Status begin_change(const std::string& name);
  bool is_changing(const std::string& name) const { return changing_.contains(name); }
  void end_change(const std::string& name) { changing_.erase(name); }

 private:
  using ByName = std::map<std::string, RegisteredFunction>;
  RegisteredFunction& add_to(ByName& functions, FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task);
  void remove_from(ByName& functions, const std::string& name);

  ByName by_name_;
  ByName requested_;
  ByName versions_;
  std::unordered_map<FlowId, RegisteredFunction*> by_flow_;  // into the three above, whose nodes do not move
  FunctionStats requested_stats_;
  std::set<std::string> changing_;
  std::uint64_t last_flow_ = 0;
};

}  // namespace fairlead
