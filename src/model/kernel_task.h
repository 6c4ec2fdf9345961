// A kernel task: a function with no host code. A graph of GPU kernels over named buffers; what goes in and out are
// immutable objects, what lies between are only sizes (KaaS, Figure 7). Plain values: its description as its author
// registered it, the call that binds objects to its buffers, and what a device can be asked to run.
//
//   x (input) ──┐                                  scale: y = 2 * x      one launch, three arguments
//               ├─> scale ──> t (temporary) ──┐
//   w (constant)┘                             ├─> dot ──> y (output)
//
// Kernels run in the order they are listed, as far as anybody can see; two that touch no buffer of which one writes may
// run at once (dependencies()).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

// Bounds that input is checked against. Errors quote them.
inline constexpr std::size_t kMaxTaskKernels = 16384;
inline constexpr std::size_t kMaxTaskBuffers = 16384;
inline constexpr std::size_t kMaxTaskModules = 256;
inline constexpr std::size_t kMaxKernelArguments = 512;
inline constexpr std::size_t kMaxLiteralBytes = 4096;      // one literal, and all arguments of one kernel
inline constexpr std::size_t kMaxTaskNameLength = 256;     // of a buffer, a module
inline constexpr std::size_t kMaxKernelNameLength = 4096;  // mangled names of templates are long
inline constexpr std::size_t kMaxShapeDimensions = 32;
inline constexpr std::uint32_t kMaxTaskIterations = 1'000'000;
inline constexpr std::size_t kMaxObjectKeyLength = 256;  // bytes; letters, digits and "-_./:@"
inline constexpr std::size_t kMaxInlineBytes = 4 << 20;  // of one input or output that travels in the call itself
inline constexpr Bytes kMaxObjectBytes = gib(1024);

enum class ElementType { kBytes, kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF16, kBf16, kF32, kF64, kC64, kC128 };
std::string_view element_type_name(ElementType type);  // "bytes", "s32", "f32", ... "c64" is two f32
std::optional<ElementType> element_type_named(std::string_view name);
std::size_t element_bytes(ElementType type);  // 1 for kBytes
// Product of a shape times the element; nothing when that passes kMaxObjectBytes.
std::optional<Bytes> shape_bytes(ElementType type, const std::vector<std::uint64_t>& shape);

enum class BufferRole {
  kInput,      // an object, given at the call
  kConstant,   // an object, named at registration: the same for every call (weights)
  kOutput,     // becomes a new object
  kInOut,      // an object is copied into it, and its contents become a new object
  kTemporary,  // contents are nobody's before and after a call
};
std::string_view buffer_role_name(BufferRole role);  // "input", "constant", "output", "inout", "temporary"
std::optional<BufferRole> buffer_role_named(std::string_view name);

struct BufferSpec {
  std::string name;
  Bytes bytes{0};
  BufferRole role = BufferRole::kTemporary;
  ElementType type = ElementType::kBytes;  // for people and front ends only, as is the shape
  std::vector<std::uint64_t> shape;        // empty, or its product times the element is `bytes`
  std::string constant;                    // kConstant only: the key of its object
  bool zeroed = false;                     // kOutput, kTemporary: filled with zeros before every call

  bool operator==(const BufferSpec&) const = default;
};

// Where a kernel finds a buffer: its address plus `offset`.
struct BufferArgument {
  std::uint32_t buffer = 0;  // index in KernelTask::buffers
  std::uint64_t offset = 0;
  enum class Access { kByRole, kRead, kWrite, kReadWrite };
  Access access = Access::kByRole;  // by role: input and constant are read, all others read and written

  bool operator==(const BufferArgument&) const = default;
};

// By value, in the device's layout: a number, or a struct with buffer addresses inside it (a library's parameter block).
struct LiteralArgument {
  std::string bytes;
  struct Relocation {
    std::uint32_t at = 0;   // 8 bytes here are replaced by an address
    BufferArgument target;  // that of this buffer

    bool operator==(const Relocation&) const = default;
  };
  std::vector<Relocation> relocations;

  bool operator==(const LiteralArgument&) const = default;
};
using KernelArgument = std::variant<LiteralArgument, BufferArgument>;

using Dim3 = std::array<std::uint32_t, 3>;

struct KernelLaunch {
  std::uint32_t module = 0;  // index in KernelTask::modules
  std::string kernel;        // entry name in the module
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  // dynamic
  std::vector<KernelArgument> arguments;

  bool operator==(const KernelLaunch&) const = default;
};

