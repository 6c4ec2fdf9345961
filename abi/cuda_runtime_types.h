/* Types of the CUDA runtime's ABI, and what clang needs to compile kernels and `<<<>>>` beside them: see abi/cuda_runtime.h,
 * which is the file to include. C and C++. */
#pragma once

#include "abi/cuda_types.h"

#define CUDART_VERSION 13000

#ifdef __CUDA__
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#endif
#define CUDA_RUNTIME_BOTH __host__ __device__
#else
#define CUDA_RUNTIME_BOTH
#endif

/* One line per error: X(name, value). */
#define CUDA_RUNTIME_ERRORS(X)                    \
  X(cudaSuccess, 0)                               \
  X(cudaErrorInvalidValue, 1)                     \
  X(cudaErrorMemoryAllocation, 2)                 \
  X(cudaErrorInitializationError, 3)              \
  X(cudaErrorCudartUnloading, 4)                  \
  X(cudaErrorProfilerDisabled, 5)                 \
  X(cudaErrorProfilerNotInitialized, 6)           \
  X(cudaErrorProfilerAlreadyStarted, 7)           \
  X(cudaErrorProfilerAlreadyStopped, 8)           \
  X(cudaErrorInvalidConfiguration, 9)             \
  X(cudaErrorInvalidPitchValue, 12)               \
  X(cudaErrorInvalidSymbol, 13)                   \
  X(cudaErrorInvalidHostPointer, 16)              \
  X(cudaErrorInvalidDevicePointer, 17)            \
  X(cudaErrorInvalidTexture, 18)                  \
  X(cudaErrorInvalidTextureBinding, 19)           \
  X(cudaErrorInvalidChannelDescriptor, 20)        \
  X(cudaErrorInvalidMemcpyDirection, 21)          \
  X(cudaErrorAddressOfConstant, 22)               \
  X(cudaErrorTextureFetchFailed, 23)              \
  X(cudaErrorTextureNotBound, 24)                 \
  X(cudaErrorSynchronizationError, 25)            \
  X(cudaErrorInvalidFilterSetting, 26)            \
  X(cudaErrorInvalidNormSetting, 27)              \
  X(cudaErrorMixedDeviceExecution, 28)            \
  X(cudaErrorNotYetImplemented, 31)               \
  X(cudaErrorMemoryValueTooLarge, 32)             \
  X(cudaErrorStubLibrary, 34)                     \
  X(cudaErrorInsufficientDriver, 35)              \
  X(cudaErrorCallRequiresNewerDriver, 36)         \
  X(cudaErrorInvalidSurface, 37)                  \
  X(cudaErrorDuplicateVariableName, 43)           \
  X(cudaErrorDuplicateTextureName, 44)            \
  X(cudaErrorDuplicateSurfaceName, 45)            \
  X(cudaErrorDevicesUnavailable, 46)              \
  X(cudaErrorIncompatibleDriverContext, 49)       \
  X(cudaErrorMissingConfiguration, 52)            \
  X(cudaErrorPriorLaunchFailure, 53)              \
  X(cudaErrorLaunchMaxDepthExceeded, 65)          \
  X(cudaErrorLaunchFileScopedTex, 66)             \
  X(cudaErrorLaunchFileScopedSurf, 67)            \
  X(cudaErrorSyncDepthExceeded, 68)               \
  X(cudaErrorLaunchPendingCountExceeded, 69)      \
  X(cudaErrorInvalidDeviceFunction, 98)           \
  X(cudaErrorNoDevice, 100)                       \
  X(cudaErrorInvalidDevice, 101)                  \
  X(cudaErrorDeviceNotLicensed, 102)              \
  X(cudaErrorSoftwareValidityNotEstablished, 103) \
  X(cudaErrorStartupFailure, 127)                 \
  X(cudaErrorInvalidKernelImage, 200)             \
  X(cudaErrorDeviceUninitialized, 201)            \
  X(cudaErrorMapBufferObjectFailed, 205)          \
  X(cudaErrorUnmapBufferObjectFailed, 206)        \
  X(cudaErrorArrayIsMapped, 207)                  \
  X(cudaErrorAlreadyMapped, 208)                  \
  X(cudaErrorNoKernelImageForDevice, 209)         \
  X(cudaErrorAlreadyAcquired, 210)                \
  X(cudaErrorNotMapped, 211)                      \
  X(cudaErrorNotMappedAsArray, 212)               \
  X(cudaErrorNotMappedAsPointer, 213)             \
  X(cudaErrorECCUncorrectable, 214)               \
  X(cudaErrorUnsupportedLimit, 215)               \
  X(cudaErrorDeviceAlreadyInUse, 216)             \
  X(cudaErrorPeerAccessUnsupported, 217)          \
  X(cudaErrorInvalidPtx, 218)                     \
  X(cudaErrorInvalidGraphicsContext, 219)         \
  X(cudaErrorNvlinkUncorrectable, 220)            \
  X(cudaErrorJitCompilerNotFound, 221)            \
  X(cudaErrorUnsupportedPtxVersion, 222)          \
  X(cudaErrorJitCompilationDisabled, 223)         \
  X(cudaErrorUnsupportedExecAffinity, 224)        \
  X(cudaErrorUnsupportedDevSideSync, 225)         \
  X(cudaErrorContained, 226)                      \
  X(cudaErrorInvalidSource, 300)                  \
  X(cudaErrorFileNotFound, 301)                   \
  X(cudaErrorSharedObjectSymbolNotFound, 302)     \
  X(cudaErrorSharedObjectInitFailed, 303)         \
  X(cudaErrorOperatingSystem, 304)                \
  X(cudaErrorInvalidResourceHandle, 400)          \
  X(cudaErrorIllegalState, 401)                   \
  X(cudaErrorLossyQuery, 402)                     \
  X(cudaErrorSymbolNotFound, 500)                 \
  X(cudaErrorNotReady, 600)                       \
  X(cudaErrorIllegalAddress, 700)                 \
  X(cudaErrorLaunchOutOfResources, 701)           \
  X(cudaErrorLaunchTimeout, 702)                  \
  X(cudaErrorLaunchIncompatibleTexturing, 703)    \
  X(cudaErrorPeerAccessAlreadyEnabled, 704)       \
  X(cudaErrorPeerAccessNotEnabled, 705)           \
  X(cudaErrorSetOnActiveProcess, 708)             \
  X(cudaErrorContextIsDestroyed, 709)             \
  X(cudaErrorAssert, 710)                         \
  X(cudaErrorTooManyPeers, 711)                   \
  X(cudaErrorHostMemoryAlreadyRegistered, 712)    \
  X(cudaErrorHostMemoryNotRegistered, 713)        \
  X(cudaErrorHardwareStackError, 714)             \
  X(cudaErrorIllegalInstruction, 715)             \
  X(cudaErrorMisalignedAddress, 716)              \
  X(cudaErrorInvalidAddressSpace, 717)            \
  X(cudaErrorInvalidPc, 718)                      \
  X(cudaErrorLaunchFailure, 719)                  \
  X(cudaErrorCooperativeLaunchTooLarge, 720)      \
  X(cudaErrorTensorMemoryLeak, 721)               \
  X(cudaErrorNotPermitted, 800)                   \
  X(cudaErrorNotSupported, 801)                   \
  X(cudaErrorSystemNotReady, 802)                 \
  X(cudaErrorSystemDriverMismatch, 803)           \
  X(cudaErrorCompatNotSupportedOnDevice, 804)     \
  X(cudaErrorMpsConnectionFailed, 805)            \
  X(cudaErrorMpsRpcFailure, 806)                  \
  X(cudaErrorMpsServerNotReady, 807)              \
  X(cudaErrorMpsMaxClientsReached, 808)           \
  X(cudaErrorMpsMaxConnectionsReached, 809)       \
  X(cudaErrorMpsClientTerminated, 810)            \
  X(cudaErrorCdpNotSupported, 811)                \
  X(cudaErrorCdpVersionMismatch, 812)             \
  X(cudaErrorStreamCaptureUnsupported, 900)       \
  X(cudaErrorStreamCaptureInvalidated, 901)       \
  X(cudaErrorStreamCaptureMerge, 902)             \
  X(cudaErrorStreamCaptureUnmatched, 903)         \
  X(cudaErrorStreamCaptureUnjoined, 904)          \
  X(cudaErrorStreamCaptureIsolation, 905)         \
  X(cudaErrorStreamCaptureImplicit, 906)          \
  X(cudaErrorCapturedEvent, 907)                  \
  X(cudaErrorStreamCaptureWrongThread, 908)       \
  X(cudaErrorTimeout, 909)                        \
  X(cudaErrorGraphExecUpdateFailure, 910)         \
  X(cudaErrorExternalDevice, 911)                 \
  X(cudaErrorInvalidClusterSize, 912)             \
  X(cudaErrorFunctionNotLoaded, 913)              \
  X(cudaErrorInvalidResourceType, 914)            \
  X(cudaErrorInvalidResourceConfiguration, 915)   \
  X(cudaErrorUnknown, 999)

