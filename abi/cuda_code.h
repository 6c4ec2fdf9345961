/* Code: linking, and what the older part of cuda.h lacks of libraries, kernels and occupancy. Included by abi/cuda.h. */
#pragma once

#include "abi/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUlinkState_st* CUlinkState;
typedef struct CUtexref_st* CUtexref;
typedef struct CUsurfref_st* CUsurfref;

typedef enum CUjitInputType {
  CU_JIT_INPUT_CUBIN = 0,
  CU_JIT_INPUT_PTX = 1,
  CU_JIT_INPUT_FATBINARY = 2,
  CU_JIT_INPUT_OBJECT = 3,
  CU_JIT_INPUT_LIBRARY = 4,
  CU_JIT_INPUT_NVVM = 5,
  CU_JIT_NUM_INPUT_TYPES = 6
} CUjitInputType;

CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* state);
CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* state);
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned int count, CUjit_option* options, void** values);
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int count, CUjit_option* options, void** values);
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                       CUjit_option* options, void** values);
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                          CUjit_option* options, void** values);
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size);
CUresult cuLinkDestroy(CUlinkState state);

CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name);
CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name);
CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name);
CUresult cuLibraryGetUnifiedFunction(void** function, CUlibrary library, const char* symbol);
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device);
CUresult cuOccupancyMaxPotentialClusterSize(int* cluster_size, CUfunction function, const CUlaunchConfig* config);
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config);

#ifdef __cplusplus
}
#endif

#ifndef CUDA_ABI_EXACT_NAMES
#define cuLinkCreate cuLinkCreate_v2
#define cuLinkAddData cuLinkAddData_v2
#define cuLinkAddFile cuLinkAddFile_v2
#endif
