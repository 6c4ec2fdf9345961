#include "softgpu/device/device.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "softgpu/device/files.h"
#include "softgpu/device/mapping_guard.h"
#include "softgpu/device/time/trace.h"
#include "softgpu/mutex.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kPaceStepNs = 5'000'000;
constexpr double kLeastSliceScale = 0.1;  // a change of turn costs the host some 50 us

// 0 is no limit; a limit below a page still allows one.
std::uint64_t most_pages(const ClientShare& share) {
  return share.memory_limit == 0 ? 0 : std::max<std::uint64_t>(share.memory_limit / kPageBytes, 1);
}

// A slice is modelled time, too: it is stretched as kernels are.
std::uint64_t slice_ns(const Machine& machine, unsigned index) {
  const std::uint64_t us = machine.time_slice_us != 0 ? machine.time_slice_us : machine.profile(index).time_slice_us;
  const double scale = machine.paced() ? std::max(machine.time_scale, kLeastSliceScale) : 1;
  return static_cast<std::uint64_t>(static_cast<double>(us) * 1000 * scale);
}

}  // namespace

std::string device_file(const Machine& machine, unsigned device, std::string_view what) {
  return machine.path("device" + std::to_string(device) + "." + std::string(what));
}

namespace {

// Maps `files`.control with a table of `pages`, creating it when absent.
Result<Control*> map_control(const std::string& files, std::uint64_t pages) {
  const std::uint64_t header[] = {Control::kMagic, pages};  // as it begins
  const auto mapping =
      map_table(files + ".control", {reinterpret_cast<const char*>(header), sizeof header}, Control::bytes(pages));
  if (!mapping) return failure(mapping.error());
  return static_cast<Control*>(*mapping);
}

// The file of a part's memory, sparse and of its full size. The caller owns the descriptor.
Result<int> open_memory(const Part& part) {
  const std::string path = part.memory_files + ".memory";
  auto file = open_file(path);
  if (!file) return file;
  const std::uint64_t size = part.page_count() * kPageBytes * kPlacesPerPage;
  struct stat info = {};
  const bool sized = ::fstat(*file, &info) == 0 && static_cast<std::uint64_t>(info.st_size) == size;
  if (sized || ::ftruncate(*file, static_cast<off_t>(size)) == 0) return file;
  const std::string error = std::strerror(errno);
  ::close(*file);
  return failure("cannot size " + path + " to " + std::to_string(size >> 20) + " MiB: " + error);
}

bool is_possible(std::uint32_t packed_owner) {
  return Owner::unpack(packed_owner).slot < kMaxClients;
}

// Why the words of `control` cannot be right, empty when they can.
std::string damage_of(const Control& control, std::uint64_t pages) {
  if (control.magic != Control::kMagic || control.page_count != pages) return "its head is damaged";
  if (control.activity_count.load() > kMaxClients || control.places_used.load() > pages * kPlacesPerPage) {
    return "it counts more than there can be";
  }
  if (!is_possible(control.turn_holder.load()) || !is_possible(control.lock.load())) return "no such process holds it";
  if (control.lost.load() > 1 || control.hung.load() > 1) return "a fault's word is none";
  return "";
}

}  // namespace

// Of a whole GPU the three are one file.
Result<std::unique_ptr<DeviceView>> DeviceView::open(const Clients& clients, const Part& part) {
  const auto file = open_memory(part);
  if (!file) return failure(file.error());
  ::close(*file);
  const auto gpu = map_control(part.gpu_files, part.gpu_page_count);
  if (!gpu) return failure(gpu.error());
  if (!part.mig) return std::unique_ptr<DeviceView>(new DeviceView(part, **gpu, **gpu, **gpu, clients));
  const auto memory = map_control(part.memory_files, part.page_count());
  if (!memory) return failure(memory.error());
  const auto compute = map_control(part.compute_files, 0);
  if (!compute) return failure(compute.error());
  return std::unique_ptr<DeviceView>(new DeviceView(part, **gpu, **memory, **compute, clients));
}

std::string DeviceView::damage() const {
  const std::uint64_t pages = part_.page_count();
  const std::uint64_t gpu_pages = part_.gpu_page_count;
  for (const auto& [control, count] :
       {std::pair{&gpu_, gpu_pages}, {&memory_, pages}, {&compute_, part_.mig ? std::uint64_t{0} : pages}}) {
    if (std::string damage = damage_of(*control, count); !damage.empty()) return part_.uuid_text() + ": " + damage;
  }
  if (mapping_lost()) return "a file of the state folder was cut short";
  return clients_.damage();
}

BusyMeter::Sample DeviceView::sample() const {
  const std::uint32_t holder = compute_.turn_holder.load();
  const bool turn_held = holder != 0 && clients_.alive(Owner::unpack(holder));
  return meter().sample(monotonic_ns(), turn_held || mps_kernels_run(compute_, clients_));
}