typedef enum cudaError {
#define CUDA_RUNTIME_ERROR_VALUE(name, value) name = value,
  CUDA_RUNTIME_ERRORS(CUDA_RUNTIME_ERROR_VALUE)
#undef CUDA_RUNTIME_ERROR_VALUE
} cudaError_t;

/* Handles and enumerations that the runtime shares with the driver. */
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUfunction cudaFunction_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUlaunchAttribute cudaLaunchAttribute;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUdevice_attribute cudaDeviceAttr;
typedef CUdevice_P2PAttribute cudaDeviceP2PAttr;
typedef CUlimit cudaLimit;
typedef CUfunc_cache cudaFuncCache;
typedef CUmemLocation cudaMemLocation;
typedef CUmem_advise cudaMemoryAdvise;
typedef CUhostFn cudaHostFn_t;
typedef CUdriverProcAddressQueryResult cudaDriverEntryPointQueryResult;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* user_data);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaMemAttachGlobal 0x01
#define cudaDeviceScheduleAuto 0x00
#define cudaDeviceScheduleBlockingSync 0x04
#define cudaDeviceMapHost 0x08
#define cudaInitDeviceFlagsAreValid 0x01

typedef enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
} cudaMemcpyKind;

typedef enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
} cudaMemoryType;

typedef enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
} cudaFuncAttribute;

