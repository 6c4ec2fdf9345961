// What the gateway asks of the node. Implemented by src/node, faked in the gateway's tests. HTTP stays on this side,
// scheduling on the other.
//
// Threads: calls and callbacks on the io_context's thread. A callback may run inside the call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/core.h"
#include "model/function.h"
#include "store/store.h"

namespace fairlead {

struct InvokeRequest {
  std::string function;  // bare name
  std::string payload;
  std::string client_context;     // decoded
  std::string sdk_invocation_id;  // amz-sdk-invocation-id; a repeat attaches to the running invocation
  std::string trace_id;
  bool want_log_tail = false;
};

struct InvokeReply {
  std::string request_id;
  std::string payload;
  std::string content_type;
  std::string function_error;  // "" | "Unhandled" | "Handled"
  std::string log_tail;
  StartKind start = StartKind::kWarm;
  Duration queue_time{0};
  Duration exec_time{0};
  GpuId gpu;
};

struct FunctionStats {
  std::uint64_t invocations = 0, errors = 0, timeouts = 0, crashes = 0, cold_starts = 0, warm_starts = 0;
  Duration service{0};                            // GPU time charged
  Duration queue_time{0};                         // summed
  std::vector<std::uint64_t> duration_histogram;  // counts per kDurationBucketsSeconds, the last one +Inf
};
inline constexpr double kDurationBucketsSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,    1,     2.5,    5,     10,   30,    60,   300};

struct FunctionStatus {
  std::string name;
  FlowView flow;
  FunctionStats stats;
  std::size_t instances_idle = 0, instances_busy = 0, instances_starting = 0;
};

struct GpuStatus {
  GpuView view;
  std::string name;
  std::string uuid;
  Bytes memory_total{0}, memory_used{0};
  double utilisation = 0;  // 0-1, last monitor period
};

struct NodeStatus {
  std::string version;
  std::string policy;
  Duration uptime{0};
  Duration global_virtual_time{0};
  bool draining = false;
  std::size_t queued = 0;
  CoreCounters counters;
  std::vector<FunctionStatus> functions;  // by name
  std::vector<GpuStatus> gpus;
  std::vector<InstanceView> instances;
  Bytes resident{0};
};

struct CodeSource {    // one of the two
  std::string zip;     // raw bytes of a zip file
  std::string folder;  // absolute path on the node's machine; admin clients on loopback or the unix socket only
};

class NodeService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~NodeService() = default;

  // Invocation. The returned handle cancels what is still queued (the client went away).
  using CancelHandle = std::function<void()>;
  virtual CancelHandle invoke(InvokeRequest request, Callback<InvokeReply> done) = 0;
  virtual void invoke_event(InvokeRequest request, Callback<std::string> accepted) = 0;  // request id, once durable
  virtual Status check_invoke(const std::string& function) = 0;                          // DryRun

  // Functions.
  virtual void create_function(std::string name, FunctionConfig config, CodeSource code,
                               Callback<FunctionRecord> done) = 0;
  virtual Result<FunctionRecord> get_function(const std::string& name) = 0;
  virtual std::vector<FunctionRecord> list_functions() = 0;  // by name
  virtual void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) = 0;
  virtual void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) = 0;
  virtual void delete_function(std::string name, std::function<void(Status)> done) = 0;
  virtual void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) = 0;

  // Operations.
  virtual NodeStatus status() = 0;
  virtual Result<std::string> log(const std::string& function, std::size_t tail_bytes) = 0;
  virtual void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) = 0;
};

}  // namespace fairlead
