// Settings of contexts and streams, events of whole contexts, green contexts, launches of CUDA 3.
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::test_function;
using softgpu::testing::use_device;

DRIVER_TEST(ContextSettings, LimitsHaveBounds) {
  use_device();
  std::size_t value = 0;
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(value, 4096U);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 25), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);  // a V100
  EXPECT_EQ(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST_IN(ContextSettings, LimitsFollowTheDevice, (Environment{{"SOFTGPU_PROFILE", "h100-80"}})) {
  use_device();
  std::size_t value = 0;
  int most = 0;
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, std::size_t{1} << 40), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, static_cast<std::size_t>(most));
}

DRIVER_TEST(ContextSettings, PreferencesAreCheckedAndKept) {
  CUcontext context = use_device();
  CUfunc_cache cache;
  unsigned version = 0;
  int supported = 1;
  EXPECT_EQ(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetCacheConfig(&cache), CUDA_SUCCESS);
  EXPECT_EQ(cache, CU_FUNC_CACHE_PREFER_L1);
  EXPECT_EQ(cuCtxSetCacheConfig(static_cast<CUfunc_cache>(4)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(3)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetFlags(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), CUDA_SUCCESS);
  EXPECT_EQ(supported, 0);
  EXPECT_EQ(cuCtxGetApiVersion(context, &version), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetApiVersion(nullptr, &version), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_TEST(ContextSettings, AttachedContextsOutliveTheirDetachment) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext made = nullptr;
  CUcontext attached = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxAttach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxAttach(&attached, 0), CUDA_SUCCESS);
  EXPECT_EQ(attached, made);
  EXPECT_EQ(cuCtxDetach(made), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDetach(made), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDetach(made), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

DRIVER_TEST(ContextEvent, StandsForAllStreamsAndHoldsAllStreams) {
  CUcontext context = use_device();
  Gate gate;
  CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream second = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = nullptr;
  cuEventCreate(&event, 0);
  gate.close(first);
  EXPECT_EQ(cuCtxRecordEvent(context, event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(second), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxWaitEvent(context, event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(context, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

DRIVER_TEST(StreamAttribute, IsReadBackAndCopied) {
  use_device();
  CUstream first = make_stream(0);
  CUstream second = make_stream(0);
  CUlaunchAttributeValue value = {};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  EXPECT_EQ(cuStreamSetAttribute(first, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetAttribute(second, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_SUCCESS);
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
  EXPECT_EQ(cuStreamCopyAttributes(second, first), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetAttribute(second, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_SUCCESS);
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_YIELD);
  value.syncPolicy = static_cast<CUsynchronizationPolicy>(0);
  EXPECT_EQ(cuStreamSetAttribute(first, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamSetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamGetAttribute(first, static_cast<CUlaunchAttributeID>(77), &value), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(LaunchAttribute, KnownOnesAreTakenAndUnknownOnesRefused) {
  use_device();
  CUevent event = nullptr;
  cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  CUlaunchAttribute attributes[3] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -1;
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attributes[2].value.launchCompletionEvent = {event, 0};
  CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, nullptr, attributes, 3};
  const auto launch = [&] { return cuLaunchKernelEx(&config, test_function("empty"), nullptr, nullptr); };
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {1, 1, 1};
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  attributes[0].value.clusterDim.x = 2;
  EXPECT_EQ(launch(), CUDA_ERROR_NOT_SUPPORTED);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  attributes[0].value.accessPolicyWindow = {nullptr, 0, 2.0F, CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_NORMAL};
  EXPECT_EQ(launch(), CUDA_ERROR_INVALID_VALUE);
  attributes[0].id = static_cast<CUlaunchAttributeID>(99);
  EXPECT_EQ(launch(), CUDA_ERROR_INVALID_VALUE);
  config.attrs = nullptr;
  EXPECT_EQ(launch(), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(LegacyLaunch, ShapeAndParametersStayWithTheFunction) {
  use_device();
  CUfunction function = test_function("add_one");
  CUdeviceptr word = make_words(1);
  unsigned value = 0;
  EXPECT_EQ(cuLaunch(function), CUDA_ERROR_INVALID_VALUE);  // without its parameter
  EXPECT_EQ(cuFuncSetBlockShape(function, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetBlockShape(function, 1, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetSharedSize(function, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuParamSetv(function, 4, &word, sizeof word), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSetv(function, 0, &word, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(cuParamSetSize(function, 9), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSetSize(function, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunch(function), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchGrid(function, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchGrid(function, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 2U);
  EXPECT_EQ(cuLaunch(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(GreenContext, OwnsPartOfTheSms) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUdevResource all = {};
  CUdevResource groups[3] = {};
  CUdevResource rest = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  EXPECT_EQ(all.sm.smCount, 80U);
  unsigned count = 3;
  EXPECT_EQ(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 25), CUDA_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(groups[2].sm.smCount, 26U);
  EXPECT_EQ(rest.sm.smCount, 2U);
  EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 8), CUDA_SUCCESS);
  EXPECT_EQ(count, 10U);
  EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 81), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, groups, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxGetDevResource(green, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  EXPECT_EQ(all.sm.smCount, 26U);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUgreenCtx of_stream = nullptr;
  EXPECT_EQ(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetGreenCtx(stream, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, green);
  EXPECT_EQ(cuStreamGetCtx_v2(stream, &context, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
