// What the node and a device server say to each other. A message is one packet of a SOCK_SEQPACKET socket pair, or, when
// it is larger than one, a memory file whose descriptor is the packet's first (runtime/device_server/channel.h); further
// descriptors are objects and module images, which frames name by their index. Both ends are one program of one version.
//
//   server ServerReady ────────> node     once: its context is there
//   server <─ RegisterSession    node     a kernel task: graph, modules, constants
//   server ModuleTrial ────────> node     modules, if they are tried first, and the range they are to be fenced for
//   server <── ModulesMeasured   node     how much room their variables need
//   server VariablesPlaced ────> node     where that is
//   server <──── ModulesFenced   node     what the driver would get
//   server <────── TrialEnded    node     whether it may
//   server SessionReady ───────> node
//   server <───────── RunCall    node     a session's call; its turn comes when the session's earlier ones are over
//   server CallLoaded ─────────> node     of a call that had to load constants: they are there, its kernels begin
//   server CallDone ───────────> node     outputs, or an error, or objects whose bytes it needs once more
//   server ConstantsMissing ───> node     when what of sessions' constants is not on the device has changed
//   server <───── FetchObject    node     an output's bytes, into a descriptor
//   server ObjectFetched ──────> node
//   server <────── DropObject    node     its owner deleted it
//   server <───── DropSession    node
//   server <────── PaceSession    node     its calls need places on the device (runtime/device_server/call_gates.h)
//   server <──────── OpenRing    node     memory through which calls hand tensors to those of other servers
//   server <─────── CloseRing    node
//   server ServerFault ────────> node     a kernel faulted, the context is lost: the server ends
//
// A process that tries modules (runtime/device_server/module_trial.h) gets one ModuleTrial. Where they are to be fenced it
// says ModulesMeasured, gets VariablesPlaced and says ModulesFenced. Then it says TrialEnded of each module that it loads,
// in their order. The node passes frames on between it and the server.
//
// Objects are numbered by the node, one number per distinct content or output and process. The server says kMissing
// instead of keeping the node informed of what it forgot: what the node believes may be old.
//
// Threads: free functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/kernel_task.h"

