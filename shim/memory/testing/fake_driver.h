// A driver for unit tests: a few megabytes that stand for a device, and the rules of virtual memory enforced. Copies are
// carried out only when somebody waits for them, so an unmap that comes too early is caught every time.
//
// What breaks a rule is a line in violations(), not a crash. Not thread-safe but for what threads of a test need: every
// call takes one lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "shim/driver.h"

namespace fairlead::shim::testing {

class FakeDriver {
 public:
  // Takes the place of the driver, with a device of so many bytes. One at a time.
  explicit FakeDriver(std::size_t device_bytes);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  static FakeDriver& get();
  // This thread's current contexts; a new thread has kContext.
  static std::vector<CUcontext>& current();

  // The n-th call of the symbol from now on (1: the next) answers this.
  void fail(Symbol symbol, int nth, CUresult result);
  void fail_no_more() { failures_.clear(); }
  // Work that does not end until it is told to.
  void start_work(CUcontext context);
  void end_work(CUcontext context);

  // The program's view of memory; a violation if it is not mapped, accessible and idle.
  void poke(CUdeviceptr address, std::size_t bytes, unsigned seed);
  bool holds(CUdeviceptr address, std::size_t bytes, unsigned seed);

  std::size_t device_bytes() const { return device_bytes_; }
  std::size_t used() const;      // of the device
  std::size_t reserved() const;  // addresses
  std::size_t pending() const;   // copies not carried out
  int calls(Symbol symbol) const;
  std::vector<std::string> violations() const;

  static inline CUcontext const kContext = reinterpret_cast<CUcontext>(std::uintptr_t{0x100});
  static inline CUcontext const kOther = reinterpret_cast<CUcontext>(std::uintptr_t{0x200});

  // ---- What the driver's functions do ----
  CUresult enter(Symbol symbol);
  void violate(const std::string& text) { violations_.push_back(text); }
  CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment);
  CUresult free_address(CUdeviceptr address, std::size_t bytes);
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle);
  CUresult unmap(CUdeviceptr address, std::size_t bytes);
  CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count);
  CUresult copy(CUdeviceptr device, void* host, std::size_t bytes, bool to_device, CUstream stream);
  CUresult run(CUstream stream);
  bool working(CUcontext context) const { return working_.count(context) != 0; }
  CUresult allocate(CUdeviceptr* address, std::size_t bytes, bool managed);
  CUresult free_plain(CUdeviceptr address);
  CUresult prefetch(CUdeviceptr address, std::size_t bytes, bool to_device);
  void* allocate_host(std::size_t bytes);
  CUresult free_host(void* address);
  CUevent create_event();
  CUresult destroy_event(CUevent event);
  std::uint64_t next_handle() { return ++last_handle_; }

  std::function<void()> on_call;  // at the begin of every call
  Mutex mutex;
  std::size_t managed_on_device = 0;
  bool has_v2_prefetch = true;

 private:
  struct Physical {
    explicit Physical(std::size_t size) : bytes(size), data(new unsigned char[size]()) {}
    std::size_t bytes;
    std::unique_ptr<unsigned char[]> data;
  };
  struct Mapping {
    std::size_t bytes = 0;
    std::shared_ptr<Physical> memory;
    std::vector<int> devices;
  };
  struct Copy {
    CUdeviceptr device;
    unsigned char* host;
    std::size_t bytes;
    bool to_device;
    CUstream stream;
  };
  std::pair<const CUdeviceptr, Mapping>* mapping_at(CUdeviceptr address, std::size_t bytes);
  unsigned char* data_at(CUdeviceptr address, std::size_t bytes);

  const std::size_t device_bytes_;
  CUdeviceptr next_address_ = 0x700000000000;
  std::uint64_t last_handle_ = 0x1000;
  std::map<CUdeviceptr, std::size_t> reservations_;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> handles_;
  std::map<CUdeviceptr, Mapping> mappings_;
  std::map<CUdeviceptr, std::pair<std::size_t, bool>> plain_;  // cuMemAlloc and managed: bytes, managed
  std::vector<Copy> copies_;
  // What is left of these ends with the driver, as it does with a context or a process.
  std::map<void*, std::unique_ptr<unsigned char[]>> host_memory_;
  std::map<CUevent, std::unique_ptr<void*>> events_;
  std::set<CUcontext> working_;
  std::map<Symbol, int> calls_;
  std::map<Symbol, std::map<int, CUresult>> failures_;
  std::vector<std::string> violations_;
  std::size_t plain_bytes_ = 0;
};

}  // namespace fairlead::shim::testing