// Code is identified by its content: two clients' "kernels.ptx" are two modules.
struct KernelModule {
  std::string name;    // a path in the bundle, or "fairlead:NAME" of the built-in library; for messages
  std::string sha256;  // 32 raw bytes, of the image; the image itself travels apart
  bool operator==(const KernelModule&) const = default;
};

struct KernelTask {
  std::vector<KernelModule> modules;
  std::vector<BufferSpec> buffers;
  std::vector<KernelLaunch> kernels;
  std::uint32_t iterations = 1;  // of the whole list

  bool operator==(const KernelTask&) const = default;
};

// ---- what it is checked against

struct KernelParameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  bool operator==(const KernelParameter&) const = default;
};
// What a module says of one of its entry points (gpu/kernel_image.h reads it, without a driver).
struct KernelSignature {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::uint32_t max_threads = 0;   // .maxntid; 0: the device's limit
  Dim3 required_threads{0, 0, 0};  // .reqntid; 0: any
  std::uint64_t static_shared_bytes = 0;
  bool operator==(const KernelSignature&) const = default;
};
struct DeviceLimits {
  Bytes memory{0};  // 0: not known, not checked
  Dim3 max_grid{2147483647, 65535, 65535};
  Dim3 max_block{1024, 1024, 64};
  std::uint32_t max_threads_per_block = 1024;
  std::uint64_t max_shared_bytes = 48 << 10;  // static and dynamic, opted in for where the device needs that
};

// Everything that can be said before anything runs: indices, names, sizes against the modules' own parameter tables,
// geometry against the device, relocations inside their literal, offsets inside their buffer, the sum of all buffers
// against the device's memory. kInvalidArgument or kTooLarge; the message names kernel ("kernels[3] (saxpy)"), argument,
// value and bound. REQUIRES: signatures[m] are those of modules[m].
Status validate_task(const KernelTask& task, const std::vector<std::vector<KernelSignature>>& signatures,
                     const DeviceLimits& limits);

// For each kernel the earlier ones it must follow, by index, ascending, without those that follow from others: two
// kernels are ordered when they touch one buffer and at least one of them writes it. REQUIRES: validate_task().
std::vector<std::vector<std::uint32_t>> dependencies(const KernelTask& task);

// Letters, digits and "-_./:@", 1 to kMaxObjectKeyLength bytes, no "//", no "." or ".." segment, not at the ends.
Status validate_object_key(std::string_view key);

// ---- a call

// One of the task's inputs or outputs at a call.
struct CallBinding {
  std::uint32_t buffer = 0;
  std::string key;    // of the object to read, or to create; empty: `bytes`, or for an output: answered inline
  std::string bytes;  // contents that travel with the call; at most kMaxInlineBytes
  bool operator==(const CallBinding&) const = default;
};
// Inputs and in-outs must be bound once each; in-outs give their new object a second binding in `outputs`. Outputs and
// in-outs without a key there are answered inline.
struct KernelTaskCall {
  std::vector<CallBinding> inputs;
  std::vector<CallBinding> outputs;
  bool operator==(const KernelTaskCall&) const = default;
};
// kInvalidArgument: names the buffer; unbound or bound twice, not an input or output, wrong size, overlapping outputs
// (two of one key), an output too large to be inline.
Status validate_call(const KernelTask& task, const KernelTaskCall& call);

// ---- an answer

// Where the time of a call went (KaaS, Figure 8), none of it negative. All of the device server but data_layer.
struct TaskPhases {
  Duration kernel_run{0};     // on the GPU, measured by events
  Duration kernel_init{0};    // modules loaded, entry points found, graph instantiated
  Duration device_malloc{0};  // memory made free or taken
  Duration device_copy{0};    // inputs to the device, inline outputs from it
  Duration data_layer{0};     // objects found, opened, mapped
  Duration overhead{0};       // what is left of the whole
  bool operator==(const TaskPhases&) const = default;
};
struct KernelTaskAnswer {
  struct Output {
    std::uint32_t buffer = 0;
    std::string key;    // or, when empty:
    std::string bytes;  // inline
    bool operator==(const Output&) const = default;
  };
  std::vector<Output> outputs;
  TaskPhases phases;
  bool operator==(const KernelTaskAnswer&) const = default;
};
// kInternal: an output that is none of the task's, is there twice, or has another size than its buffer.
Status validate_answer(const KernelTask& task, const KernelTaskAnswer& answer);

}  // namespace fairlead
