#include "softgpu/device/device.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "softgpu/device/files.h"

namespace softgpu {
namespace {

// Accounted memory has no address; this window page is beyond any window, so an IPC look-up never meets it.
constexpr std::uint64_t kNoWindowPage = 1ULL << 33;
constexpr std::uint64_t kPaceStepNs = 5'000'000;

std::uint64_t page_count(const Machine& machine, unsigned index) {
  return std::max<std::uint64_t>(machine.memory_bytes(index) / kPageBytes, 1);
}

}  // namespace

std::string device_file(const Machine& machine, unsigned device, std::string_view what) {
  return machine.path("device" + std::to_string(device) + "." + std::string(what));
}

Result<std::unique_ptr<DeviceView>> DeviceView::open(const Machine& machine, const Clients& clients, unsigned index) {
  const std::string path = device_file(machine, index, "control");
  const std::uint64_t pages = page_count(machine, index);
  const std::size_t bytes = Control::bytes(pages);
  std::string blank(bytes, '\0');
  std::memcpy(blank.data() + offsetof(Control, magic), &Control::kMagic, sizeof Control::kMagic);
  std::memcpy(blank.data() + offsetof(Control, page_count), &pages, sizeof pages);
  if (const auto created = create_file_once(path, blank); !created) return failure(created.error());
  const auto mapping = map_file(path, bytes);
  if (!mapping) return failure(mapping.error() + "; run `softgpu reset`");
  auto& control = *static_cast<Control*>(*mapping);
  if (control.magic != Control::kMagic || control.page_count != pages) {
    return failure(path + " is not a control segment of this version; run `softgpu reset`");
  }
  return std::unique_ptr<DeviceView>(new DeviceView(index, control, clients));
}

BusyMeter::Sample DeviceView::sample() const {
  const std::uint32_t holder = control_.turn_holder.load();
  return meter().sample(monotonic_ns(), holder != 0 && clients_.alive(Owner::unpack(holder)));
}

Result<std::unique_ptr<Device>> Device::open(const Machine& machine, const Clients& clients, Owner self,
                                             unsigned index) {
  auto view = DeviceView::open(machine, clients, index);
  if (!view) return failure(view.error());
  const std::string path = device_file(machine, index, "memory");
  const auto memory_file = open_file(path);
  if (!memory_file) return failure(memory_file.error());
  const std::uint64_t capacity = page_count(machine, index) * kPageBytes;
  if (::ftruncate(*memory_file, static_cast<off_t>(capacity)) != 0) {
    return failure("cannot size " + path + " to " + std::to_string(capacity >> 20) + " MiB: " + std::strerror(errno));
  }
  auto window = Window::reserve(capacity, *memory_file);
  if (!window) return failure(window.error());
  return std::unique_ptr<Device>(
      new Device(machine, clients, self, std::move(*view), std::move(*window), *memory_file));
}

Device::Device(const Machine& machine, const Clients& clients, Owner self, std::unique_ptr<DeviceView> view,
               std::unique_ptr<Window> window, int memory_file)
    : machine_(machine),
      self_(self),
      view_(std::move(view)),
      lock_(view_->control().lock, clients, self),
      pool_(view_->control(), clients, memory_file),
      turn_(view_->control(), lock_, clients, self),
      window_(std::move(window)) {}

bool Device::reserve_pages(std::uint64_t bytes, std::vector<PageRun>& runs) {
  const std::uint64_t count = (bytes + kPageBytes - 1) / kPageBytes;
  if (count == 0) return true;
  runs = pool_.claim(lock_, self_, kNoWindowPage, count);
  return !runs.empty();
}

void Device::pace(std::uint64_t begin_ns, std::uint64_t modelled_ns, const std::atomic<bool>& cancel) const {
  if (machine_.mode != Mode::kModel) return;
  const auto end = begin_ns + static_cast<std::uint64_t>(static_cast<double>(modelled_ns) * machine_.time_scale);
  for (std::uint64_t now = monotonic_ns(); now < end && !cancel.load(); now = monotonic_ns()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(end - now, kPaceStepNs)));
  }
}

}  // namespace softgpu
