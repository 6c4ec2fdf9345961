#include "softgpu/driver/visible_devices.h"

#include <algorithm>
#include <sstream>

#include "softgpu/device/key_value.h"

namespace softgpu {
namespace {

constexpr std::size_t kMaxMigDevices = 64;

struct Catalogue {
  std::vector<Part> usual;  // what a process sees without the variable
  std::vector<Part> all;    // what the variable can name
};

Result<Catalogue> catalogue_of(const Machine& machine) {
  Catalogue catalogue;
  for (unsigned gpu = 0; gpu < machine.device_count; ++gpu) {
    const auto settings = read_settings(machine, gpu);
    if (!settings) return failure(settings.error());
    if (!settings->mig.enabled()) {
      catalogue.all.push_back(whole_gpu(machine, gpu));
      catalogue.usual.push_back(catalogue.all.back());
      continue;
    }
    for (Part& part : mig_parts(machine, gpu, settings->mig)) {
      const bool first = catalogue.all.empty() || catalogue.all.back().gpu != gpu || !catalogue.all.back().mig ||
                         catalogue.all.back().mig->gpu_instance != part.mig->gpu_instance;
      if (first) catalogue.usual.push_back(part);
      catalogue.all.push_back(std::move(part));
    }
  }
  return catalogue;
}

// MIG-GPU-<uuid>/<gi>/<ci>
std::string old_name(const Machine& machine, const Part& part) {
  return "MIG-" + uuid_text(machine, part.gpu) + "/" + std::to_string(part.mig->gpu_instance) + "/" +
         std::to_string(part.mig->compute_instance);
}

// The one part that `entry` names, or null.
const Part* find_named(const Machine& machine, const Catalogue& catalogue, const std::string& entry) {
  const bool is_number =
      !entry.empty() && std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    const auto position = parse_number("CUDA_VISIBLE_DEVICES", entry, 0, catalogue.usual.size());
    return position && *position < catalogue.usual.size() ? &catalogue.usual[*position] : nullptr;
  }
  if (entry.size() <= 4) return nullptr;  // "GPU-" and "MIG-" name nothing
  const Part* found = nullptr;
  for (const Part& part : catalogue.all) {
    const bool fits = part.uuid_text().starts_with(entry) || (part.mig && old_name(machine, part) == entry);
    if (!fits) continue;
    if (found != nullptr) return nullptr;  // ambiguous
    found = &part;
  }
  return found;
}

// What drivers before R570 would have left: the first MIG device alone, if there is one.
void keep_single_mig(std::vector<Part>& parts) {
  const auto mig = std::find_if(parts.begin(), parts.end(), [](const Part& part) { return part.mig.has_value(); });
  if (mig != parts.end()) parts = std::vector<Part>{*mig};
}

}  // namespace

Result<std::vector<Part>> visible_devices(const Machine& machine, const char* list, bool single_mig) {
  auto catalogue = catalogue_of(machine);
  if (!catalogue) return failure(catalogue.error());
  std::vector<Part> visible;
  if (list == nullptr) {
    visible = catalogue->usual;
  } else {
    std::istringstream entries(list);
    for (std::string entry; std::getline(entries, entry, ',');) {
      const auto begin = entry.find_first_not_of(' ');
      if (begin == std::string::npos) break;
      entry = entry.substr(begin, entry.find_last_not_of(' ') - begin + 1);
      const Part* part = find_named(machine, *catalogue, entry);
      const auto named = [&](const Part& other) { return other.uuid == part->uuid; };
      if (part == nullptr || std::any_of(visible.begin(), visible.end(), named)) break;
      visible.push_back(*part);
    }
  }
  if (single_mig) keep_single_mig(visible);
  std::size_t mig_devices = 0;
  std::erase_if(visible, [&](const Part& part) { return part.mig && ++mig_devices > kMaxMigDevices; });
  return visible;
}

}  // namespace softgpu
