// A program that knows nothing of the shim, for the tests that preload it: `shim-program SCENARIO [ARGUMENT...]`. It
// prints what went wrong and ends with 1, or ends with 0.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"
#include "abi/nvml.h"

// Of the functions per thread the headers declare none.
extern "C" decltype(cuLaunchKernel) cuLaunchKernel_ptsz;
extern "C" decltype(cuStreamSynchronize) cuStreamSynchronize_ptsz;

namespace {

int failures = 0;

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::printf("line %d: %s does not hold\n", __LINE__, #condition); \
      ++failures;                                                       \
    }                                                                   \
  } while (false)
#define EXPECT_CODE(call, code)                                                                            \
  do {                                                                                                     \
    const int got = (call);                                                                                \
    if (got != (code)) std::printf("line %d: %s is %d, not %d\n", __LINE__, #call, got, code), ++failures; \
  } while (false)

using Arguments = std::vector<std::string>;

// ---- Which library a function is of ----

constexpr char kShim[] = "libfairlead-shim.so";
constexpr char kDriver[] = "libcuda.so.1";

bool is_symbol(void* function, const char* symbol, const char* library) {
  Dl_info info = {};
  const bool right = function != nullptr && ::dladdr(function, &info) != 0 && info.dli_saddr == function &&
                     info.dli_sname != nullptr && std::strcmp(info.dli_sname, symbol) == 0 &&
                     std::strstr(info.dli_fname, library) != nullptr;
  if (!right) {
    std::printf("%s is %s of %s, not of %s\n", symbol, info.dli_sname != nullptr ? info.dli_sname : "nothing",
                info.dli_fname != nullptr ? info.dli_fname : "nowhere", library);
  }
  return right;
}

std::vector<std::vector<std::string>> read_table(const std::string& path) {
  std::ifstream table(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, '\t');) row.push_back(field);
    rows.push_back(row);
  }
  return rows;
}

struct Form {
  bool per_thread;
  int since;
  std::string symbol;
};

// The newest form that is old enough, a per-thread one when asked for and there is any.
std::string expected_symbol(const std::vector<Form>& forms, int version, bool per_thread) {
  for (const bool wanted : {true, false}) {
    if (wanted && !per_thread) continue;
    const Form* best = nullptr;
    for (const Form& form : forms) {
      if (form.per_thread == wanted && form.since <= version && (best == nullptr || form.since > best->since)) {
        best = &form;
      }
    }
    if (best != nullptr) return best->symbol;
  }
  return "";
}

