/* Checkpoints of processes, from CUDA 12.8 on: one process stops another and takes its memory off the devices. Part of
 * abi/cuda.h. Arguments may be null; what is reserved must be zero. */
#pragma once

#include "abi/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CUprocessState {
  CU_PROCESS_STATE_RUNNING = 0,
  CU_PROCESS_STATE_LOCKED = 1,
  CU_PROCESS_STATE_CHECKPOINTED = 2,
  CU_PROCESS_STATE_FAILED = 3
} CUprocessState;

typedef struct CUcheckpointLockArgs {
  unsigned int timeoutMs; /* 0: none */
  unsigned int reserved0;
  cuuint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct CUcheckpointCheckpointArgs {
  cuuint64_t reserved[8];
} CUcheckpointCheckpointArgs;

/* From 13.0 on the first words describe other devices to restore to; a driver before that has them reserved. */
typedef struct CUcheckpointRestoreArgs {
  cuuint64_t reserved[8];
} CUcheckpointRestoreArgs;

typedef struct CUcheckpointUnlockArgs {
  cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* arguments);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* arguments);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* arguments);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* arguments);
CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state);
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* thread_id);

#ifdef __cplusplus
}
#endif
