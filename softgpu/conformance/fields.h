// The fields, one file of cases/ each.
#pragma once

#include "softgpu/conformance/case.h"

namespace softgpu::conformance {

extern const Field kVector;
extern const Field kLinearAlgebra;
extern const Field kStencil;
extern const Field kNeural;
extern const Field kData;
extern const Field kSimulation;
extern const Field kHashing;
extern const Field kArithmetic;
extern const Field kWarp;
extern const Field kSynchronization;
extern const Field kLanguage;
extern const Field kTensor;
extern const Field kDriver;
extern const Field kMemory;
extern const Field kStreams;
extern const Field kTextures;
extern const Field kManaged;
extern const Field kVirtualMemory;
extern const Field kPools;
extern const Field kGraphs;
extern const Field kCapture;
extern const Field kLaunches;
extern const Field kCode;
extern const Field kArrays;
extern const Field kProcesses;
extern const Field kPeers;

}  // namespace softgpu::conformance
