// Which devices a process sees, and in which order: CUDA_VISIBLE_DEVICES.
//
// Without the variable: every GPU that is not in MIG mode, and of every GPU instance the first compute instance, in the
// order of the GPUs. The variable lists some of these; an entry is
//   a number                        the position in that order
//   GPU-<uuid>                      a GPU; a prefix serves when it fits no other. Not a GPU in MIG mode: it is no device
//   MIG-<uuid>                      a compute instance, also one that is not the first of its GPU instance; or a prefix
//   MIG-GPU-<uuid>/<gi>/<ci>        the same by its ids, as drivers before R470 wrote it
// The list ends at the first entry that names nothing, or a device that was named before.
//
// Drivers before R570 saw one MIG device at most, and no whole GPU beside it: $SOFTGPU_MIG_ENUMERATION = single.
#pragma once

#include <string>
#include <vector>

#include "softgpu/device/mig/part.h"

namespace softgpu {

// `list`: the value of CUDA_VISIBLE_DEVICES, or null. Error: the settings of a GPU are damaged.
Result<std::vector<Part>> visible_devices(const Machine& machine, const char* list, bool single_mig);

}  // namespace softgpu
