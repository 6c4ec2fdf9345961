// The PTX machine: loads PTX text and executes its kernels on the CPU, a warp (32 lanes) at a time. Public interface of
// softgpu/ptx; everything else in that folder is private to it. Knows nothing of contexts, streams or processes: the
// driver (softgpu/driver) owns memory, order and time.
//
// Threads: a Module and its Kernels are immutable after load and may be run from many threads at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/ptx/heap.h"
#include "softgpu/ptx/texture.h"

namespace softgpu::ptx {

// Which device addresses exist. Implemented by the driver. A device address is a host virtual address inside the
// driver's device window, so an access that passes the check is a plain load or store.
class AddressSpace {
 public:
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // one past the last byte
  };
  virtual ~AddressSpace() = default;

  // The live allocation that contains `address`, or an empty extent. Thread-safe. The machine caches extents and asks
  // again whenever epoch() has changed.
  virtual Extent find(std::uint64_t address) const = 0;
  virtual std::uint64_t epoch() const = 0;
};

// Memory for a module, taken from the device.
class ModuleMemory {
 public:
  virtual ~ModuleMemory() = default;
  // For .global and .const variables. 0 when the device is full.
  virtual std::uint64_t allocate(std::size_t bytes) = 0;
  virtual void release(std::uint64_t address) = 0;
  // For a .managed variable: zeroed memory at an address that the host may use, too. It belongs to this object, which keeps
  // it as long as the module lives. Address 0 when there is none left.
  struct Managed {
    std::uint64_t address = 0;
    bool is_new = true;  // false: a variable that another module shares; it has its content
  };
  virtual Managed allocate_managed(std::string_view name, std::size_t bytes) = 0;
  // Where malloc in kernels takes its blocks; asked for when a module that calls it is loaded, and outlives the module.
  // Null when the device is full.
  virtual DeviceHeap* kernel_heap() = 0;
};

// Why a module was refused. `line` is the PTX line; the message names the instruction or directive.
struct LoadError {
  enum class Kind { kSyntax, kUnsupported, kUnresolvedSymbol, kOutOfMemory };
  Kind kind = Kind::kSyntax;
  int line = 0;
  std::string message;
};

struct Parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
};

struct KernelInfo {
  std::string name;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t static_shared_bytes = 0;
  std::size_t local_bytes = 0;     // per thread
  std::size_t constant_bytes = 0;  // the module's .const
  unsigned registers = 0;          // an estimate: 32-bit registers per thread
  unsigned max_threads = 1024;     // .maxntid / .reqntid, else the hardware's
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Launch {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;  // KernelInfo::parameter_bytes of them, laid out by KernelInfo::parameters
  bool cooperative = false;               // all blocks co-resident; grid-wide synchronisation allowed
  unsigned workers = 1;                   // host threads that execute blocks
  // Host time after which the launch faults with kLaunchTimeout; `pause` may move it. Null: never.
  const std::atomic<std::uint64_t>* deadline_ns = nullptr;
  // When one of them becomes true the launch ends early with kCancelled.
  const std::atomic<bool>* cancel = nullptr;
  const std::atomic<bool>* also_cancel = nullptr;
  // Called by every thread that executes blocks, before it starts one and whenever blocks are suspended; may block.
  const std::function<void()>* pause = nullptr;
  unsigned multiprocessors = 1;            // %nsmid; block i runs on multiprocessor i modulo this
  std::uint64_t grid_id = 0;               // %gridid
  const TextureTable* textures = nullptr;  // null: there are no texture and surface objects
};

enum class FaultKind {
  kNone,
  kIllegalAddress,      // CUDA_ERROR_ILLEGAL_ADDRESS, 700
  kMisalignedAddress,   // 716
  kLaunchTimeout,       // 702
  kAssert,              // 710
  kIllegalInstruction,  // 715, `trap` is 719 kLaunchFailed
  kLaunchFailed,        // 719
  kInvalidPc,           // 718
  kCancelled,
};

// What a launch did. Counts are exact and independent of `workers`; the time model is computed from them.
struct Outcome {
  FaultKind fault = FaultKind::kNone;
  std::uint64_t fault_address = 0;
  std::string fault_detail;  // kernel, PTX line, block and thread of the first fault
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;
  std::uint64_t global_bytes = 0;  // moved by loads, stores and atomics on global memory
};

class Module;

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const KernelInfo& info() const = 0;

  // Translates the kernel to native code, once; run() does it otherwise. Of a large module most kernels never run, so
  // loading the module does not. Thread-safe.
  virtual void make_ready() const = 0;
  virtual bool is_ready() const = 0;

  // Executes the launch to its end or first fault. REQUIRES: block size within KernelInfo::max_threads, parameters
  // complete (the driver has checked both).
  virtual Outcome run(const AddressSpace& memory, const Launch& launch) const = 0;
};

struct GlobalVariable {
  std::uint64_t address = 0;
  std::size_t size = 0;
};

class Module {
 public:
  virtual ~Module() = default;                                    // releases the module's global memory
  virtual const Kernel* kernel(std::string_view name) const = 0;  // null when absent
  virtual const GlobalVariable* global(std::string_view name) const = 0;
  virtual std::vector<std::string> kernel_names() const = 0;
};

struct LoadResult {
  std::unique_ptr<Module> module;  // null on error
  LoadError error;
};

// Parses, checks and decodes `text` (NUL-terminated or not). Every instruction the machine lacks is refused here, by
// name and line, never at run time. `memory` must outlive the module. Sink for device printf: `print` is called with
// complete lines, from any worker thread, one call at a time.
LoadResult load_module(std::string_view text, ModuleMemory& memory, std::function<void(std::string_view)> print);

}  // namespace softgpu::ptx
