#include "gpu/sm_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace fairlead {

Result<std::unique_ptr<SmGroups>> SmGroups::create(const CudaContext& cuda) {
  std::unique_ptr<SmGroups> made(new SmGroups(cuda));
  if (Status bound = made->bind(); !bound) return fail(bound.error());
  if (Status divided = made->divide(); !divided) return fail(divided.error());
  return made;
}

Status SmGroups::bind() {
  const SharedLibrary& driver = cuda_.driver();
  for (const Status& status :
       {driver.bind(calls_.resource, "cuDeviceGetDevResource"),
        driver.bind(calls_.split, "cuDevSmResourceSplitByCount"),
        driver.bind(calls_.describe, "cuDevResourceGenerateDesc"), driver.bind(calls_.create, "cuGreenCtxCreate"),
        driver.bind(calls_.destroy, "cuGreenCtxDestroy"), driver.bind(calls_.make_stream, "cuGreenCtxStreamCreate"),
        driver.bind(calls_.destroy_stream, "cuStreamDestroy_v2")}) {
    if (!status) return status;
  }
  return {};
}

// As small as the driver has them, so that a width is met well, unless there would be too many.
Status SmGroups::divide() {
  CUdevResource all{};
  CUresult code = calls_.resource(cuda_.device().number, &all, CU_DEV_RESOURCE_TYPE_SM);
  sms_ = all.sm.smCount;
  const unsigned least = (all.sm.smCount + kMost - 1) / kMost;
  unsigned count = 0;
  if (code == CUDA_SUCCESS) code = calls_.split(nullptr, &count, &all, nullptr, 0, least);
  groups_.resize(std::min(count, kMost));
  count = static_cast<unsigned>(groups_.size());
  CUdevResource rest{};
  if (code == CUDA_SUCCESS && count > 0) code = calls_.split(groups_.data(), &count, &all, &rest, 0, least);
  if (Status divided = cuda_.check(code, "divide the device's SMs"); !divided) return divided;
  groups_.resize(std::min<std::size_t>(count, groups_.size()));
  if (groups_.empty()) return fail(Errc::kUnavailable, "the driver divides the device's SMs into no groups");
  sms_of_each_ = groups_.front().sm.smCount;
  return {};
}

std::uint32_t SmGroups::within(int percent) const {
  const std::uint64_t whole = sms_ * static_cast<std::uint64_t>(std::max(percent, 0)) / (100 * sms_of_each_);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(whole, 1, groups_.size()));
}

int SmGroups::percent_of(std::uint32_t groups) const {
  return static_cast<int>((100 * sms_of_each_ * groups + sms_ - 1) / sms_);
}

Result<CUgreenCtx> SmGroups::make(const Set& groups) const {
  std::vector<CUdevResource> chosen;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (groups.test(group)) chosen.push_back(groups_[group]);
  }
  FL_CHECK(!chosen.empty() && chosen.size() == groups.count(), "a green context of groups that are not there");
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  CUresult code = calls_.describe(&description, chosen.data(), static_cast<unsigned>(chosen.size()));
  if (code == CUDA_SUCCESS)
    code = calls_.create(&context, description, cuda_.device().number, CU_GREEN_CTX_DEFAULT_STREAM);
  if (Status made = cuda_.check(code, fmt::format("a green context of {} SMs", chosen.size() * sms_of_each_)); !made) {
    return fail(made.error());
  }
  return context;
}

Result<CUstream> SmGroups::make_stream(CUgreenCtx context) const {
  CUstream stream = nullptr;
  const CUresult code = calls_.make_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0);
  if (Status made = cuda_.check(code, "a green context's stream"); !made) return fail(made.error());
  return stream;
}

void SmGroups::destroy(CUgreenCtx context, std::span<const CUstream> streams) const {
  destroy_streams(streams);
  calls_.destroy(context);
}

void SmGroups::destroy_streams(std::span<const CUstream> streams) const {
  for (const CUstream stream : streams) calls_.destroy_stream(stream);
}

}  // namespace fairlead
