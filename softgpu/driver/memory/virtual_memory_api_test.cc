// Virtual memory: every rule, and memory that lives by reference across processes.
#include <fcntl.h>
#include <sys/syscall.h>

#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::add_one;
using softgpu::testing::free_bytes;
using softgpu::testing::Fresh;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;
using softgpu::testing::word_at;

constexpr std::size_t kMib = 1 << 20;
constexpr std::size_t kPage = 2 * kMib;
constexpr int kInherited = 150;  // the descriptor a second process finds its memory under

CUmemAllocationProp device_memory(bool exportable = false) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (exportable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUmemAccessDesc access_of(int device, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}

CUmemGenericAllocationHandle create(std::size_t bytes, bool exportable = false) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties = device_memory(exportable);
  EXPECT_EQ(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
  return handle;
}

// `handle` mapped at new addresses, with access.
CUdeviceptr map(CUmemGenericAllocationHandle handle, std::size_t bytes) {
  CUdeviceptr address = 0;
  const CUmemAccessDesc access = access_of(0);
  EXPECT_EQ(cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(address, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemSetAccess(address, bytes, &access, 1), CUDA_SUCCESS);
  return address;
}

DRIVER_TEST(VirtualMemory, MappedMemoryIsUsedLikeAnyOther) {
  use_device();
  const std::size_t before = free_bytes();
  const auto handle = create(2 * kPage);
  EXPECT_EQ(free_bytes(), before - 2 * kPage);
  const CUdeviceptr address = map(handle, 2 * kPage);
  EXPECT_EQ(cuMemsetD32_v2(address + kPage - 4, 41, 2), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address + kPage), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address + kPage), 42U);
  EXPECT_EQ(word_at(address + kPage - 4), 41U);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 2 * kPage);  // the mapping keeps it
  EXPECT_EQ(word_at(address + kPage), 42U);
  EXPECT_EQ(cuMemUnmap(address, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(cuMemAddressFree(address, 2 * kPage), CUDA_SUCCESS);
}

DRIVER_TEST(VirtualMemory, SizesAndAddressesAreWholePages) {
  use_device();
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  std::size_t granularity = 0;
  CUmemAllocationProp properties = device_memory();
  EXPECT_EQ(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(granularity, kPage);
  EXPECT_EQ(cuMemCreate(&handle, kPage + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, 1024 * kMib, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAddressReserve(&address, kPage / 2, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&address, kPage, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAddressReserve(&address, 2 * kPage, 16 * kMib, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(address % (16 * kMib), 0U);
  handle = create(kPage);
  EXPECT_EQ(cuMemMap(address + 4096, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address, kPage, 4096, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address, 2 * kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);          // larger than the memory
  EXPECT_EQ(cuMemMap(address + 2 * kPage, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // not reserved
  EXPECT_EQ(cuMemMap(address, kPage, 0, handle + 100, 0), CUDA_ERROR_INVALID_VALUE);
  properties.location.id = 7;
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
  properties = device_memory();
  properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(VirtualMemory, AHintIsTakenWhenItIsFree) {
  use_device();
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  ASSERT_EQ(cuMemAddressReserve(&first, kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressReserve(&second, kPage, 0, first, 0), CUDA_SUCCESS);
  EXPECT_NE(second, first);
  ASSERT_EQ(cuMemAddressFree(first, kPage), CUDA_SUCCESS);
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAddressReserve(&again, kPage, 0, first, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, first);
}

DRIVER_TEST(VirtualMemory, NothingIsAccessibleBeforeSetAccess) {
  use_device();
  const auto handle = create(kPage);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAddressReserve(&address, 2 * kPage, 0, 0, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access = access_of(0);
  unsigned word = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, address, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);  // not mapped
  ASSERT_EQ(cuMemMap(address, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(&word, address, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32_v2(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags = 9;
  EXPECT_EQ(cuMemGetAccess(&flags, &access.location, address), CUDA_SUCCESS);
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  EXPECT_EQ(cuMemSetAccess(address, 2 * kPage, &access, 1), CUDA_ERROR_INVALID_VALUE);  // half of it not mapped
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(VirtualMemory, AccessCanBeTakenAway) {
  use_device();
  const CUdeviceptr address = map(create(kPage), kPage);
  CUmemAccessDesc access = access_of(0);
  unsigned long long flags = 0;
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetAccess(&flags, &access.location, address), CUDA_SUCCESS);
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_ERROR_NOT_SUPPORTED);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(VirtualMemory, UnmapTakesWholeMappings) {
  use_device();
  const auto first = create(2 * kPage);
  const auto second = create(kPage);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAddressReserve(&address, 4 * kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address, 2 * kPage, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address + 2 * kPage, kPage, 0, second, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(address + kPage, kPage, 0, second, 0), CUDA_ERROR_INVALID_VALUE);  // mapped already
  EXPECT_EQ(cuMemUnmap(address, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address + kPage, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address, 4 * kPage), CUDA_ERROR_INVALID_VALUE);        // a hole at the end
  EXPECT_EQ(cuMemAddressFree(address, 4 * kPage), CUDA_ERROR_INVALID_VALUE);  // still mapped
  EXPECT_EQ(cuMemUnmap(address, 3 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address, 3 * kPage), CUDA_SUCCESS);              // nothing is mapped there, as hardware has it
  EXPECT_EQ(cuMemUnmap(address, 5 * kPage), CUDA_ERROR_INVALID_VALUE);  // beyond what is reserved
  EXPECT_EQ(cuMemAddressFree(address, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(address, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address, 4 * kPage), CUDA_ERROR_INVALID_VALUE);  // reserved no more
}

// Two handles side by side are one range; one handle at two addresses is the same memory.
DRIVER_TEST(VirtualMemory, MappingsAdjoinAndAlias) {
  use_device();
  const CUmemAccessDesc access = access_of(0);
  const auto first = create(kPage);
  const auto second = create(kPage);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAddressReserve(&address, 3 * kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address, kPage, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address + kPage, kPage, 0, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(address + 2 * kPage, kPage, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(address, 3 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(address, 7, 2 * kPage / 4), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address + 2 * kPage + 100), 7U);
  EXPECT_EQ(add_one(address + 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 8U);
}

// What a memory swapper does: the address stays, the device's memory goes and comes back.
DRIVER_TEST(VirtualMemory, EvictedMemoryReturnsAtItsAddress) {
  use_device();
  const CUmemAccessDesc access = access_of(0);
  auto handle = create(16 * kPage);
  const CUdeviceptr address = map(handle, 16 * kPage);
  ASSERT_EQ(cuMemsetD32_v2(address, 123, 16 * kPage / 4), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  std::vector<char> saved(16 * kPage);
  ASSERT_EQ(cuMemcpyDtoH_v2(saved.data(), address, saved.size()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(address, 16 * kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before + 16 * kPage);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc_v2(&other, before + 8 * kPage), CUDA_SUCCESS);  // another uses the room
  EXPECT_EQ(cuMemFree_v2(other), CUDA_SUCCESS);
  handle = create(16 * kPage);
  ASSERT_EQ(cuMemMap(address, 16 * kPage, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(address, 16 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 0U);  // fresh memory
  ASSERT_EQ(cuMemcpyHtoD_v2(address, saved.data(), saved.size()), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 124U);
}

DRIVER_TEST(VirtualMemory, HandlesAreCounted) {
  use_device();
  const auto handle = create(kPage);
  const CUdeviceptr address = map(handle, kPage);
  CUmemGenericAllocationHandle same = 0;
  CUmemAllocationProp properties = {};
  EXPECT_EQ(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(address + 5)), CUDA_SUCCESS);
  EXPECT_EQ(same, handle);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetAllocationPropertiesFromHandle(&properties, handle), CUDA_SUCCESS);
  EXPECT_EQ(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetAllocationPropertiesFromHandle(&properties, handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(address)), CUDA_SUCCESS);  // by its mapping
  EXPECT_EQ(cuMemRetainAllocationHandle(&same, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);  // not an allocation
}

DRIVER_TEST(VirtualMemory, PointersTellWhatTheyAre) {
  use_device();
  const CUdeviceptr address = map(create(2 * kPage, true), 2 * kPage);
  const auto attribute = [&](CUpointer_attribute which) {
    unsigned long long value = 0;
    EXPECT_EQ(cuPointerGetAttribute(&value, which, address + kPage), CUDA_SUCCESS) << which;
    return value;
  };
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE), static_cast<unsigned long long>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), address);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE), 2 * kPage);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES), 1U);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_CONTEXT), 0U);  // of no context
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), 0U);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), 0U);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_MAPPED), 1U);
  CUmemAccessDesc access = access_of(0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  ASSERT_EQ(cuMemSetAccess(address, 2 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(attribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS), 0U);
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, address), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr plain = 0;
  unsigned flag = 1;
  ASSERT_EQ(cuMemAlloc_v2(&plain, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain), CUDA_SUCCESS);
  flag = 0;
  EXPECT_EQ(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain + 8), CUDA_SUCCESS);
  EXPECT_EQ(flag, 1U);
  EXPECT_EQ(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_MANAGED, plain), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(reinterpret_cast<void*>(address), kPage, 0), CUDA_ERROR_INVALID_VALUE);
}

// Access is given device by device, peer access or not.
DRIVER_TEST_IN(VirtualMemory, AccessIsOfTheDevicesNamed, (softgpu::testing::Environment{{"SOFTGPU_DEVICES", "2"}})) {
  use_device();
  CUcontext second = nullptr;
  const CUdeviceptr address = map(create(kPage), kPage);
  ASSERT_EQ(cuMemsetD32_v2(address, 5, 1), CUDA_SUCCESS);
  CUmemAccessDesc access = access_of(1);
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 6U);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 6U);  // device 0 has access still, and may copy
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Work queued behind finds the range gone.
DRIVER_TEST(VirtualMemory, QueuedWorkOnAnUnmappedRangeFails) {
  use_device();
  CUstream stream = nullptr;
  void* host = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostAlloc(&host, 64, 0), CUDA_SUCCESS);
  const CUdeviceptr address = map(create(kPage), kPage);
  struct Gate {
    CUdeviceptr address;
    CUresult unmapped;
  } gate = {address, CUDA_ERROR_UNKNOWN};
  // A host function between: the copy behind it is queued, and checked, before the range goes.
  ASSERT_EQ(cuLaunchHostFunc(
                stream,
                [](void* data) {
                  auto* own = static_cast<Gate*>(data);
                  own->unmapped = cuMemUnmap(own->address, kPage);
                },
                &gate),
            CUDA_SUCCESS);
  const CUresult queued = cuMemcpyDtoHAsync_v2(host, address, 4, stream);
  const CUresult ran = cuStreamSynchronize(stream);
  EXPECT_EQ(gate.unmapped, CUDA_SUCCESS);
  // Refused at once when the function was faster than the call, else error 700.
  EXPECT_TRUE(queued == CUDA_ERROR_INVALID_VALUE || ran == CUDA_ERROR_ILLEGAL_ADDRESS) << queued << " " << ran;
}

CUdeviceptr import_inherited() {
  CUmemGenericAllocationHandle handle = 0;
  void* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(kInherited));
  EXPECT_EQ(cuMemImportFromShareableHandle(&handle, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(::close(kInherited), 0);
  const CUdeviceptr address = map(handle, 4 * kPage);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  return address;
}

// Adds one to the first word of the memory it inherits, and keeps it mapped.
const Scenario kImporter("import exported memory", [] {
  use_device();
  EXPECT_EQ(add_one(import_inherited()), CUDA_SUCCESS);
});

DRIVER_TEST(SharedMemory, LivesUntilItsLastHolderGoes) {
  use_device();
  const std::size_t before = free_bytes();
  const auto handle = create(4 * kPage, true);
  const CUdeviceptr address = map(handle, 4 * kPage);
  ASSERT_EQ(cuMemsetD32_v2(address, 41, 1), CUDA_SUCCESS);
  int descriptor = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(::dup2(descriptor, kInherited), kInherited);  // without close-on-exec
  Fresh importer("import exported memory");
  ASSERT_TRUE(importer.ran());
  EXPECT_EQ(word_at(address), 42U);
  ::close(kInherited);
  ::close(descriptor);
  EXPECT_EQ(cuMemUnmap(address, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_LE(free_bytes(), before - 4 * kPage);  // the importer keeps it
  const std::size_t held = free_bytes();
  importer.kill();
  EXPECT_GE(free_bytes(), held + 4 * kPage);
  EXPECT_EQ(free_bytes(), before);
}

// Exports under kInherited's number of its parent's pipe: the descriptor travels by pidfd, and the exporter is killed.
const Scenario kExporter("export memory", [] {
  use_device();
  const auto handle = create(4 * kPage, true);
  ASSERT_EQ(cuMemsetD32_v2(map(handle, 4 * kPage), 7, 1), CUDA_SUCCESS);
  int descriptor = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(::dup2(descriptor, kInherited), kInherited);
});

DRIVER_TEST(SharedMemory, SurvivesItsKilledExporter) {
  use_device();
  const std::size_t before = free_bytes();
  Fresh exporter("export memory");
  ASSERT_TRUE(exporter.ran());
  // Re-opening would make a new description: the descriptor itself must come over, as a socket would bring it.
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, exporter.pid(), 0));
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_getfd, process, kInherited, 0));
  if (descriptor < 0) GTEST_SKIP() << "this system does not let a process take descriptors of its child";
  ASSERT_EQ(::dup2(descriptor, kInherited), kInherited);
  ::close(descriptor);
  exporter.kill();
  EXPECT_EQ(free_bytes(), before - 4 * kPage);  // held by the descriptor alone
  const CUdeviceptr address = import_inherited();
  EXPECT_EQ(word_at(address), 7U);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  // Others may fill the device: the memory is not theirs.
  CUdeviceptr rest = 0;
  EXPECT_EQ(cuMemAlloc_v2(&rest, free_bytes()), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 8U);
  EXPECT_EQ(cuMemFree_v2(rest), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address, 4 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

DRIVER_TEST(SharedMemory, OnlyWhatWasExportedIsImported) {
  use_device();
  CUmemGenericAllocationHandle handle = create(kPage);
  int descriptor = -1;
  const auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, handle, kFile, 0), CUDA_ERROR_INVALID_VALUE);  // not asked for
  handle = create(kPage, true);
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemExportToShareableHandle(&descriptor, handle, kFile, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, kFile, 0), CUDA_SUCCESS);
  const auto import = [](int file) {
    CUmemGenericAllocationHandle made = 0;
    void* const value = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
    return cuMemImportFromShareableHandle(&made, value, kFile);
  };
  EXPECT_EQ(import(descriptor), CUDA_SUCCESS);  // also in the process that exported it
  EXPECT_EQ(import(-1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(import(0), CUDA_ERROR_INVALID_VALUE);
  const std::string again = "/proc/self/fd/" + std::to_string(descriptor);
  const int other = ::open(again.c_str(), O_RDWR);  // the same file, but holding nothing
  EXPECT_EQ(import(other), CUDA_ERROR_INVALID_VALUE);
  ::lseek(other, ::lseek(descriptor, 0, SEEK_CUR), SEEK_SET);
  EXPECT_EQ(import(other), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(VirtualMemory, AStreamThatWaitsForAWordNoticesThatItIsUnmapped) {
  use_device();
  const CUdeviceptr word = map(create(kPage), kPage);
  EXPECT_EQ(cuMemsetD32_v2(word, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32_v2(nullptr, word, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(word, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
