// Settings of contexts and streams, events of whole contexts, green contexts, launches of CUDA 3.
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::free_bytes;
using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::run_kernel;
using softgpu::testing::test_function;
using softgpu::testing::use_device;
using softgpu::testing::word_at;

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

CUgreenCtx make_green(CUdevResource* groups, unsigned count) {
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, groups, count), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  return green;
}

// As programs use them: modules, memory and events are made once, and streams choose the SMs.
DRIVER_TEST(GreenContext, StreamsTakeModulesAndEventsOfThePrimaryContext) {
  use_device();
  CUdevResource all = {}, groups[4] = {};
  unsigned count = 4;
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  ASSERT_EQ(cuDevSmResourceSplitByCount(groups, &count, &all, nullptr, 0, 8), CUDA_SUCCESS);
  const CUdeviceptr word = make_words(1);
  const std::size_t free = free_bytes();
  CUgreenCtx green = make_green(groups, 2);
  EXPECT_LE(free - free_bytes(), 2U << 20) << "a page: its primary context has taken what contexts take";
  CUstream stream = nullptr, unrelated = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  CUdeviceptr address = word;
  void* parameters[] = {&address};
  EXPECT_EQ(run_kernel("add_one", parameters, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(word_at(word), 1U);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&unrelated, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(run_kernel("add_one", parameters, unrelated), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuEventRecord(event, unrelated), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  EXPECT_EQ(run_kernel("add_one", parameters, stream), CUDA_ERROR_STREAM_DETACHED);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(run_kernel("add_one", parameters), CUDA_SUCCESS);
  EXPECT_EQ(word_at(word), 2U);
}

// A green context of the first 2 SMs, with one stream.
struct Green {
  Green() {
    CUdevResource all = {};
    CUdevResource group = {};
    unsigned count = 1;
    EXPECT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    EXPECT_EQ(cuDevSmResourceSplitByCount(&group, &count, &all, nullptr, 0, 2), CUDA_SUCCESS);
    context = make_green(&group, 1);
    EXPECT_EQ(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  }
  CUgreenCtx context = nullptr;
  CUstream stream = nullptr;
};

DRIVER_TEST(GreenContext, WhoWaitsForThePrimaryContextWaitsForItsStreams) {
  CUcontext primary = use_device();
  const Green green;
  CUevent of_all = nullptr, of_green = nullptr;
  ASSERT_EQ(cuEventCreate(&of_all, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&of_green, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  Gate gate;
  ASSERT_EQ(gate.close(green.stream), CUDA_SUCCESS);
  gate.wait_until_closed();
  EXPECT_EQ(cuCtxRecordEvent(primary, of_all), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxRecordEvent(green.context, of_green), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(of_all), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(of_green), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuEventSynchronize(of_all), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(of_green), CUDA_SUCCESS);
  // So many that they are not over when a call returns that waits for nothing.
  CUcontext shown = nullptr;
  ASSERT_EQ(cuCtxFromGreenCtx(&shown, green.context), CUDA_SUCCESS);
  const CUdeviceptr word = make_words(1);
  CUdeviceptr address = word;
  void* parameters[] = {&address};
  unsigned expected = 0;
  for (CUcontext current : {primary, shown}) {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(run_kernel("add_one", parameters, green.stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent_v2(current), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
    expected += 1000;
    EXPECT_EQ(word_at(word), expected);
  }
}

DRIVER_TEST(GreenContext, NothingEndlessIsInTheWayOfItsEnd) {
  use_device();
  const Green green;
  CUcontext shown = nullptr;
  ASSERT_EQ(cuCtxFromGreenCtx(&shown, green.context), CUDA_SUCCESS);
  Gate in_its_stream;
  ASSERT_EQ(in_its_stream.close(green.stream), CUDA_SUCCESS);
  in_its_stream.wait_until_closed();
  EXPECT_EQ(cuGreenCtxDestroy(green.context), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
}

DRIVER_TEST(GreenContext, WaitsForAnEventAndIsNotInTheWayOfOthers) {
  use_device();
  const Green green;
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = nullptr, after = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  Gate gate;
  ASSERT_EQ(gate.close(other), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, other), CUDA_SUCCESS);
  EXPECT_EQ(cuGreenCtxRecordEvent(green.context, after), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(after), CUDA_SUCCESS) << "nothing of the other stream is its own";
  EXPECT_EQ(cuGreenCtxWaitEvent(green.context, event), CUDA_SUCCESS);
  const CUdeviceptr word = make_words(1);
  CUdeviceptr address = word;
  void* parameters[] = {&address};
  EXPECT_EQ(run_kernel("add_one", parameters, green.stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(green.stream), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(green.stream), CUDA_SUCCESS);
  EXPECT_EQ(word_at(word), 1U);
}

DRIVER_TEST(GreenContext, ModulesThatItsContextHasLoadedRunInItsStreams) {
  CUcontext primary = use_device();
  const Green green;
  CUcontext shown = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuCtxFromGreenCtx(&shown, green.context), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent_v2(shown), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleLoadData(&module, softgpu::testing::kTestPtx), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "add_one"), CUDA_SUCCESS);
  CUdeviceptr nowhere = 8;
  void* parameters[] = {&nowhere};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, green.stream, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(green.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(GreenContext, IsOfDifferentPartsOfOneSplit) {
  use_device();
  CUdevResource all = {}, first[2] = {}, second[2] = {}, rest = {};
  unsigned count = 2;
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  ASSERT_EQ(cuDevSmResourceSplitByCount(first, &count, &all, &rest, 0, 8), CUDA_SUCCESS);
  ASSERT_EQ(cuDevSmResourceSplitByCount(second, &count, &all, nullptr, 0, 8), CUDA_SUCCESS);
  CUdevResourceDesc description = nullptr;
  const auto describe = [&](CUdevResource a, const CUdevResource& b) {
    CUdevResource both[] = {a, b};
    return cuDevResourceGenerateDesc(&description, both, 2);
  };
  EXPECT_EQ(describe(first[1], first[0]), CUDA_SUCCESS);
  EXPECT_EQ(describe(first[1], rest), CUDA_SUCCESS);
  EXPECT_EQ(describe(first[0], first[0]), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  EXPECT_EQ(describe(first[0], second[1]), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  EXPECT_EQ(describe(all, all), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  EXPECT_EQ(cuDevSmResourceSplitByCount(second, &count, &rest, nullptr, 0, 8),
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

DRIVER_TEST(GreenContext, ACooperativeLaunchFitsItsSms) {
  use_device();
  CUdevResource all = {}, group = {};
  unsigned count = 1;
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  ASSERT_EQ(cuDevSmResourceSplitByCount(&group, &count, &all, nullptr, 0, 2), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(cuGreenCtxStreamCreate(&stream, make_green(&group, 1), CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  const auto launch = [](unsigned blocks, CUstream where) {
    return cuLaunchCooperativeKernel(test_function("empty"), blocks, 1, 1, 1024, 1, 1, 0, where, nullptr);
  };
  EXPECT_EQ(launch(4, stream), CUDA_SUCCESS) << "two blocks of 1,024 threads on each SM";
  EXPECT_EQ(launch(5, stream), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(launch(5, nullptr), CUDA_SUCCESS);
}

DRIVER_TEST(GreenContext, AFaultIsItsPrimaryContexts) {
  use_device();
  CUdevResource all = {};
  ASSERT_EQ(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(cuGreenCtxStreamCreate(&stream, make_green(&all, 1), CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  CUdeviceptr nowhere = 8;
  void* parameters[] = {&nowhere};
  EXPECT_EQ(run_kernel("add_one", parameters, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
