#include "softgpu/device/mig/mig_state.h"

#include <algorithm>
#include <numeric>

namespace softgpu {
namespace {

bool overlap(unsigned a, unsigned a_size, unsigned b, unsigned b_size) {
  return a < b + b_size && b < a + a_size;
}

template <typename Items>
auto find_id(Items& items, unsigned id) -> decltype(&items.front()) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.id == id; });
  return found == items.end() ? nullptr : &*found;
}

template <typename Item>
void insert_by_id(std::vector<Item>& items, Item item) {
  const auto place = std::find_if(items.begin(), items.end(), [&](const Item& other) { return other.id > item.id; });
  items.insert(place, std::move(item));
}

}  // namespace

const char* text_of(MigError error) {
  switch (error) {
    case MigError::kNotSupported: return "this GPU has no MIG";
    case MigError::kNotEnabled: return "MIG mode is off";
    case MigError::kInvalid: return "no such profile or placement";
    case MigError::kInsufficient: return "it does not fit beside the instances that exist";
    case MigError::kInUse: return "in use by instances or processes";
    case MigError::kResetRequired: return "pending until the GPU is reset";
    case MigError::kNotFound: return "no such instance";
    case MigError::kState: return "the machine's state cannot be read or written";
  }
  return "";
}

const ComputeInstance* GpuInstance::find(unsigned wanted) const {
  return find_id(compute, wanted);
}

const GpuInstance* MigState::find(unsigned id) const {
  return find_id(instances_, id);
}

GpuInstance* MigState::find_mutable(unsigned id) {
  return find_id(instances_, id);
}

MigResult<void> MigState::set_mode(bool on, bool in_use, bool needs_reset) {
  if (!geometry_->supported()) return tl::unexpected(MigError::kNotSupported);
  if (!instances_.empty() && !on) return tl::unexpected(MigError::kInUse);
  if (on == enabled_) {
    pending_ = on;
    return {};
  }
  if (in_use && !needs_reset) return tl::unexpected(MigError::kInUse);
  pending_ = on;
  if (in_use) return tl::unexpected(MigError::kResetRequired);
  enabled_ = on;
  return {};
}

void MigState::restore_mode(bool enabled, bool pending) {
  enabled_ = enabled;
  pending_ = pending;
}

unsigned MigState::id_at(const MigProfile& profile, unsigned start) const {
  return geometry_->memory_slices / profile.memory_slices - 1 + start / profile.memory_slices;
}

std::vector<unsigned> MigState::free_starts(const MigProfile& profile) const {
  std::vector<unsigned> starts;
  for (const unsigned start : profile.starts) {
    const bool taken = std::any_of(instances_.begin(), instances_.end(), [&](const GpuInstance& other) {
      return (profile.has_media() && other.profile->has_media()) ||
             overlap(start, profile.memory_slices, other.start, other.profile->memory_slices);
    });
    if (!taken) starts.push_back(start);
  }
  return starts;
}

unsigned MigState::remaining(const MigProfile& profile) const {
  unsigned count = 0;
  unsigned end = 0;
  for (const unsigned start : free_starts(profile)) {
    if (start < end) continue;
    end = start + profile.memory_slices;
    ++count;
  }
  return profile.has_media() ? std::min(count, 1U) : count;
}

// How many starts of any profile are free.
std::size_t MigState::freedom() const {
  return std::accumulate(geometry_->profiles.begin(), geometry_->profiles.end(), std::size_t{0},
                         [&](std::size_t sum, const MigProfile& profile) { return sum + free_starts(profile).size(); });
}

// The free starts of a profile, best first: see the head of mig_state.h.
std::vector<unsigned> MigState::starts_by_freedom(const MigProfile& profile) {
  struct Choice {
    std::size_t freedom;
    unsigned start;
  };
  std::vector<Choice> choices;
  for (const unsigned start : free_starts(profile)) {
    instances_.push_back({0, &profile, start, {}});
    choices.push_back({freedom(), start});
    instances_.pop_back();
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.freedom > b.freedom; });
  std::vector<unsigned> starts;
  for (const Choice& choice : choices) starts.push_back(choice.start);
  return starts;
}

MigResult<unsigned> MigState::create(const MigProfile& profile, std::optional<unsigned> start) {
  if (!geometry_->supported()) return tl::unexpected(MigError::kNotSupported);
  if (!enabled_) return tl::unexpected(MigError::kNotEnabled);
  const auto offered = std::find(profile.starts.begin(), profile.starts.end(), start.value_or(profile.starts.front()));
  if (offered == profile.starts.end()) return tl::unexpected(MigError::kInvalid);
  std::vector<unsigned> starts = starts_by_freedom(profile);
  if (start) std::erase_if(starts, [&](unsigned other) { return other != *start; });
  if (starts.empty()) return tl::unexpected(MigError::kInsufficient);
  const unsigned id = id_at(profile, starts.front());
  insert_by_id(instances_, {id, &profile, starts.front(), {}});
  return id;
}

MigResult<std::vector<unsigned>> MigState::create_all(const std::vector<const MigProfile*>& profiles) {
  if (!geometry_->supported()) return tl::unexpected(MigError::kNotSupported);
  if (!enabled_) return tl::unexpected(MigError::kNotEnabled);
  std::vector<std::size_t> order(profiles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return profiles[a]->memory_slices > profiles[b]->memory_slices;
  });
  std::vector<unsigned> ids(profiles.size());
  if (!place_all(profiles, order, 0, ids)) return tl::unexpected(MigError::kInsufficient);
  return ids;
}

