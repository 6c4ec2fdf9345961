#include "runtime/device_server/cut_session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/digest.h"
#include "base/log.h"
#include "gpu/fence/block_ranges.h"
#include "gpu/kernel_image.h"
#include "runtime/device_server/kernel_session.h"
#include "runtime/device_server/task_registrations.h"

namespace fairlead {
namespace {

Result<UniqueFd> file_of(const std::string& text) {
  UniqueFd file(::memfd_create("module", MFD_CLOEXEC));
  for (std::size_t done = 0; file && done < text.size();) {
    const ssize_t wrote = ::write(file.get(), text.data() + done, text.size() - done);
    if (wrote <= 0) return fail(errno_error(errno, "memory for a module"));
    done += static_cast<std::size_t>(wrote);
  }
  if (!file) return fail(errno_error(errno, "memory for a module"));
  return file;
}

class Cutter {
 public:
  Cutter(const KernelTask& task, const std::vector<std::uint64_t>& at_once, std::uint32_t architecture)
      : task_(task), at_once_(at_once), architecture_(architecture) {}

  // Kernels of the module that have more blocks than the device holds, each once.
  std::vector<std::string> long_kernels(std::size_t module) const {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < task_.kernels.size(); ++k) {
      const KernelLaunch& launch = task_.kernels[k];
      const bool is_long = launch.module == module && blocks_of(launch.grid) > at_once_[k];
      if (is_long && std::ranges::find(names, launch.kernel) == names.end()) names.push_back(launch.kernel);
    }
    return names;
  }

  // The module's new text; empty: none of its kernels gets a twin, and why is kept.
  Result<std::string> cut(std::size_t module, const UniqueFd& image, std::uint64_t bytes) {
    const std::vector<std::string> names = long_kernels(module);
    if (names.empty()) return std::string();
    const auto read = read_module_image(image, bytes);
    if (!read) return fail(read.error());
    const auto ptx = ptx_of_image(*read, architecture_);
    if (!ptx) return whole(module, ptx.error().message);
    auto ranged = fence::add_ranges(*ptx, names);
    if (!ranged) return whole(module, ranged.error().message);
    if (ranged->has_variables) return whole(module, "it has variables, which would begin anew");
    for (const fence::RangedKernel& kernel : ranged->kernels) {
      if (kernel.why_whole.empty()) cut_.emplace_back(module, kernel.name);
      if (!kernel.why_whole.empty()) keep_reason(fmt::format("kernel {}: {}", kernel.name, kernel.why_whole));
    }
    return ranged->has_twins() ? std::move(ranged->ptx) : std::string();
  }

  bool is_cut(const KernelLaunch& launch) const {
    return std::ranges::any_of(
        cut_, [&](const auto& one) { return one.first == launch.module && one.second == launch.kernel; });
  }
  const std::string& reasons() const { return reasons_; }

 private:
  static constexpr std::size_t kLongestReasons = 2000;

  std::string whole(std::size_t module, const std::string& why) {
    keep_reason(fmt::format("module {}: {}", task_.modules[module].name, why));
    return {};
  }
  void keep_reason(const std::string& why) {
    if (reasons_.size() < kLongestReasons) reasons_.append(reasons_.empty() ? "" : "; ").append(why);
  }

  const KernelTask& task_;
  const std::vector<std::uint64_t>& at_once_;
  const std::uint32_t architecture_;
  std::vector<std::pair<std::size_t, std::string>> cut_;
  std::string reasons_;
};

}  // namespace

Result<CutSession> cut_session(const wire::RegisterSession& frame, const std::vector<UniqueFd>& images,
                               const KernelTask& task, const std::vector<std::uint64_t>& at_once,
                               std::uint32_t architecture) {
  CutSession made{
      .frame = {.session = frame.session, .tenant = frame.tenant, .task = frame.task}, .files = {}, .twins = {}};
  made.frame.most_width_percent = frame.most_width_percent;
  Cutter cutter(task, at_once, architecture);
  for (std::size_t m = 0; m < frame.modules.size(); ++m) {
    wire::ModuleImage module = frame.modules[m];
    if (!images.at(m)) return fail(Errc::kNotFound, "module {} was not kept", task.modules[m].name);
    const auto text = cutter.cut(m, images[m], module.bytes);
    if (!text) return fail(text.error());
    auto file =
        text->empty() ? Result<UniqueFd>(UniqueFd(::fcntl(images[m].get(), F_DUPFD_CLOEXEC, 0))) : file_of(*text);
    if (!file) return fail(file.error());
    if (!text->empty()) {
      module.sha256 = to_hex(as_text(sha256(*text)));
      module.bytes = text->size();
    }
    module.descriptor = static_cast<std::int32_t>(made.files.size());
    made.files.push_back(*std::move(file));
    made.frame.modules.push_back(std::move(module));
  }
  for (const KernelLaunch& launch : task.kernels) made.twins.push_back(cutter.is_cut(launch));
  if (!cutter.reasons().empty()) {
    spdlog::info("device server: kernels of session {} are launched whole, whoever waits: {}", frame.session,
                 cutter.reasons());
  }
  if (std::ranges::find(made.twins, true) == made.twins.end()) {
    return fail(Errc::kNotFound, "none of its kernels can be cut{}{}", cutter.reasons().empty() ? "" : ": ",
                cutter.reasons());
  }
  return made;
}

}  // namespace fairlead
