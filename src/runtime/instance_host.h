// Carries out what the core decided about instances: starts a function's process in its sandbox, hands it invocations
// through the Lambda Runtime API, collects its log, kills it. No decisions here.
//
// Threads: everything on the io_context's thread. Callbacks run on it, never from inside a call of this class.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "model/answer_stream.h"
#include "model/egress_list.h"
#include "model/invocation.h"
#include "model/secret_reference.h"
#include "model/session_memory.h"
#include "runtime/cgroup.h"
#include "runtime/uid_pool.h"

namespace fairlead {

// How an instance's processes reach the node's ShimHost (runtime/shim/shim_host.h).
struct ShimAccess {
  std::string library;      // libfairlead-shim.so on the host, preloaded into every process of the sandbox
  std::string socket;       // on the host
  std::uint64_t token = 0;  // what its processes show there
};

// Everything a sandbox is built from. The environment is complete: nothing is inherited.
struct InstanceSpec {
  InstanceId instance;
  std::string function;
  std::string arn;
  std::string version = "$LATEST";
  std::string handler;
  std::string code_path;                           // mounted read-only at /var/task; `bootstrap` is executed there
  std::optional<FileIdentity> code_identity;       // of an author's own folder: no start if another is found there
  std::map<std::string, std::string> environment;  // the author's and the platform's, AWS_* excluded (added here)
  Bytes memory_limit{0};       // host memory (cgroup where the machine has it, else RLIMIT_DATA); 0: none
  Bytes tmp_limit = mib(512);  // private /tmp
  std::size_t max_processes = 256;
  EgressTerms egress;  // where its own connections may lead; none: it has no way out
  struct Bind {
    std::string source;
    std::string target;
    bool writable = false;
    bool as_owner = false;  // as MountBind has it
  };
  std::optional<ShimAccess> shim;
  std::vector<Bind> binds;          // GPU libraries, device files, the software GPU's state folder
  std::vector<SecretFile> secrets;  // in kSecretsDir

  // Of a function that is an OCI image: run by crun in the sandbox, with the image as its root. code_path means nothing.
  struct Container {
    std::string rootfs;                  // the unpacked image
    std::vector<std::string> arguments;  // REQUIRES: not empty
    std::string working_directory;       // "": /
    std::uint32_t uid = 0;               // inside
    std::uint32_t gid = 0;
    std::optional<std::uint16_t> http_port;  // an adapter passes invocations on to it, unless the program polls itself
    std::string http_health;                 // path that says 200 when the program is ready; "": it is when it listens
  };
  std::optional<Container> container;
};

struct Answer {
  InvocationId invocation;
  bool is_error = false;
  std::string content_type;
  std::string payload;
  bool was_streamed = false;    // it went to the request's stream; `payload` is only what went wrong then
  Failure failure;              // with is_error, instead of a payload: what the runner says
  bool is_nodes_fault = false;  // with a failure: neither its function nor its caller could help it
  std::optional<Duration> first_byte = std::nullopt;  // of one that was streamed: from delivery
};

struct ExitInfo {
  std::optional<int> exit_status;  // one of these two
  std::optional<int> signal;
  std::string reason;              // "exit status 3", "signal: killed", "exec /var/task/bootstrap: Permission denied"
  std::string init_error_payload;  // what it said of its failed start itself (POST /runtime/init/error); empty: nothing
  Failure init_failure = {};       // what its runner says of it; empty: `reason` is all
  bool is_nodes_fault = false;     // the node could not start or keep it, whatever its function does
};

// Why an instance that has ended did not get ready, for people: the runner's words, those it said itself, or how it ended. At most 300 bytes.
std::string words_of_failed_start(const ExitInfo& exit);

struct InstanceEvents {
  std::function<void(InstanceId)> next;  // it waits for an invocation: ready at the first, idle at each later one
  std::function<void(InstanceId, Answer)> answered;
  std::function<void(InstanceId, ExitInfo)> gone;  // exactly once per started instance; nothing follows
  // A kernel task's: what of its constants is on the device, after the start and whenever it changes; before, once, how much
  // memory its calls need.
  std::function<void(InstanceId, const SessionResidence&)> residence = {};
  std::function<void(InstanceId, const SessionMemory&)> session_memory = {};
  std::function<void(InvocationId)> loaded = {};  // a call's constants, which were not all there, are
  std::function<void()> able_again = {};          // to start instances: another spawner serves
  // No event: whether anybody still waits for it. Empty: somebody does.
  std::function<bool(InvocationId)> is_wanted = {};
};

struct DeliverRequest {
  InvocationId id;
  Invocation invocation;
  std::int64_t deadline_epoch_ms = 0;
  std::shared_ptr<AnswerStream> stream = {};  // as InvokeRequest has it
  Delivery delivery = {};
};

struct InstanceStats {
  std::string log_tail;  // last 4 KiB since the current or last delivery
  Bytes memory_peak{0};
  std::int64_t pid = 0;
  std::int64_t init_pid = 0;  // the ancestor of all its processes; 0: it is being started
};

struct InstanceHostOptions {
  std::string state_dir;          // sandboxes and logs live below it
  std::string log_dir;            // one file per function, rotated
  Bytes log_file_limit = mib(8);  // then rotated once: at most twice this per function
  Bytes log_rate_limit = mib(4);  // per instance and second; what exceeds it is dropped and counted in the log
  bool use_cgroups = true;
  std::string spawner_program;  // what is started as the next spawner when one ends (runtime/spawner.h); "": nothing
  Duration spawner_patience = std::chrono::seconds(30);  // a spawner that says nothing for so long is replaced
  std::shared_ptr<UidPool> uids = {};                    // of a node run by root; null: one user has all instances
  CpuShare cpu = {};                                     // of each instance
  std::vector<EgressGrant> egress = {};                  // what tenants' functions may have of the network
  std::string egress_obstacle = {};                      // why this machine gives none; "": it does
};

class InstanceHost {
 public:
  // Forks the spawner, so construct it before any thread exists.
  static Result<std::unique_ptr<InstanceHost>> create(boost::asio::io_context& io, InstanceHostOptions options,
                                                      InstanceEvents events);
  virtual ~InstanceHost() = default;  // kills and reaps everything

  // Failures to start arrive as gone().
  virtual void start(InstanceSpec spec) = 0;
  // REQUIRES: the instance waits in `next`.
  virtual void deliver(InstanceId instance, DeliverRequest request) = 0;
  // SIGKILL to the whole sandbox; gone() follows. Unknown or already gone: no effect.
  virtual void kill(InstanceId instance) = 0;
  virtual InstanceStats stats(InstanceId instance) const = 0;
  virtual std::size_t live() const = 0;
  // Why no instance can be started now; "": one can.
  virtual std::string obstacle() const = 0;
  virtual std::uint64_t spawner_restarts() const = 0;
};

}  // namespace fairlead