// Depth-first over the starts, the largest profile first; leaves instances_ as it was when it fails.
bool MigState::place_all(const std::vector<const MigProfile*>& profiles, const std::vector<std::size_t>& order,
                         std::size_t next, std::vector<unsigned>& ids) {
  if (next == order.size()) return true;
  const MigProfile& profile = *profiles[order[next]];
  for (const unsigned start : starts_by_freedom(profile)) {
    const unsigned id = id_at(profile, start);
    insert_by_id(instances_, {id, &profile, start, {}});
    ids[order[next]] = id;
    if (place_all(profiles, order, next + 1, ids)) return true;
    std::erase_if(instances_, [&](const GpuInstance& instance) { return instance.id == id; });
  }
  return false;
}

MigResult<void> MigState::destroy(unsigned id) {
  const GpuInstance* instance = find(id);
  if (instance == nullptr) return tl::unexpected(MigError::kNotFound);
  if (!instance->compute.empty()) return tl::unexpected(MigError::kInUse);
  std::erase_if(instances_, [&](const GpuInstance& other) { return other.id == id; });
  return {};
}

// Aligned like GPU instances: 2 slices begin at even ones, 3 and 4 at 0 or 4, all of them at 0.
std::vector<unsigned> MigState::possible_compute_starts(const GpuInstance& instance, unsigned slices) {
  const unsigned room = instance.profile->compute_slices;
  const unsigned step = slices <= 2 ? slices : 4;
  std::vector<unsigned> starts;
  if (slices == 0 || slices > room || slices == 5 || slices == 6) return starts;
  for (unsigned start = 0; start + slices <= room; start += step) starts.push_back(start);
  return starts;
}

std::vector<unsigned> MigState::free_compute_starts(const GpuInstance& instance, unsigned slices) {
  std::vector<unsigned> starts = possible_compute_starts(instance, slices);
  std::erase_if(starts, [&](unsigned start) {
    return std::any_of(instance.compute.begin(), instance.compute.end(),
                       [&](const ComputeInstance& other) { return overlap(start, slices, other.start, other.slices); });
  });
  return starts;
}

namespace {

// How many starts of any size are free in `instance` with another compute instance in it.
std::size_t compute_freedom(GpuInstance instance, unsigned start, unsigned slices) {
  instance.compute.push_back({0, start, slices, {}});
  std::size_t sum = 0;
  for (unsigned size = 1; size <= instance.profile->compute_slices; ++size) {
    sum += MigState::free_compute_starts(instance, size).size();
  }
  return sum;
}

}  // namespace

MigResult<unsigned> MigState::create_compute(unsigned gpu_instance, unsigned slices, const Uuid& uuid,
                                             std::optional<unsigned> start) {
  GpuInstance* instance = find_mutable(gpu_instance);
  if (instance == nullptr) return tl::unexpected(MigError::kNotFound);
  const std::vector<unsigned> possible = possible_compute_starts(*instance, slices);
  if (possible.empty() || (start && std::find(possible.begin(), possible.end(), *start) == possible.end())) {
    return tl::unexpected(MigError::kInvalid);
  }
  std::vector<unsigned> starts = free_compute_starts(*instance, slices);
  if (start) std::erase_if(starts, [&](unsigned other) { return other != *start; });
  if (starts.empty()) return tl::unexpected(MigError::kInsufficient);
  const auto best = std::max_element(starts.begin(), starts.end(), [&](unsigned a, unsigned b) {
    return compute_freedom(*instance, a, slices) < compute_freedom(*instance, b, slices);
  });
  unsigned id = 0;
  while (instance->find(id) != nullptr) ++id;
  insert_by_id(instance->compute, {id, *best, slices, uuid});
  return id;
}

MigResult<void> MigState::restore_compute(unsigned gpu_instance, const ComputeInstance& compute) {
  const GpuInstance* instance = find(gpu_instance);
  if (instance == nullptr || instance->find(compute.id) != nullptr) return tl::unexpected(MigError::kInvalid);
  const auto created = create_compute(gpu_instance, compute.slices, compute.uuid, compute.start);
  if (!created) return tl::unexpected(created.error());
  find_id(find_mutable(gpu_instance)->compute, *created)->id = compute.id;
  std::sort(find_mutable(gpu_instance)->compute.begin(), find_mutable(gpu_instance)->compute.end(),
            [](const ComputeInstance& a, const ComputeInstance& b) { return a.id < b.id; });
  return {};
}

MigResult<void> MigState::destroy_compute(unsigned gpu_instance, unsigned id) {
  GpuInstance* instance = find_mutable(gpu_instance);
  if (instance == nullptr || instance->find(id) == nullptr) return tl::unexpected(MigError::kNotFound);
  std::erase_if(instance->compute, [&](const ComputeInstance& other) { return other.id == id; });
  return {};
}

std::string instance_name(const GpuInstance& gpu, const ComputeInstance& compute) {
  if (compute.slices == gpu.profile->compute_slices) return gpu.profile->name;
  return std::to_string(compute.slices) + "c." + gpu.profile->name;
}

}  // namespace softgpu
