// Memory and events shared between processes. The documentation of cuIpc*, cuMemExportToShareableHandle and cuMemPool*.
#include <unistd.h>

#include "softgpu/conformance/child.h"
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/mapping.h"
#include "softgpu/conformance/scene.h"

namespace softgpu::conformance {
namespace {

constexpr int kCount = 1000;

std::vector<unsigned> indices() {
  std::vector<unsigned> values(kCount);
  for (unsigned i = 0; i < kCount; ++i) values[i] = i;
  return values;
}

// What every role does with memory of the parent: finds its words, and leaves the indices there.
void exchange_words(Test& test, CUdeviceptr address) {
  const Buffer<unsigned> shared{address, kCount};
  test.equal("what the parent wrote", test.download(shared), words(kCount, 1));
  test.launch("store_index", {4, 256}, kCount, shared);
  test.synchronize();
}

// ---- cuIpcGetMemHandle

void open_memory(Test& test, Socket& parent) {
  const auto handle = parent.receive<CUipcMemHandle>();
  const auto offset = parent.receive<std::size_t>();
  CUdeviceptr base = 0;
  test.check(driver().cuIpcOpenMemHandle(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  exchange_words(test, base + offset);
  if (test.ok()) test.check(driver().cuIpcCloseMemHandle(base), "cuIpcCloseMemHandle");
}

// The handle is that of a whole allocation, and the other process uses a part of it.
void memory(Test& test) {
  const std::size_t offset = 256;
  const auto whole = test.zeros<unsigned>(offset / 4 + kCount);
  const CUdeviceptr data = whole.address + offset;
  const auto content = words(kCount, 1);
  CUipcMemHandle handle{};
  CUdeviceptr none = 0;
  if (!test.ok()) return;
  test.check(driver().cuMemcpyHtoD(data, content.data(), kCount * 4), "cuMemcpyHtoD");
  test.expect_code("cuIpcGetMemHandle", driver().cuIpcGetMemHandle(&handle, whole.address), CUDA_SUCCESS);
  if (!test.ok()) return;
  Child child(test, "open_memory");
  child.socket().send(handle);
  child.socket().send(offset);
  child.finish();
  test.equal("what the other process wrote", test.download(Buffer<unsigned>{data, kCount}), indices());
  test.expect(driver().cuIpcOpenMemHandle(&none, CUipcMemHandle{}, 0) != CUDA_SUCCESS,
              "a handle of nothing is refused");
}

// ---- cuIpcGetEventHandle

void wait_for_event(Test& test, Socket& parent) {
  CUevent event = nullptr;
  const auto handle = parent.receive<CUipcEventHandle>();
  test.check(driver().cuIpcOpenEventHandle(&event, handle), "cuIpcOpenEventHandle");
  if (!test.ok()) return;
  parent.send(driver().cuEventQuery(event));
  parent.send(driver().cuEventSynchronize(event));
  driver().cuEventDestroy(event);
}

void event(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) == 0) return test.skip("no interprocess events");
  Scene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent shared = scene.event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  const CUevent own = scene.event(CU_EVENT_DISABLE_TIMING);
  CUipcEventHandle handle{};
  test.expect(driver().cuIpcGetEventHandle(&handle, own) != CUDA_SUCCESS, "an ordinary event has no handle");
  test.expect_code("cuIpcGetEventHandle", driver().cuIpcGetEventHandle(&handle, shared), CUDA_SUCCESS);
  scene.hold(stream);
  test.check(driver().cuEventRecord(shared, stream), "cuEventRecord");
  if (!test.ok()) return;
  Child child(test, "wait_for_event");
  child.socket().send(handle);
  test.expect_code("the other process asks", child.socket().receive<CUresult>(), CUDA_ERROR_NOT_READY);
  scene.release();
  test.expect_code("the other process waits", child.socket().receive<CUresult>(), CUDA_SUCCESS);
  child.finish();
}

// ---- Physical memory as a file descriptor

void import_memory(Test& test, Socket& parent) {
  const int fd = parent.receive_file();
  const auto bytes = parent.receive<std::size_t>();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  void* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  test.check(driver().cuMemImportFromShareableHandle(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "cuMemImportFromShareableHandle");
  ::close(fd);
  if (test.ok()) test.check(driver().cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
  if (test.ok()) test.check(driver().cuMemMap(address, bytes, 0, handle, 0), "cuMemMap");
  if (test.ok()) test.check(driver().cuMemRelease(handle), "cuMemRelease");
  if (test.ok()) test.check(driver().cuMemSetAccess(address, bytes, &access, 1), "cuMemSetAccess");
  exchange_words(test, address);
  if (!test.ok()) return;
  test.check(driver().cuMemUnmap(address, bytes), "cuMemUnmap");
  test.check(driver().cuMemAddressFree(address, bytes), "cuMemAddressFree");
}

void file_descriptor(Test& test) {
  if (!virtual_memory_supported(test)) return;
  if (test.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    return test.skip("no export as a file descriptor");
  }
  Mapping mapping(test, 1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  const auto handle = mapping.create();
  const auto content = words(kCount, 1);
  mapping.map(0, handle);
  mapping.allow();
  int fd = -1;
  if (!test.ok()) return;
  test.check(driver().cuMemcpyHtoD(mapping.address(), content.data(), kCount * 4), "cuMemcpyHtoD");
  test.expect_code("cuMemExportToShareableHandle",
                   driver().cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   CUDA_SUCCESS);
  if (!test.ok()) return;
  Child child(test, "import_memory");
  child.socket().send_file(fd);
  child.socket().send(mapping.bytes());
  ::close(fd);
  child.finish();
  test.equal("what the other process wrote", test.download(Buffer<unsigned>{mapping.address(), kCount}), indices());
}

void no_export(Test& test) {
  if (!virtual_memory_supported(test)) return;
  Mapping mapping(test, 1);
  const auto handle = mapping.create();
  int fd = -1;
  if (!test.ok()) return;
  test.expect_code("memory made without a handle type",
                   driver().cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   CUDA_ERROR_INVALID_VALUE);
}

// ---- Pools

void import_pool(Test& test, Socket& parent) {
  const int fd = parent.receive_file();
  auto data = parent.receive<CUmemPoolPtrExportData>();
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  void* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  test.check(driver().cuMemPoolImportFromShareableHandle(&pool, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
             "cuMemPoolImportFromShareableHandle");
  ::close(fd);
  if (test.ok()) test.check(driver().cuMemPoolImportPointer(&address, pool, &data), "cuMemPoolImportPointer");
  exchange_words(test, address);
  CUdeviceptr more = 0;
  if (!test.ok()) return;
  test.expect(driver().cuMemAllocFromPoolAsync(&more, 4096, pool, nullptr) != CUDA_SUCCESS,
              "an imported pool gives no new memory");
  test.check(driver().cuMemFree(address), "cuMemFree");
}

// The importer frees its pointer before the exporter does.
void pool(Test& test) {
  if ((test.attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
      0) {
    return test.skip("no pools that are shared");
  }
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  int fd = -1;
  CUmemPoolPtrExportData data{};
  const auto content = words(kCount, 1);
  if (!test.check(driver().cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate")) return;
  test.check(driver().cuMemAllocFromPoolAsync(&address, kCount * 4, pool, nullptr), "cuMemAllocFromPoolAsync");
  test.synchronize();
  if (test.ok()) test.check(driver().cuMemcpyHtoD(address, content.data(), kCount * 4), "cuMemcpyHtoD");
  test.expect_code("cuMemPoolExportToShareableHandle",
                   driver().cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                   CUDA_SUCCESS);
  test.expect_code("cuMemPoolExportPointer", driver().cuMemPoolExportPointer(&data, address), CUDA_SUCCESS);
  if (test.ok()) {
    Child child(test, "import_pool");
    child.socket().send_file(fd);
    child.socket().send(data);
    child.finish();
    test.equal("what the other process wrote", test.download(Buffer<unsigned>{address, kCount}), indices());
  }
  if (fd >= 0) ::close(fd);
  driver().cuMemFreeAsync(address, nullptr);
  driver().cuCtxSynchronize();
  driver().cuMemPoolDestroy(pool);
}

// ---- Faults

void write_nowhere(Test& test, Socket& parent) {
  test.launch("store_index", {1, 1}, 1, Buffer<unsigned>{0x10000, 1});
  parent.send(driver().cuCtxSynchronize());
}

// A fault ends the contexts of its process. Other processes go on.
void fault_elsewhere(Test& test) {
  const auto out = test.zeros<unsigned>(kCount);
  Child child(test, "write_nowhere");
  test.expect_code("the other process", child.socket().receive<CUresult>(), CUDA_ERROR_ILLEGAL_ADDRESS);
  child.finish();
  test.launch("store_index", {4, 256}, kCount, out);
  test.equal("this one", test.download(out), indices());
}

// "This leaves the process in an inconsistent state": the context that faulted is lost; of others nothing is said.
void second_context(Test& test) {
  CUcontext first = nullptr, second = nullptr;
  CUdevice device = 0;
  driver().cuCtxGetCurrent(&first);
  driver().cuCtxGetDevice(&device);
  test.expect_code("cuCtxCreate", driver().cuCtxCreate_v2(&second, 0, device), CUDA_SUCCESS);
  driver().cuCtxPopCurrent(nullptr);
  driver().cuCtxSetCurrent(first);
  test.launch("store_index", {1, 1}, 1, Buffer<unsigned>{0x10000, 1});
  test.expect_code("the first", driver().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  driver().cuCtxSetCurrent(second);
  CUdeviceptr address = 0;
  test.observe("the second: cuCtxSynchronize", name_of(driver().cuCtxSynchronize()));
  test.observe("the second: cuMemAlloc", name_of(driver().cuMemAlloc(&address, 4096)));
  driver().cuCtxSetCurrent(first);
  test.expect_code("the first stays lost", driver().cuMemAlloc(&address, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// ---- cuCheckpointProcess*

// Holds memory while it is checkpointed, and uses it before and after.
void be_checkpointed(Test& test, Socket& parent) {
  const auto held = test.upload(words(kCount, 1));
  parent.send(::getpid());
  parent.receive<int>();
  test.equal("what it held", test.download(held), words(kCount, 1));
  test.launch("store_index", {4, 256}, kCount, held);
  test.equal("what its kernel wrote", test.download(held), indices());
}

struct Checkpointed {
  explicit Checkpointed(Test& test) : child(test, "be_checkpointed"), pid(child.socket().receive<int>()) {}
  CUprocessState state() const {
    CUprocessState now = CU_PROCESS_STATE_FAILED;
    driver().cuCheckpointProcessGetState(pid, &now);
    return now;
  }
  void expect_state(Test& test, const char* what, CUprocessState want) const { test.expect_value(what, state(), want); }
  void finish() {
    child.socket().send(1);
    child.finish();
  }
  Child child;
  const int pid;
};

// False, and the case is skipped, where the driver has no checkpoints, or not for us.
bool can_checkpoint(Test& test, const Checkpointed& process) {
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  const CUresult asked = driver().cuCheckpointProcessGetState(process.pid, &state);
  if (asked != CUDA_SUCCESS) test.skip("no checkpoints of processes: " + name_of(asked));
  return asked == CUDA_SUCCESS;
}

void checkpoint(Test& test) {
  Checkpointed process(test);
  if (!can_checkpoint(test, process)) return process.finish();
  const int pid = process.pid;
  CUcheckpointLockArgs patience{};
  patience.timeoutMs = 10'000;
  process.expect_state(test, "before", CU_PROCESS_STATE_RUNNING);
  test.expect_code("cuCheckpointProcessLock", driver().cuCheckpointProcessLock(pid, &patience), CUDA_SUCCESS);
  process.expect_state(test, "locked", CU_PROCESS_STATE_LOCKED);
  test.expect_code("cuCheckpointProcessCheckpoint", driver().cuCheckpointProcessCheckpoint(pid, nullptr), CUDA_SUCCESS);
  process.expect_state(test, "checkpointed", CU_PROCESS_STATE_CHECKPOINTED);
  test.expect_code("cuCheckpointProcessRestore", driver().cuCheckpointProcessRestore(pid, nullptr), CUDA_SUCCESS);
  process.expect_state(test, "restored", CU_PROCESS_STATE_LOCKED);
  test.expect_code("cuCheckpointProcessUnlock", driver().cuCheckpointProcessUnlock(pid, nullptr), CUDA_SUCCESS);
  process.expect_state(test, "after", CU_PROCESS_STATE_RUNNING);
  process.finish();
}

// Each call wants one state, and does nothing in another.
void checkpoint_order(Test& test) {
  Checkpointed process(test);
  if (!can_checkpoint(test, process)) return process.finish();
  const int pid = process.pid;
  const auto refused = [&](const char* what, CUresult got) { test.expect_code(what, got, CUDA_ERROR_ILLEGAL_STATE); };
  refused("running: checkpoint", driver().cuCheckpointProcessCheckpoint(pid, nullptr));
  refused("running: restore", driver().cuCheckpointProcessRestore(pid, nullptr));
  refused("running: unlock", driver().cuCheckpointProcessUnlock(pid, nullptr));
  test.expect_code("lock", driver().cuCheckpointProcessLock(pid, nullptr), CUDA_SUCCESS);
  refused("locked: lock", driver().cuCheckpointProcessLock(pid, nullptr));
  refused("locked: restore", driver().cuCheckpointProcessRestore(pid, nullptr));
  test.expect_code("unlock", driver().cuCheckpointProcessUnlock(pid, nullptr), CUDA_SUCCESS);
  test.observe("a process without the driver", name_of(driver().cuCheckpointProcessLock(1, nullptr)));
  process.finish();
}

constexpr Role kRoles[] = {
    {"open_memory", open_memory}, {"wait_for_event", wait_for_event}, {"import_memory", import_memory},
    {"import_pool", import_pool}, {"write_nowhere", write_nowhere},   {"be_checkpointed", be_checkpointed},
};

constexpr Case kCases[] = {
    {"memory", nullptr, memory},
    {"event", "driver", event},
    {"file_descriptor", nullptr, file_descriptor},
    {"no_export", nullptr, no_export},
    {"pool", nullptr, pool},
    {"fault_elsewhere", "driver", fault_elsewhere},
    {"checkpoint", nullptr, checkpoint},
    {"checkpoint_order", nullptr, checkpoint_order},
    {.name = "second_context", .kernels = "driver", .run = second_context, .isolated = true},
};

}  // namespace

std::span<const Role> all_roles() {
  return kRoles;
}

const Field kProcesses{"processes", kCases};

}  // namespace softgpu::conformance
