#include "gpu/checkpoint.h"

#include <algorithm>
#include <utility>

#include "abi/cuda.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

constexpr int kSince = 12080;  // CUDA 12.8
constexpr const char* kAdvice =
    "install the NVIDIA driver (Debian: nvidia-driver and libcuda1), or use the software GPU (--softgpu)";

class DriverCheckpoints final : public ProcessCheckpoints {
 public:
  explicit DriverCheckpoints(SharedLibrary library) : library_(std::move(library)) {}

  Status bind() {
    for (const Status& status : {library_.bind(init_, "cuInit"), library_.bind(version_, "cuDriverGetVersion"),
                                 library_.bind(error_name_, "cuGetErrorName")}) {
      if (!status) return status;
    }
    const bool has_all = find(lock_, "cuCheckpointProcessLock") && find(checkpoint_, "cuCheckpointProcessCheckpoint") &&
                         find(restore_, "cuCheckpointProcessRestore") && find(unlock_, "cuCheckpointProcessUnlock") &&
                         find(state_, "cuCheckpointProcessGetState");
    if (has_all) return {};
    int version = 0;
    version_(&version);
    return fail(Errc::kUnavailable,
                "the driver {} is of CUDA {}.{} and has no checkpoints of processes: they need NVIDIA's driver 570 "
                "(CUDA 12.8) or later",
                library_.path(), version / 1000, version % 1000 / 10);
  }

  Status start() override {
    const CUresult code = init_(0);
    if (code == CUDA_SUCCESS) return {};
    return fail(Errc::kUnavailable, "CUDA driver {}: start: {}", library_.path(), name_of(code));
  }

  Answer lock(int pid, Duration patience) override {
    CUcheckpointLockArgs arguments{};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    arguments.timeoutMs = static_cast<unsigned>(std::clamp<std::int64_t>(ms, 1, kMostPatienceMs));  // 0: for ever
    return answer(lock_(pid, &arguments));
  }
  Answer checkpoint(int pid) override { return answer(checkpoint_(pid, nullptr)); }
  Answer restore(int pid) override { return answer(restore_(pid, nullptr)); }
  Answer unlock(int pid) override { return answer(unlock_(pid, nullptr)); }

  std::optional<State> state(int pid) override {
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    if (state_(pid, &state) != CUDA_SUCCESS) return std::nullopt;
    switch (state) {
      case CU_PROCESS_STATE_RUNNING: return State::kRunning;
      case CU_PROCESS_STATE_LOCKED: return State::kLocked;
      case CU_PROCESS_STATE_CHECKPOINTED: return State::kCheckpointed;
      case CU_PROCESS_STATE_FAILED: return State::kFailed;
    }
    return State::kFailed;
  }

 private:
  static constexpr std::int64_t kMostPatienceMs = 3'600'000;

  // As the driver's own resolver has it: a symbol of the library may be there and mean nothing.
  template <typename Function>
  bool find(Function*& function, const char* symbol) const {
    decltype(cuGetProcAddress_v2)* resolve = nullptr;
    void* address = nullptr;
    if (!library_.bind(resolve, "cuGetProcAddress_v2")) return false;
    if (resolve(symbol, &address, kSince, 0, nullptr) != CUDA_SUCCESS || address == nullptr) return false;
    function = reinterpret_cast<Function*>(address);
    return true;
  }

  std::string name_of(CUresult code) const {
    const char* text = nullptr;
    if (error_name_(code, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
    return fmt::format("{} ({})", text, static_cast<int>(code));
  }

  Answer answer(CUresult code) const {
    switch (code) {
      case CUDA_SUCCESS: return {};
      case CUDA_ERROR_NOT_READY: return {Outcome::kTimedOut, name_of(code)};
      case CUDA_ERROR_OUT_OF_MEMORY: return {Outcome::kNoMemory, name_of(code)};
      case CUDA_ERROR_ILLEGAL_STATE: return {Outcome::kWrongState, name_of(code)};
      default: return {Outcome::kRefused, name_of(code)};
    }
  }

  const SharedLibrary library_;
  decltype(cuInit)* init_ = nullptr;
  decltype(cuDriverGetVersion)* version_ = nullptr;
  decltype(cuGetErrorName)* error_name_ = nullptr;
  decltype(cuCheckpointProcessLock)* lock_ = nullptr;
  decltype(cuCheckpointProcessCheckpoint)* checkpoint_ = nullptr;
  decltype(cuCheckpointProcessRestore)* restore_ = nullptr;
  decltype(cuCheckpointProcessUnlock)* unlock_ = nullptr;
  decltype(cuCheckpointProcessGetState)* state_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<ProcessCheckpoints>> ProcessCheckpoints::load(const std::string& library_dir) {
  Result<SharedLibrary> library = SharedLibrary::load(library_dir, "libcuda.so.1", kAdvice);
  if (!library) return fail(library.error());
  auto checkpoints = std::make_unique<DriverCheckpoints>(std::move(*library));
  if (Status bound = checkpoints->bind(); !bound) return fail(bound.error());
  return checkpoints;
}

}  // namespace fairlead