typedef enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
} cudaStreamCaptureMode;

typedef enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
} cudaStreamCaptureStatus;

typedef struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  /* A number is a shape: `<<<2, 64>>>`. NOLINTNEXTLINE(google-explicit-constructor) */
  CUDA_RUNTIME_BOTH constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
      : x(width), y(height), z(depth) {}
#endif
} dim3;

typedef struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef struct cudaChannelFormatDesc {
  int x, y, z, w; /* bits of each channel */
  int f;          /* 0 signed, 1 unsigned, 2 float */
} cudaChannelFormatDesc;

typedef struct cudaExtent {
  size_t width, height, depth;
} cudaExtent;

typedef struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
  long reserved[8];
} cudaPointerAttributes;

typedef struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
  int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
  int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
  int reserved[16];
} cudaFuncAttributes;

typedef struct cudaGraphExecUpdateResultInfo {
  int result;
  cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

typedef struct cudaDeviceProp {
  char name[256];
  CUuuid uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D[2],
      maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3],
      maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D,
      maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap,
      maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
      memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
      pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
      accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported,
      memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, deviceNumaConfig,
      deviceNumaId, mpsEnabled, hostNumaId;
  unsigned int gpuPciDeviceID, gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported, reserved[56];
} cudaDeviceProp;
