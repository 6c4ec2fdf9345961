// The entry points of the driver that the cases use, by the short names of abi/cuda.h. X is applied to each.
#pragma once

// clang-format off
#define CONFORMANCE_DEVICE_ENTRY_POINTS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuGetProcAddress) X(cuDeviceGet) \
  X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceCanAccessPeer) \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxGetState) X(cuCtxCreate_v2) \
  X(cuCtxDestroy) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxGetDevice) \
  X(cuCtxSynchronize) X(cuCtxSetLimit) X(cuCtxGetLimit) X(cuCtxGetStreamPriorityRange) X(cuCtxEnablePeerAccess) \
  X(cuCtxDisablePeerAccess) X(cuCheckpointProcessLock) X(cuCheckpointProcessCheckpoint) \
  X(cuCheckpointProcessRestore) X(cuCheckpointProcessUnlock) X(cuCheckpointProcessGetState)

#define CONFORMANCE_CODE_ENTRY_POINTS(X) \
  X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoad) X(cuModuleLoadFatBinary) X(cuModuleUnload) \
  X(cuModuleGetFunction) X(cuModuleGetFunctionCount) X(cuModuleEnumerateFunctions) X(cuModuleGetGlobal) \
  X(cuLinkCreate) X(cuLinkAddData) X(cuLinkComplete) X(cuLinkDestroy) X(cuLibraryLoadData) X(cuLibraryUnload) \
  X(cuLibraryGetKernel) X(cuLibraryGetKernelCount) X(cuLibraryEnumerateKernels) X(cuLibraryGetModule) \
  X(cuLibraryGetGlobal) X(cuKernelGetFunction) X(cuKernelGetName) X(cuKernelGetAttribute) X(cuKernelGetParamInfo) \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncGetModule) X(cuFuncGetName) X(cuFuncGetParamInfo) \
  X(cuFuncIsLoaded) X(cuFuncLoad) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuOccupancyMaxPotentialBlockSize) \
  X(cuOccupancyAvailableDynamicSMemPerBlock)

#define CONFORMANCE_MEMORY_ENTRY_POINTS(X) \
  X(cuMemGetInfo) X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemFree) X(cuMemGetAddressRange) X(cuMemAllocHost) \
  X(cuMemFreeHost) X(cuMemHostAlloc) X(cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuMemHostRegister) \
  X(cuMemHostUnregister) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuPointerGetAttribute) X(cuMemAllocManaged) \
  X(cuMemPrefetchAsync) X(cuMemAdvise) X(cuMemRangeGetAttribute) X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) \
  X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle)

#define CONFORMANCE_VIRTUAL_MEMORY_ENTRY_POINTS(X) \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) \
  X(cuMemSetAccess) X(cuMemGetAccess) X(cuMemGetAllocationGranularity) X(cuMemGetAllocationPropertiesFromHandle) \
  X(cuMemRetainAllocationHandle) X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) \
  X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolTrimTo) X(cuMemPoolSetAttribute) X(cuMemPoolGetAttribute) \
  X(cuMemAllocFromPoolAsync) X(cuMemPoolExportToShareableHandle) X(cuMemPoolImportFromShareableHandle) \
  X(cuMemPoolExportPointer) X(cuMemPoolImportPointer) X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) \
  X(cuDeviceSetMemPool)

#define CONFORMANCE_COPY_ENTRY_POINTS(X) \
  X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) \
  X(cuMemcpyDtoDAsync) X(cuMemcpy2D) X(cuMemcpy2DUnaligned) X(cuMemcpyPeer) X(cuMemsetD8) X(cuMemsetD16) \
  X(cuMemsetD32) X(cuMemsetD2D8) X(cuMemsetD2D16) X(cuMemsetD2D32) X(cuMemsetD8Async) X(cuMemsetD32Async) \
  X(cuMemcpy3D) X(cuMemcpy3DAsync) X(cuMemcpyHtoA) X(cuMemcpyAtoH) X(cuMemcpyAtoD) X(cuMemcpyDtoA) X(cuMemcpyAtoA) \
  X(cuArrayCreate) X(cuArrayGetDescriptor) X(cuArray3DCreate) X(cuArray3DGetDescriptor) X(cuArrayDestroy) \
  X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc) X(cuTexObjectGetTextureDesc) \
  X(cuSurfObjectCreate) X(cuSurfObjectDestroy)

#define CONFORMANCE_STREAM_ENTRY_POINTS(X) \
  X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(cuStreamQuery) X(cuStreamSynchronize) \
  X(cuStreamWaitEvent) X(cuStreamAddCallback) X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuStreamGetCtx) \
  X(cuStreamGetId) X(cuStreamWaitValue32) X(cuStreamWriteValue32) X(cuStreamWaitValue64) X(cuStreamWriteValue64) \
  X(cuStreamBatchMemOp) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) \
  X(cuEventElapsedTime) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) X(cuLaunchHostFunc)

#define CONFORMANCE_GRAPH_ENTRY_POINTS(X) \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphClone) X(cuGraphNodeFindInClone) X(cuGraphNodeGetType) \
  X(cuGraphGetNodes) X(cuGraphGetRootNodes) X(cuGraphGetEdges) X(cuGraphAddDependencies) X(cuGraphAddKernelNode) \
  X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeSetParams) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) \
  X(cuGraphAddHostNode) X(cuGraphAddChildGraphNode) X(cuGraphAddEmptyNode) X(cuGraphAddEventRecordNode) \
  X(cuGraphAddEventWaitNode) X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode) X(cuGraphInstantiate) \
  X(cuGraphExecDestroy) X(cuGraphLaunch) X(cuGraphUpload) X(cuGraphExecUpdate) X(cuGraphNodeSetEnabled) \
  X(cuGraphExecKernelNodeSetParams) X(cuGraphExecMemsetNodeSetParams) X(cuUserObjectCreate) X(cuUserObjectRelease) \
  X(cuGraphRetainUserObject) X(cuDeviceGraphMemTrim) X(cuDeviceGetGraphMemAttribute) X(cuStreamBeginCapture) \
  X(cuStreamEndCapture) X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo) X(cuThreadExchangeStreamCaptureMode)

#define CONFORMANCE_ENTRY_POINTS(X) \
  CONFORMANCE_DEVICE_ENTRY_POINTS(X) \
  CONFORMANCE_CODE_ENTRY_POINTS(X) \
  CONFORMANCE_MEMORY_ENTRY_POINTS(X) \
  CONFORMANCE_VIRTUAL_MEMORY_ENTRY_POINTS(X) \
  CONFORMANCE_COPY_ENTRY_POINTS(X) \
  CONFORMANCE_STREAM_ENTRY_POINTS(X) \
  CONFORMANCE_GRAPH_ENTRY_POINTS(X)
// clang-format on
