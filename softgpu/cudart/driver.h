// The driver as the runtime sees it: entry points by name and version through cuGetProcAddress of whichever libcuda.so.1
// the system finds. Nothing here knows whose driver it is.
#pragma once

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"

namespace softgpu::cudart {

// Entry points that abi/cuda.h need not declare, as the runtime calls them.
using MemPoolCreate = CUresult(CUmemoryPool*, const void*);
using MemPoolDestroy = CUresult(CUmemoryPool);
using MemPoolTrim = CUresult(CUmemoryPool, size_t);
using MemPoolAttribute = CUresult(CUmemoryPool, int, void*);
using DeviceSetMemPool = CUresult(CUdevice, CUmemoryPool);
using AllocFromPool = CUresult(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
using IpcGetEvent = CUresult(CUipcEventHandle*, CUevent);
using IpcOpenEvent = CUresult(CUevent*, CUipcEventHandle);
using BeginCapture = CUresult(CUstream, int);
using EndCapture = CUresult(CUstream, CUgraph*);
using IsCapturing = CUresult(CUstream, int*);
using ExchangeCaptureMode = CUresult(int*);
using GraphCreate = CUresult(CUgraph*, unsigned);
using GraphDestroy = CUresult(CUgraph);
using GraphClone = CUresult(CUgraph*, CUgraph);
using GraphNodes = CUresult(CUgraph, CUgraphNode*, size_t*);
using GraphAddEmpty = CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, size_t);
using GraphDestroyNode = CUresult(CUgraphNode);
using GraphInstantiate = CUresult(CUgraphExec*, CUgraph, unsigned long long);
using GraphExecUpdate = CUresult(CUgraphExec, CUgraph, void*);
using GraphExecDestroy = CUresult(CUgraphExec);
using GraphLaunch = CUresult(CUgraphExec, CUstream);

// One line per entry point: ENTRY(name, version, type).
#define CUDART_DRIVER_ENTRIES(ENTRY)                                                                         \
  ENTRY(cuInit, 2000, decltype(::cuInit))                                                                    \
  ENTRY(cuDriverGetVersion, 2020, decltype(::cuDriverGetVersion))                                            \
  ENTRY(cuDeviceGetCount, 2000, decltype(::cuDeviceGetCount))                                                \
  ENTRY(cuDeviceGetName, 2000, decltype(::cuDeviceGetName))                                                  \
  ENTRY(cuDeviceGetUuid, 11040, decltype(::cuDeviceGetUuid_v2))                                              \
  ENTRY(cuDeviceTotalMem, 3020, decltype(::cuDeviceTotalMem_v2))                                             \
  ENTRY(cuDeviceGetAttribute, 2000, decltype(::cuDeviceGetAttribute))                                        \
  ENTRY(cuDeviceGetPCIBusId, 4010, decltype(::cuDeviceGetPCIBusId))                                          \
  ENTRY(cuDeviceGetByPCIBusId, 4010, decltype(::cuDeviceGetByPCIBusId))                                      \
  ENTRY(cuDeviceCanAccessPeer, 4000, decltype(::cuDeviceCanAccessPeer))                                      \
  ENTRY(cuDeviceGetP2PAttribute, 8000, decltype(::cuDeviceGetP2PAttribute))                                  \
  ENTRY(cuDeviceGetDefaultMemPool, 11020, decltype(::cuDeviceGetDefaultMemPool))                             \
  ENTRY(cuDeviceGetMemPool, 11020, decltype(::cuDeviceGetMemPool))                                           \
  ENTRY(cuDeviceSetMemPool, 11020, DeviceSetMemPool)                                                         \
  ENTRY(cuDevicePrimaryCtxRetain, 7000, decltype(::cuDevicePrimaryCtxRetain))                                \
  ENTRY(cuDevicePrimaryCtxReset, 11000, decltype(::cuDevicePrimaryCtxReset_v2))                              \
  ENTRY(cuDevicePrimaryCtxSetFlags, 11000, decltype(::cuDevicePrimaryCtxSetFlags_v2))                        \
  ENTRY(cuDevicePrimaryCtxGetState, 7000, decltype(::cuDevicePrimaryCtxGetState))                            \
  ENTRY(cuCtxGetCurrent, 4000, decltype(::cuCtxGetCurrent))                                                  \
  ENTRY(cuCtxSetCurrent, 4000, decltype(::cuCtxSetCurrent))                                                  \
  ENTRY(cuCtxGetDevice, 2000, decltype(::cuCtxGetDevice))                                                    \
  ENTRY(cuCtxSynchronize, 2000, decltype(::cuCtxSynchronize))                                                \
  ENTRY(cuCtxSetLimit, 3010, decltype(::cuCtxSetLimit))                                                      \
  ENTRY(cuCtxGetLimit, 3010, decltype(::cuCtxGetLimit))                                                      \
  ENTRY(cuCtxSetCacheConfig, 3020, decltype(::cuCtxSetCacheConfig))                                          \
  ENTRY(cuCtxGetCacheConfig, 3020, decltype(::cuCtxGetCacheConfig))                                          \
  ENTRY(cuCtxGetStreamPriorityRange, 5050, decltype(::cuCtxGetStreamPriorityRange))                          \
  ENTRY(cuCtxEnablePeerAccess, 4000, decltype(::cuCtxEnablePeerAccess))                                      \
  ENTRY(cuCtxDisablePeerAccess, 4000, decltype(::cuCtxDisablePeerAccess))                                    \
  ENTRY(cuCtxResetPersistingL2Cache, 11000, decltype(::cuCtxResetPersistingL2Cache))                         \
  ENTRY(cuLibraryLoadData, 12000, decltype(::cuLibraryLoadData))                                             \
  ENTRY(cuLibraryLoadFromFile, 12000, decltype(::cuLibraryLoadFromFile))                                     \
  ENTRY(cuLibraryGetKernelCount, 12040, decltype(::cuLibraryGetKernelCount))                                 \
  ENTRY(cuLibraryEnumerateKernels, 12040, decltype(::cuLibraryEnumerateKernels))                             \
  ENTRY(cuLibraryGetUnifiedFunction, 12000, decltype(::cuLibraryGetUnifiedFunction))                         \
  ENTRY(cuKernelSetAttribute, 12000, decltype(::cuKernelSetAttribute))                                       \
  ENTRY(cuOccupancyMaxActiveClusters, 11070, decltype(::cuOccupancyMaxActiveClusters))                       \
  ENTRY(cuOccupancyMaxPotentialClusterSize, 11070, decltype(::cuOccupancyMaxPotentialClusterSize))           \
  ENTRY(cuLibraryUnload, 12000, decltype(::cuLibraryUnload))                                                 \
  ENTRY(cuLibraryGetKernel, 12000, decltype(::cuLibraryGetKernel))                                           \
  ENTRY(cuLibraryGetGlobal, 12000, decltype(::cuLibraryGetGlobal))                                           \
  ENTRY(cuLibraryGetManaged, 12000, decltype(::cuLibraryGetManaged))                                         \
  ENTRY(cuKernelGetFunction, 12000, decltype(::cuKernelGetFunction))                                         \
  ENTRY(cuFuncGetAttribute, 2020, decltype(::cuFuncGetAttribute))                                            \
  ENTRY(cuFuncSetAttribute, 9000, decltype(::cuFuncSetAttribute))                                            \
  ENTRY(cuFuncSetCacheConfig, 3000, decltype(::cuFuncSetCacheConfig))                                        \
  ENTRY(cuFuncGetName, 12030, decltype(::cuFuncGetName))                                                     \
  ENTRY(cuFuncGetParamInfo, 12040, decltype(::cuFuncGetParamInfo))                                           \
  ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,                                          \
        decltype(::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags))                                    \
  ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, 10020, decltype(::cuOccupancyAvailableDynamicSMemPerBlock)) \
  ENTRY(cuMemGetInfo, 3020, decltype(::cuMemGetInfo_v2))                                                     \
  ENTRY(cuMemAlloc, 3020, decltype(::cuMemAlloc_v2))                                                         \
  ENTRY(cuMemAllocPitch, 3020, decltype(::cuMemAllocPitch_v2))                                               \
  ENTRY(cuMemAllocManaged, 6000, decltype(::cuMemAllocManaged))                                              \
  ENTRY(cuMemAllocAsync, 11020, decltype(::cuMemAllocAsync))                                                 \
  ENTRY(cuMemAllocFromPoolAsync, 11020, AllocFromPool)                                                       \
  ENTRY(cuMemFree, 3020, decltype(::cuMemFree_v2))                                                           \
  ENTRY(cuMemFreeAsync, 11020, decltype(::cuMemFreeAsync))                                                   \
  ENTRY(cuMemFreeHost, 2000, decltype(::cuMemFreeHost))                                                      \
  ENTRY(cuMemHostAlloc, 2020, decltype(::cuMemHostAlloc))                                                    \
  ENTRY(cuMemHostRegister, 6050, decltype(::cuMemHostRegister_v2))                                           \
  ENTRY(cuMemHostUnregister, 4000, decltype(::cuMemHostUnregister))                                          \
  ENTRY(cuMemHostGetDevicePointer, 3020, decltype(::cuMemHostGetDevicePointer_v2))                           \
  ENTRY(cuMemHostGetFlags, 2030, decltype(::cuMemHostGetFlags))                                              \
  ENTRY(cuMemPrefetchAsync, 12020, decltype(::cuMemPrefetchAsync_v2))                                        \
  ENTRY(cuMemAdvise, 12020, decltype(::cuMemAdvise_v2))                                                      \
  ENTRY(cuMemPoolCreate, 11020, MemPoolCreate)                                                               \
  ENTRY(cuMemPoolDestroy, 11020, MemPoolDestroy)                                                             \
  ENTRY(cuMemPoolTrimTo, 11020, MemPoolTrim)                                                                 \
  ENTRY(cuMemPoolSetAttribute, 11020, MemPoolAttribute)                                                      \
  ENTRY(cuMemPoolGetAttribute, 11020, MemPoolAttribute)                                                      \
  ENTRY(cuPointerGetAttributes, 7000, decltype(::cuPointerGetAttributes))                                    \
  ENTRY(cuIpcGetMemHandle, 4010, decltype(::cuIpcGetMemHandle))                                              \
  ENTRY(cuIpcOpenMemHandle, 11000, decltype(::cuIpcOpenMemHandle_v2))                                        \
  ENTRY(cuIpcCloseMemHandle, 4010, decltype(::cuIpcCloseMemHandle))                                          \
  ENTRY(cuIpcGetEventHandle, 4010, IpcGetEvent)                                                              \
  ENTRY(cuIpcOpenEventHandle, 4010, IpcOpenEvent)                                                            \
  ENTRY(cuMemcpyAsync, 4000, decltype(::cuMemcpyAsync))                                                      \
  ENTRY(cuMemcpyHtoDAsync, 3020, decltype(::cuMemcpyHtoDAsync_v2))                                           \
  ENTRY(cuMemcpyDtoHAsync, 3020, decltype(::cuMemcpyDtoHAsync_v2))                                           \
  ENTRY(cuMemcpyDtoDAsync, 3020, decltype(::cuMemcpyDtoDAsync_v2))                                           \
  ENTRY(cuMemcpy, 4000, decltype(::cuMemcpy))                                                                \
  ENTRY(cuMemcpyHtoD, 3020, decltype(::cuMemcpyHtoD_v2))                                                     \
  ENTRY(cuMemcpyDtoH, 3020, decltype(::cuMemcpyDtoH_v2))                                                     \
  ENTRY(cuMemcpyDtoD, 3020, decltype(::cuMemcpyDtoD_v2))                                                     \
  ENTRY(cuMemcpyPeer, 4000, decltype(::cuMemcpyPeer))                                                        \
  ENTRY(cuMemcpyPeerAsync, 4000, decltype(::cuMemcpyPeerAsync))                                              \
  ENTRY(cuMemcpy2DUnaligned, 3020, decltype(::cuMemcpy2DUnaligned_v2))                                       \
  ENTRY(cuMemcpy2DAsync, 3020, decltype(::cuMemcpy2DAsync_v2))                                               \
  ENTRY(cuMemsetD8, 3020, decltype(::cuMemsetD8_v2))                                                         \
  ENTRY(cuMemsetD8Async, 3020, decltype(::cuMemsetD8Async))                                                  \
  ENTRY(cuMemsetD2D8, 3020, decltype(::cuMemsetD2D8_v2))                                                     \
  ENTRY(cuMemsetD2D8Async, 3020, decltype(::cuMemsetD2D8Async))                                              \
  ENTRY(cuStreamCreateWithPriority, 5050, decltype(::cuStreamCreateWithPriority))                            \
  ENTRY(cuStreamDestroy, 4000, decltype(::cuStreamDestroy_v2))                                               \
  ENTRY(cuStreamSynchronize, 2000, decltype(::cuStreamSynchronize))                                          \
  ENTRY(cuStreamQuery, 2000, decltype(::cuStreamQuery))                                                      \
  ENTRY(cuStreamWaitEvent, 3020, decltype(::cuStreamWaitEvent))                                              \
  ENTRY(cuStreamAddCallback, 5000, decltype(::cuStreamAddCallback))                                          \
  ENTRY(cuStreamGetFlags, 5050, decltype(::cuStreamGetFlags))                                                \
  ENTRY(cuStreamGetPriority, 5050, decltype(::cuStreamGetPriority))                                          \
  ENTRY(cuStreamGetId, 12000, decltype(::cuStreamGetId))                                                     \
  ENTRY(cuStreamGetDevice, 12080, decltype(::cuStreamGetDevice))                                             \
  ENTRY(cuEventCreate, 2000, decltype(::cuEventCreate))                                                      \
  ENTRY(cuEventDestroy, 4000, decltype(::cuEventDestroy_v2))                                                 \
  ENTRY(cuEventRecordWithFlags, 11010, decltype(::cuEventRecordWithFlags))                                   \
  ENTRY(cuEventQuery, 2000, decltype(::cuEventQuery))                                                        \
  ENTRY(cuEventSynchronize, 2000, decltype(::cuEventSynchronize))                                            \
  ENTRY(cuEventElapsedTime, 12080, decltype(::cuEventElapsedTime_v2))                                        \
  ENTRY(cuLaunchKernel, 4000, decltype(::cuLaunchKernel))                                                    \
  ENTRY(cuLaunchKernelEx, 11060, decltype(::cuLaunchKernelEx))                                               \
  ENTRY(cuLaunchCooperativeKernel, 9000, decltype(::cuLaunchCooperativeKernel))                              \
  ENTRY(cuLaunchHostFunc, 10000, decltype(::cuLaunchHostFunc))                                               \
  ENTRY(cuStreamBeginCapture, 10010, BeginCapture)                                                           \
  ENTRY(cuStreamEndCapture, 10000, EndCapture)                                                               \
  ENTRY(cuStreamIsCapturing, 10000, IsCapturing)                                                             \
  ENTRY(cuThreadExchangeStreamCaptureMode, 10010, ExchangeCaptureMode)                                       \
  ENTRY(cuGraphCreate, 10000, GraphCreate)                                                                   \
  ENTRY(cuGraphDestroy, 10000, GraphDestroy)                                                                 \
  ENTRY(cuGraphClone, 10000, GraphClone)                                                                     \
  ENTRY(cuGraphGetNodes, 10000, GraphNodes)                                                                  \
  ENTRY(cuGraphGetRootNodes, 10000, GraphNodes)                                                              \
  ENTRY(cuGraphAddEmptyNode, 10000, GraphAddEmpty)                                                           \
  ENTRY(cuGraphDestroyNode, 10000, GraphDestroyNode)                                                         \
  ENTRY(cuGraphInstantiateWithFlags, 11040, GraphInstantiate)                                                \
  ENTRY(cuGraphExecUpdate, 12000, GraphExecUpdate)                                                           \
  ENTRY(cuGraphExecDestroy, 10000, GraphExecDestroy)                                                         \
  ENTRY(cuGraphUpload, 11010, GraphLaunch)                                                                   \
  ENTRY(cuGraphLaunch, 10000, GraphLaunch)

// Function pointers named like the driver's functions. One that the driver lacks returns NOT_SUPPORTED.
struct Driver {
#define CUDART_DRIVER_ENTRY(name, version, type) type* name = nullptr;
  CUDART_DRIVER_ENTRIES(CUDART_DRIVER_ENTRY)
#undef CUDART_DRIVER_ENTRY
  decltype(::cuGetProcAddress_v2)* cuGetProcAddress = nullptr;
};

// The driver, loaded with the first call; null when there is none. Thread-safe.
const Driver* load_driver();

// A symbol of the driver's library by its exact name, or null.
void* driver_symbol(const char* name);

}  // namespace softgpu::cudart
