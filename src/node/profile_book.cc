#include "node/profile_book.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace fairlead {

Status ProfileBook::recover() {
  auto profiles = store_.load_profiles();
  if (!profiles) return fail(profiles.error());
  for (FunctionProfile& profile : *profiles) {
    std::vector<FunctionProfile>& known = profiles_[profile.function];
    known.insert(known.begin(), std::move(profile));
  }
  return {};
}

void ProfileBook::keep(FunctionProfile profile, Done done) {
  FunctionProfile durable = profile;
  store_.put_profile(std::move(durable), [this, life = life_.watch(), profile = std::move(profile),
                                          done = std::move(done)](const Status& written) {
    if (life.ended()) return;
    if (!written) {
      spdlog::error("profile of function {} is not on disk: {}", profile.function, written.error().message);
      if (done) done(fail(written.error()));
      return;
    }
    if (!functions_.get(profile.function)) {
      if (done) done(fail(Errc::kNotFound, "function {} was deleted meanwhile", profile.function));
      return;
    }
    std::vector<FunctionProfile>& known = profiles_[profile.function];
    std::erase_if(known, [&](const FunctionProfile& one) {
      return one.code_sha256 == profile.code_sha256 && one.device == profile.device;
    });
    known.insert(known.begin(), profile);
    if (known.size() > Store::kMaxProfilesOfFunction) known.pop_back();
    kept_(profile);
    if (done) done(profile);
  });
}

std::vector<FunctionProfile> ProfileBook::all(const std::string& function) const {
  const auto known = profiles_.find(function);
  return known == profiles_.end() ? std::vector<FunctionProfile>() : known->second;
}

void ProfileBook::each(const Visit& visit) const {
  for (const auto& [function, profiles] : profiles_) std::for_each(profiles.rbegin(), profiles.rend(), visit);
}

const FunctionProfile* ProfileBook::of(const FunctionRecord& record, const std::vector<Device>& devices) const {
  const auto known = profiles_.find(record.name);
  if (known == profiles_.end()) return nullptr;
  for (const FunctionProfile& profile : known->second) {
    const auto is_it = [&](const Device& device) { return device.name == profile.device; };
    if (profile.code_sha256 == record.code_sha256 && std::any_of(devices.begin(), devices.end(), is_it))
      return &profile;
  }
  return nullptr;
}

}  // namespace fairlead