// LOOKUPS SYMBOLS HOOKS: as CUDA 13's runtime library does, every answer checked.
void replay(const Arguments& files) {
  std::map<std::string, std::vector<Form>> forms;
  std::map<std::string, std::string> decisions;
  for (const auto& row : read_table(files.at(1))) {
    forms[row[0]].push_back({!row[1].empty(), std::stoi(row[2]), row[3]});
  }
  for (const auto& row : read_table(files.at(2))) decisions[row[1]] = row[2];
  void* const library = ::dlopen(kDriver, RTLD_NOW);
  const auto resolve = reinterpret_cast<decltype(&cuGetProcAddress_v2)>(::dlsym(library, "cuGetProcAddress_v2"));
  EXPECT(is_symbol(reinterpret_cast<void*>(resolve), "cuGetProcAddress_v2", kShim));
  int hooked = 0, answered = 0;
  for (const auto& row : read_table(files.at(0))) {
    const int version = std::stoi(row[1]);
    const std::string symbol = expected_symbol(forms[row[0]], version, row[2] == "2");
    void* function = nullptr;
    const CUresult result =
        resolve(row[0].c_str(), &function, version, static_cast<cuuint64_t>(std::stoi(row[2])), nullptr);
    EXPECT_CODE(result, symbol.empty() ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
    if (symbol.empty()) continue;
    const bool ours = decisions[symbol] != "pass";
    EXPECT(is_symbol(function, symbol.c_str(), ours ? kShim : kDriver));
    hooked += ours ? 1 : 0;
    ++answered;
  }
  std::printf("%d answered, %d hooked\n", answered, hooked);
  EXPECT(answered > 400 && hooked > 150);
}

// ---- Paths to the driver ----

void direct_link(const Arguments&) {
  EXPECT(is_symbol(reinterpret_cast<void*>(cuMemAlloc_v2), "cuMemAlloc_v2", kShim));
  EXPECT(is_symbol(reinterpret_cast<void*>(cuLaunchKernel), "cuLaunchKernel", kShim));
  EXPECT(is_symbol(reinterpret_cast<void*>(cuDeviceGetName), "cuDeviceGetName", kDriver));
}

using Dlsym = void* (*)(void*, const char*);

void check_dlsym(Dlsym look_up) {
  void* const library = ::dlopen(kDriver, RTLD_NOW);
  EXPECT(is_symbol(look_up(library, "cuLaunchKernel_ptsz"), "cuLaunchKernel_ptsz", kShim));
  EXPECT(is_symbol(look_up(library, "cuMemAlloc"), "cuMemAlloc", kShim));  // a stub that counts
  EXPECT(is_symbol(look_up(library, "cuDeviceGetName"), "cuDeviceGetName", kDriver));
  EXPECT(is_symbol(look_up(RTLD_DEFAULT, "cuLaunchKernel"), "cuLaunchKernel", kShim));
  EXPECT(is_symbol(look_up(RTLD_DEFAULT, "cuDeviceGetName"), "cuDeviceGetName", kDriver));
  // Next to the program comes what is preloaded.
  EXPECT(is_symbol(look_up(RTLD_NEXT, "cuLaunchKernel"), "cuLaunchKernel", kShim));
  ::dlerror();
  EXPECT(look_up(library, "cuNoSuchFunction") == nullptr);
  EXPECT(::dlerror() != nullptr);
  EXPECT(look_up(library, "cuLaunchKernel") != nullptr);
  EXPECT(::dlerror() == nullptr);
}

void dlsym_versions(const Arguments&) {
  check_dlsym(::dlsym);
  for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.34"}) {
    const auto look_up = reinterpret_cast<Dlsym>(::dlvsym(RTLD_DEFAULT, "dlsym", version));
    EXPECT(look_up != nullptr);
    if (look_up != nullptr) check_dlsym(look_up);
  }
  // One that was looked up in libc itself is ours all the same.
  void* const libc = ::dlopen("libc.so.6", RTLD_NOW);
  check_dlsym(reinterpret_cast<Dlsym>(::dlsym(libc, "dlsym")));
}

// LIBRARY: what an interposing library finds next to itself.
void next(const Arguments& expected) {
  const auto find = reinterpret_cast<void* (*)()>(::dlsym(RTLD_DEFAULT, "interposer_next_allocate"));
  EXPECT(find != nullptr);
  if (find != nullptr) EXPECT(is_symbol(find(), "cuMemAlloc_v2", expected.at(0).c_str()));
}