Result<std::unique_ptr<Device>> Device::open(const Machine& machine, const Clients& clients, Owner self,
                                             const Part& part) {
  ClientShare share;
  share.sms = part.profile.sm_count;
  return open(machine, clients, self, part, share);
}

Result<std::unique_ptr<Device>> Device::open(const Machine& machine, const Clients& clients, Owner self,
                                             const Part& part, const ClientShare& share) {
  auto view = DeviceView::open(clients, part);
  if (!view) return failure(view.error());
  const auto memory_file = open_memory(part);
  if (!memory_file) return failure(memory_file.error());
  auto window = Window::reserve(part.page_count() * kPageBytes, *memory_file);
  if (!window) return failure(window.error());
  return std::unique_ptr<Device>(
      new Device(machine, clients, self, share, std::move(*view), std::move(*window), *memory_file));
}

Device::Device(const Machine& machine, const Clients& clients, Owner self, const ClientShare& share,
               std::unique_ptr<DeviceView> view, std::unique_ptr<Window> window, int memory_file)
    : machine_(machine),
      self_(self),
      share_(share),
      view_(std::move(view)),
      memory_lock_(view_->memory().lock, clients, self),
      compute_lock_(view_->control().lock, clients, self),
      activity_(view_->control(), compute_lock_, clients, self, share),
      pool_(view_->memory(), view_->part().page_count(), clients, memory_file, most_pages(share)),
      turn_(view_->control(), compute_lock_, clients, self, slice_ns(machine, view_->index()),
            [this](bool held) { trace_sms(index(), held ? sms() * 1000 : 0, monotonic_ns()); }),
      window_(std::move(window)) {}

std::uint64_t Device::total_bytes() const {
  const std::uint64_t all = pool_.page_count() * kPageBytes;
  return share_.memory_limit == 0 ? all : std::min(all, share_.memory_limit);
}

std::uint64_t Device::free_bytes() const {
  const PageUse use = pool_.use();
  const std::uint64_t free = (pool_.page_count() - std::min(pool_.page_count(), use.total)) * kPageBytes;
  if (share_.memory_limit == 0) return free;
  const std::uint64_t own = use.by_slot[self_.slot] * kPageBytes;
  return std::min(free, share_.memory_limit - std::min(own, share_.memory_limit));
}

// REQUIRES: the lock of the machine's folder.
Device::Refusal Device::admission() const {
  const auto settings = read_settings(machine_, index());
  if (!settings) return Refusal::kGone;
  if (part().mig) {
    const GpuInstance* instance = settings->mig.find(part().mig->gpu_instance);
    const ComputeInstance* compute = instance ? instance->find(part().mig->compute_instance) : nullptr;
    if (compute == nullptr || compute->uuid != part().uuid) return Refusal::kGone;
  } else if (settings->mig.enabled()) {
    return Refusal::kGone;
  }
  switch (settings->compute_mode) {
    case ComputeMode::kDefault: return Refusal::kNone;
    case ComputeMode::kProhibited: return Refusal::kBusy;
    case ComputeMode::kExclusiveProcess: return view_->users().others(self_) ? Refusal::kBusy : Refusal::kNone;
  }
  return Refusal::kNone;
}

Device::Refusal Device::attach() {
  const LockGuard guard(attach_mutex_);
  if (attached_ == 0) {
    const FolderLock lock(machine_.home);
    if (const Refusal refusal = admission(); refusal != Refusal::kNone) return refusal;
    view_->users().add(self_);
  }
  ++attached_;
  return Refusal::kNone;
}

void Device::detach() {
  const LockGuard guard(attach_mutex_);
  if (--attached_ == 0) view_->users().remove(self_);
}

bool Device::reserve_pages(std::uint64_t bytes, std::vector<PageRun>& runs) {
  const std::uint64_t count = (bytes + kPageBytes - 1) / kPageBytes;
  if (count == 0) return true;
  runs = pool_.claim(memory_lock_, self_, kNoWindowPage, count);
  return !runs.empty();
}

void Device::share_fault(int error) {
  std::atomic<std::uint64_t>& word = view_->control().mps_fault;
  std::uint64_t seen = word.load();
  while (!word.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | static_cast<std::uint32_t>(error))) {
  }
}

void Device::pace(std::uint64_t begin_ns, std::uint64_t modelled_ns, const std::atomic<bool>& cancel) const {
  if (!machine_.paced()) return;
  const auto end = begin_ns + static_cast<std::uint64_t>(static_cast<double>(modelled_ns) * machine_.time_scale);
  for (std::uint64_t now = monotonic_ns(); now < end && !cancel.load(); now = monotonic_ns()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(end - now, kPaceStepNs)));
  }
}

}  // namespace softgpu