namespace fairlead::wire {

inline constexpr std::int32_t kNoDescriptor = -1;

// An object whose bytes come with the message.
struct SuppliedObject {
  std::uint64_t object = 0;
  std::uint64_t bytes = 0;
  std::int32_t descriptor = kNoDescriptor;
  bool operator==(const SuppliedObject&) const = default;
};
struct BoundObject {
  std::uint32_t buffer = 0;
  std::uint64_t object = 0;  // 0: for an input, its bytes are inline; for an output, it is answered inline
  std::string bytes;         // inline inputs
  bool operator==(const BoundObject&) const = default;
};
struct ModuleImage {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::int32_t descriptor = kNoDescriptor;  // always there: the node does not know what the server has unloaded
  bool operator==(const ModuleImage&) const = default;
};

// A tensor in a slot of a ring (stage_ring.h): read from there, or written there, chunk for chunk.
struct RingSlot {
  std::uint32_t buffer = 0;
  std::uint32_t slot = 0;
  std::uint32_t start = 0;  // what the slot's word says before the first chunk
  std::uint64_t ring = 0;
  bool operator==(const RingSlot&) const = default;
};

struct RegisterSession {
  std::uint64_t session = 0;
  std::string tenant;  // whose it is: a server of several tenants keeps them apart
  std::string task;    // wire::encode(KernelTask)
  std::vector<ModuleImage> modules;
  std::vector<BoundObject> constants;
  std::vector<SuppliedObject> supplied;
  std::uint32_t most_width_percent =
      100;  // its kernels are not to be on more of the SMs at once, where the server can see to that
  bool operator==(const RegisterSession&) const = default;
};
struct DropSession {
  std::uint64_t session = 0;
  bool operator==(const DropSession&) const = default;
};
struct RunCall {
  std::uint64_t call = 0;
  std::uint64_t session = 0;
  std::vector<BoundObject> inputs;
  std::vector<BoundObject> outputs;
  std::vector<SuppliedObject> supplied;
  // Inputs that are in no other list; and outputs that are written to a ring as well. One whose object is 0 is not answered then.
  std::vector<RingSlot> ring_inputs, ring_outputs;
  bool operator==(const RunCall&) const = default;
};
struct OpenRing {          // descriptor 0 is its memory. A server that cannot open it says why (ServerFault), and ends
  std::uint64_t ring = 0;  // a number that the node uses once
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  bool operator==(const OpenRing&) const = default;
};
struct CloseRing {
  std::uint64_t ring = 0;
  bool operator==(const CloseRing&) const = default;
};
struct PaceSession {  // descriptor 0 is its page (wire/shim_page.h), 1 an eventfd that is rung when its gate opens
  std::uint64_t session = 0;
  bool whole = false;  // its kernels are not cut: calls are one piece each
  bool operator==(const PaceSession&) const = default;
};
struct FetchObject {  // descriptor 0 is where to
  std::uint64_t fetch = 0;
  std::uint64_t object = 0;
  bool operator==(const FetchObject&) const = default;
};
struct DropObject {
  std::uint64_t object = 0;
  bool operator==(const DropObject&) const = default;
};
// Modules that must be fenced and loaded elsewhere before they are loaded here.
struct ModuleTrial {
  struct Module {
    std::string sha256;  // of the code
    std::string code;    // the image as its owner sent it
    bool operator==(const Module&) const = default;
  };
  std::uint64_t session = 0;  // that waits for it
  std::vector<Module> modules;
  // The tenant's memory (gpu/fence/fence.h). range_bytes 0: the modules are loaded as they are, and the next three frames
  // are not sent.
  std::uint64_t range_base = 0, range_bytes = 0, guard_bytes = 0;
  std::uint32_t architecture = 0;  // of the device, 80: sm_80
  bool operator==(const ModuleTrial&) const = default;
};
struct ModulesMeasured {
  std::uint64_t session = 0;
  std::vector<std::uint64_t> variable_bytes;  // of each module of the trial
  bool operator==(const ModulesMeasured&) const = default;
};
struct VariablesPlaced {
  std::uint64_t session = 0;
  std::vector<std::uint64_t> addresses;  // of each module's variables; 0: it has none
  std::vector<std::uint64_t> to_load;    // modules, by their place in the ModuleTrial; the node says it to the process
  bool operator==(const VariablesPlaced&) const = default;
};
struct ModulesFenced {
  struct Bytes {  // of variables; what no piece covers is 0
    std::uint64_t offset = 0;
    std::string bytes;
    bool operator==(const Bytes&) const = default;
  };
  struct Module {
    std::string ptx;
    std::vector<Bytes> variables;
    bool operator==(const Module&) const = default;
  };
  std::uint64_t session = 0;
  std::vector<Module> modules;
  bool operator==(const ModulesFenced&) const = default;
};
struct TrialEnded {
  std::uint64_t session = 0;
  std::uint32_t module = 0;  // the last one tried, by its place in the ModuleTrial
  std::string error;         // empty: it may be loaded, and all before it
  bool operator==(const TrialEnded&) const = default;
};
using FrameToServer =
    std::variant<RegisterSession, DropSession, RunCall, FetchObject, DropObject, ModuleTrial, ModulesMeasured,
                 VariablesPlaced, ModulesFenced, TrialEnded, OpenRing, CloseRing, PaceSession>;

struct ServerReady {
  std::string device;
  std::uint64_t memory = 0;  // for objects and temporaries, at most
  bool operator==(const ServerReady&) const = default;
};
struct SessionReady {
  std::uint64_t session = 0;
  std::string error;  // empty: it is
  std::int64_t init_ns = 0;
  std::uint32_t width_percent = 100;  // of the device's SMs that its kernels are on at once, at most
  std::string why_not_narrower;       // where that is more than was asked for
  bool operator==(const SessionReady&) const = default;
};
// Since the server's start.
struct ServerCounters {
  std::uint64_t hits = 0, host_hits = 0, misses = 0, evictions = 0, write_backs = 0;
  std::uint64_t loaded_bytes = 0, written_back_bytes = 0;
  std::uint64_t device_used = 0, device_mapped = 0, host_used = 0;  // now
  std::uint64_t modules = 0;                                        // loaded now
  bool operator==(const ServerCounters&) const = default;
};
struct CallDone {
  enum class Outcome : std::uint32_t { kDone, kFailed, kMissing };
  std::uint64_t call = 0;
  Outcome outcome = Outcome::kDone;
  std::string error;                   // kFailed
  std::vector<std::uint64_t> missing;  // kMissing
  std::vector<BoundObject> outputs;    // those answered inline
  TaskPhases phases;
  std::int64_t gpu_ns = 0;          // kernels and copies
  std::uint64_t session_bytes = 0;  // device memory of this session's objects and temporaries
  ServerCounters counters;
  bool operator==(const CallDone&) const = default;
};
struct ObjectFetched {
  std::uint64_t fetch = 0;
  std::string error;
  bool operator==(const ObjectFetched&) const = default;
};
// Of each of these sessions, how much of its constants a call would have to bring to the device first.
struct ConstantsMissing {
  struct Session {
    std::uint64_t session = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Session&) const = default;
  };
  std::vector<Session> sessions;
  double bytes_per_second = 0;  // of the last large load; before that, assumed
  std::uint64_t resident = 0;   // constants of all sessions that are on the device
  bool operator==(const ConstantsMissing&) const = default;
};
struct CallLoaded {
  std::uint64_t call = 0;
  bool operator==(const CallLoaded&) const = default;
};
struct ServerFault {
  std::string error;
  std::vector<std::uint64_t> calls;  // that were on the device
  bool operator==(const ServerFault&) const = default;
};
using FrameToNode = std::variant<ServerReady, SessionReady, CallDone, ObjectFetched, ServerFault, ConstantsMissing,
                                 ModuleTrial, ModulesMeasured, VariablesPlaced, ModulesFenced, TrialEnded, CallLoaded>;

std::string encode(const FrameToServer& frame);
std::string encode(const FrameToNode& frame);
// kCorrupt: not such a frame.
Result<FrameToServer> decode_frame_to_server(std::string_view bytes);
Result<FrameToNode> decode_frame_to_node(std::string_view bytes);

}  // namespace fairlead::wire