void resolver_versions(const Arguments&) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  EXPECT_CODE(cuGetProcAddress_v2("cuGetProcAddress", &function, 11030, 0, &status), CUDA_SUCCESS);
  EXPECT_CODE(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT(is_symbol(function, "cuGetProcAddress", kShim));
  const auto first = reinterpret_cast<decltype(&cuGetProcAddress)>(function);
  EXPECT_CODE(first("cuLaunchKernel", &function, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM), CUDA_SUCCESS);
  EXPECT(is_symbol(function, "cuLaunchKernel_ptsz", kShim));
  EXPECT_CODE(first("cuMemAlloc", &function, 2000, 0), CUDA_SUCCESS);
  EXPECT(is_symbol(function, "cuMemAlloc", kShim));
  EXPECT_CODE(first("cuMemAlloc", &function, 13000, 0), CUDA_SUCCESS);
  EXPECT(is_symbol(function, "cuMemAlloc_v2", kShim));
  EXPECT_CODE(cuGetProcAddress_v2("cuGetProcAddress", &function, 12000, 0, nullptr), CUDA_SUCCESS);
  EXPECT(is_symbol(function, "cuGetProcAddress_v2", kShim));
  EXPECT_CODE(cuGetProcAddress_v2("", &function, 0, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  EXPECT_CODE(cuGetProcAddress_v2("cuNonsense", &function, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
}

// ---- Work ----

constexpr char kPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .global .align 8 .b8 table[4096];
.visible .entry empty() { ret; }
.visible .entry add_one(.param .u64 word)
{
  .reg .b64 %address; .reg .b32 %old;
  ld.param.u64 %address, [word];
  atom.global.add.u32 %old, [%address], 1;
  ret;
}
.visible .entry wait_flag(.param .u64 flag)
{
  .reg .pred %set; .reg .b64 %address; .reg .b32 %value;
  ld.param.u64 %address, [flag];
again:
  ld.volatile.global.u32 %value, [%address];
  setp.eq.u32 %set, %value, 0;
  @%set bra again;
  ret;
}
)";

CUfunction load(const char* name, CUmodule* loaded = nullptr) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_CODE(cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
  EXPECT_CODE(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
  if (loaded != nullptr) *loaded = module;
  return function;
}

CUcontext use_device() {
  CUcontext context = nullptr;
  EXPECT_CODE(cuInit(0), CUDA_SUCCESS);
  EXPECT_CODE(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_CODE(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return context;
}

CUresult launch(CUfunction function, void** parameters = nullptr, CUstream stream = nullptr) {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

// COUNT: as many launches, each seen by the device.
void launches(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(0));
  use_device();
  CUfunction const add_one = load("add_one");
  CUdeviceptr word = 0;
  unsigned int value = 0;
  EXPECT_CODE(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  EXPECT_CODE(cuMemsetD32_v2(word, 0, 1), CUDA_SUCCESS);
  void* parameters[] = {&word};
  for (int i = 0; i < count; ++i) EXPECT_CODE(launch(add_one, parameters), CUDA_SUCCESS);
  EXPECT_CODE(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_CODE(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  EXPECT(value == static_cast<unsigned int>(count));
  EXPECT_CODE(cuMemFree_v2(word), CUDA_SUCCESS);
}

// THREADS COUNT: the same from several threads, on streams of their own.
void threads(const Arguments& arguments) {
  const int count = std::stoi(arguments.at(1));
  CUcontext const context = use_device();
  CUfunction const add_one = load("add_one");
  CUdeviceptr word = 0;
  EXPECT_CODE(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  EXPECT_CODE(cuMemsetD32_v2(word, 0, 1), CUDA_SUCCESS);
  std::vector<std::thread> running;
  for (int t = 0; t < std::stoi(arguments.at(0)); ++t) {
    running.emplace_back([&] {
      cuCtxSetCurrent(context);
      void* parameters[] = {&word};
      for (int i = 0; i < count; ++i) {
        EXPECT_CODE(cuLaunchKernel_ptsz(add_one, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
      }
      EXPECT_CODE(cuStreamSynchronize_ptsz(nullptr), CUDA_SUCCESS);
    });
  }
  for (std::thread& thread : running) thread.join();
  unsigned int value = 0;
  EXPECT_CODE(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  EXPECT(value == static_cast<unsigned int>(count * std::stoi(arguments.at(0))));
}

// A kernel that runs until the host says so, on a stream of its own.
struct Spin {
  Spin() {
    void* memory = nullptr;
    EXPECT_CODE(cuMemHostAlloc(&memory, 4, 0), CUDA_SUCCESS);
    flag = static_cast<std::atomic<unsigned int>*>(memory);
    flag->store(0);
    address = reinterpret_cast<CUdeviceptr>(memory);
    EXPECT_CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void start(CUfunction wait_flag) {
    void* parameters[] = {&address};
    EXPECT_CODE(launch(wait_flag, parameters, stream), CUDA_SUCCESS);
  }
  std::atomic<unsigned int>* flag = nullptr;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
};

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// MS STREAMS HOW: kernels that overlap for MS milliseconds and more, then idle for as long; prints how long the first part
// took on the host's clock. HOW the end is waited for: stream, context, event, query, copy.
void busy(const Arguments& arguments) {
  const int ms = std::stoi(arguments.at(0));
  const std::string& how = arguments.at(2);
  use_device();
  CUfunction const wait_flag = load("wait_flag");
  std::vector<Spin> spins(std::stoul(arguments.at(1)));
  CUdeviceptr word = 0;
  CUevent event = nullptr;
  unsigned int value = 0;
  EXPECT_CODE(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  EXPECT_CODE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  for (Spin& spin : spins) spin.start(wait_flag);
  sleep_ms(ms);
  for (Spin& spin : spins) spin.flag->store(1);
  for (Spin& spin : spins) {
    EXPECT_CODE(cuEventRecord(event, spin.stream), CUDA_SUCCESS);
    if (how == "stream") EXPECT_CODE(cuStreamSynchronize(spin.stream), CUDA_SUCCESS);
    if (how == "event") EXPECT_CODE(cuEventSynchronize(event), CUDA_SUCCESS);
    while (how == "query" && cuStreamQuery(spin.stream) == CUDA_ERROR_NOT_READY) sleep_ms(1);
    while (how == "copy" && cuEventQuery(event) == CUDA_ERROR_NOT_READY) sleep_ms(1);
  }
  if (how == "context") EXPECT_CODE(cuCtxSynchronize(), CUDA_SUCCESS);
  if (how == "copy") EXPECT_CODE(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%.1f\n", took.count());
  sleep_ms(ms);
  EXPECT_CODE(cuMemFree_v2(word), CUDA_SUCCESS);
}

// What is put on the device and not waited for. Nothing of it ends before the flags are set.
std::vector<Spin> put_work(const std::string& how) {
  CUfunction const wait_flag = load("wait_flag");
  std::vector<Spin> spins(how == "threads" || how == "streams" ? 3 : 1);
  if (how == "threads") {
    CUcontext context = nullptr;
    EXPECT_CODE(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    for (Spin& spin : spins) {
      std::thread([&] {  // on the thread's own default stream; the thread is gone before the work is
        void* parameters[] = {&spin.address};
        cuCtxSetCurrent(context);
        EXPECT_CODE(cuLaunchKernel_ptsz(wait_flag, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
      })
          .join();
    }
    return spins;
  }
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream const stream = spins[0].stream;
  if (how == "graph") EXPECT_CODE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  for (Spin& spin : spins) spin.start(wait_flag);
  if (how == "graph") {
    EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_CODE(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  }
  if (how == "pile") {
    for (int i = 0; i < 500; ++i) spins[0].start(wait_flag);
  }
  if (how == "destroyed") EXPECT_CODE(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  if (how == "contexts") {
    CUcontext other = nullptr;
    EXPECT_CODE(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    spins.emplace_back().start(load("wait_flag"));
  }
  return spins;
}

// MS HOW: work of MS milliseconds that nobody waits for, then nothing for four times as long. Prints how long the work took
// on the host's clock. HOW it is put: plain, pile, streams, threads, contexts, graph, destroyed (its stream), forked, late
// (waited for at the very end), short (work of no length).
void unawaited(const Arguments& arguments) {
  const int ms = std::stoi(arguments.at(0));
  const std::string& how = arguments.at(1);
  if (how == "forked") {
    const pid_t child = ::fork();
    if (child != 0) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      return;
    }
  }
  use_device();
  const auto start = std::chrono::steady_clock::now();
  if (how == "short") {
    EXPECT_CODE(launch(load("empty")), CUDA_SUCCESS);
  } else {
    const std::vector<Spin> spins = put_work(how);
    sleep_ms(ms);
    for (const Spin& spin : spins) spin.flag->store(1);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%.1f\n", took.count());
  std::fflush(stdout);
  sleep_ms(4 * ms);
  if (how == "late") EXPECT_CODE(cuCtxSynchronize(), CUDA_SUCCESS);
  if (how == "forked") ::_exit(failures);
}

// HOW: a copy on the device, by the call of that name.
void copy_on_device(const Arguments& arguments) {
  const std::string& how = arguments.at(0);
  CUcontext const context = use_device();
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  CUdeviceptr from = 0, to = 0;
  EXPECT_CODE(cuMemAlloc_v2(&from, kBytes), CUDA_SUCCESS);
  EXPECT_CODE(cuMemAlloc_v2(&to, kBytes), CUDA_SUCCESS);
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = from;
  rows.dstDevice = to;
  rows.WidthInBytes = kBytes;
  rows.Height = 1;
  if (how == "cuMemcpy") EXPECT_CODE(cuMemcpy(to, from, kBytes), CUDA_SUCCESS);
  if (how == "cuMemcpyDtoD") EXPECT_CODE(cuMemcpyDtoD_v2(to, from, kBytes), CUDA_SUCCESS);
  if (how == "cuMemcpyPeer") EXPECT_CODE(cuMemcpyPeer(to, context, from, context, kBytes), CUDA_SUCCESS);
  if (how == "cuMemcpy2D") EXPECT_CODE(cuMemcpy2D_v2(&rows), CUDA_SUCCESS);
  EXPECT_CODE(cuCtxSynchronize(), CUDA_SUCCESS);
}

void capture(const Arguments&) {
  use_device();
  CUmodule module = nullptr;
  CUfunction const add_one = load("add_one", &module);
  CUstream stream = nullptr;
  CUdeviceptr word = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  unsigned int value = 0;
  EXPECT_CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_CODE(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  EXPECT_CODE(cuMemsetD32_v2(word, 0, 1), CUDA_SUCCESS);
  void* parameters[] = {&word};
  EXPECT_CODE(launch(add_one, parameters, stream), CUDA_SUCCESS);  // busy when the capture begins
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_CODE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (int i = 0; i < 10; ++i) EXPECT_CODE(launch(add_one, parameters, stream), CUDA_SUCCESS);
  EXPECT_CODE(cuMemsetD32Async(word, 5, 1, stream), CUDA_SUCCESS);
  EXPECT_CODE(launch(add_one, parameters, stream), CUDA_SUCCESS);
  EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_CODE(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_CODE(cuMemcpyDtoH_v2(&value, word, 4), CUDA_SUCCESS);
  EXPECT(value == 6);
  // A capture that the driver ends, because its stream is destroyed, is over for the shim too.
  EXPECT_CODE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  cuStreamDestroy_v2(stream);
}

// COUNT...: so many launches, then a line, and on when the test has written a byte; for each count.
void steps(const Arguments& counts) {
  for (const std::string& count : counts) {
    launches({count});
    std::printf("step\n");
    std::fflush(stdout);
    char byte = 0;
    EXPECT(::read(STDIN_FILENO, &byte, 1) == 1);
  }
}

void fork_after_use(const Arguments&) {
  launches({"10"});
  const pid_t child = ::fork();
  if (child == 0) {
    cuInit(0);  // the child registers by itself, whatever the driver says
    std::printf("child\n");
    std::fflush(stdout);
    ::usleep(200000);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  launches({"10"});
}

void fork_before_use(const Arguments&) {
  const pid_t child = ::fork();
  launches({"10"});
  if (child == 0) ::_exit(failures);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Closes every descriptor it does not know, as daemons do.
void close_descriptors(const Arguments&) {
  launches({"10"});
  ::syscall(SYS_close_range, 3U, ~0U, 0);
  const int mine = ::open("/dev/null", O_WRONLY);
  EXPECT(mine >= 0);
  for (int i = 0; i < 100; ++i) ::dup2(mine, 650 + i);  // where the shim's was
  launches({"10"});
}

// BYTES: allocations of every kind up to a cap, and what the queries say.
void cap(const Arguments& arguments) {
  const std::size_t bytes = std::stoul(arguments.at(0));
  use_device();
  std::size_t free = 0, total = 0;
  CUdeviceptr first = 0, second = 0;
  EXPECT_CODE(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT(total == bytes && free == bytes);
  EXPECT_CODE(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT(total == bytes);
  EXPECT_CODE(cuMemAllocAsync(&first, bytes / 2, nullptr), CUDA_SUCCESS);
  EXPECT_CODE(cuMemAllocAsync(&second, bytes / 2 + 1, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(cuMemAllocManaged(&second, bytes / 2 + 1, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT(free == bytes - bytes / 2);
  nvmlDevice_t device = nullptr;
  nvmlMemory_t memory = {};
  void* const nvml = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto init = reinterpret_cast<decltype(&nvmlInit_v2)>(::dlsym(nvml, "nvmlInit_v2"));
  const auto find =
      reinterpret_cast<decltype(&nvmlDeviceGetHandleByIndex_v2)>(::dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"));
  void* const ask = ::dlsym(nvml, "nvmlDeviceGetMemoryInfo");
  EXPECT(is_symbol(ask, "nvmlDeviceGetMemoryInfo", kShim));
  EXPECT_CODE(init(), NVML_SUCCESS);
  EXPECT_CODE(find(0, &device), NVML_SUCCESS);
  EXPECT_CODE(reinterpret_cast<decltype(&nvmlDeviceGetMemoryInfo)>(ask)(device, &memory), NVML_SUCCESS);
  EXPECT(memory.total == bytes && memory.used == bytes / 2);
  EXPECT_CODE(cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  EXPECT_CODE(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
}

const std::map<std::string, void (*)(const Arguments&)> kScenarios = {
    {"replay", replay},
    {"direct-link", direct_link},
    {"dlsym-versions", dlsym_versions},
    {"next", next},
    {"resolver-versions", resolver_versions},
    {"launches", launches},
    {"threads", threads},
    {"busy", busy},
    {"unawaited", unawaited},
    {"copy-on-device", copy_on_device},
    {"capture", capture},
    {"steps", steps},
    {"fork-after-use", fork_after_use},
    {"fork-before-use", fork_before_use},
    {"close-descriptors", close_descriptors},
    {"cap", cap},
};

}  // namespace

int main(int count, char** words) {
  const auto scenario = kScenarios.find(count > 1 ? words[1] : "");
  if (scenario == kScenarios.end()) {
    std::printf("usage: shim-program SCENARIO [ARGUMENT...]\n");
    return 2;
  }
  scenario->second(Arguments(words + 2, words + count));
  return failures == 0 ? 0 : 1;
}
