#include "node/published_versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "model/cut_tag.h"
#include "model/egress_list.h"
#include "model/mig_tag.h"
#include "model/model_consent.h"
#include "model/model_tags.h"
#include "model/provisioned_tag.h"
#include "model/volume.h"
#include "model/warmth_tags.h"

namespace fairlead {
namespace {

// What a program needs of its device, and how it is reached: the version's.
constexpr std::array<std::string_view, 11> kVersionTags = {
    "gpu:memory-mib", "gpu:compute-percent", "gpu:objective-ms", kContractTag, kVolumesTag,   kCutKernelsTag,
    kEgressTag,       kModelInputsTag,       kModelOutputsTag,   kBatchTag,    kMigProfileTag};
// Whose it is, and what that one may have, and when its instances were told to go: the function's.
constexpr std::array<std::string_view, 4> kFunctionTags = {kTenantTag, kLendsModelsTag, kTakesModelsTag,
                                                           kUnloadedAtTag};

template <std::size_t N>
void take_tags(const std::array<std::string_view, N>& names, const FunctionConfig& from, FunctionConfig& to) {
  for (const std::string_view name : names) {
    const auto tag = from.tags.find(std::string(name));
    if (tag != from.tags.end()) to.tags[tag->first] = tag->second;
  }
}

bool is_same(const FunctionRecord& version, const FunctionRecord& latest) {
  FunctionConfig as_published = latest.config;
  as_published.description = version.config.description;
  return version.config == as_published && version.code_sha256 == latest.code_sha256 && version.image == latest.image;
}

Error no_version(const std::string& function, std::string_view qualifier) {
  return {Errc::kNotFound, fmt::format("Function not found: {}:{}", function_arn(function), qualifier)};
}

Error no_alias(const std::string& function, std::string_view name) {
  return {Errc::kNotFound, fmt::format("Cannot find alias arn: {}:{}", function_arn(function), name)};
}

// With the tags that are the function's.
FunctionRecord as_seen(FunctionRecord version, const FunctionRecord& latest) {
  for (const auto& [name, value] : latest.config.tags) {
    if (!name.starts_with("gpu:") || name == "gpu:weight") version.config.tags.try_emplace(name, value);
  }
  take_tags(kFunctionTags, latest.config, version.config);
  version.reserved_concurrency = latest.reserved_concurrency;
  return version;
}

std::vector<std::string> aliases_of(const std::map<std::string, FunctionAlias>& aliases, std::uint64_t version) {
  std::vector<std::string> names;
  for (const auto& [name, alias] : aliases) {
    if (alias.version == version || alias.weights.contains(version)) names.push_back(name);
  }
  return names;
}

}  // namespace

FunctionRecord version_of(const FunctionRecord& latest, std::uint64_t number) {
  FunctionRecord version = latest;
  version.version = number;
  version.reserved_concurrency.reset();
  version.seats.clear();
  version.config.tags.clear();
  take_tags(kVersionTags, latest.config, version.config);
  return version;
}

void PublishedVersions::recover(PublishedState state, const TaskOf& task_of) {
  for (FunctionRecord& record : state.versions) {
    auto task = task_of(record);
    Known& of = known(record.name);
    of.last = std::max(of.last, record.version);
    const std::uint64_t number = record.version;
    of.versions[number] = {std::move(record), std::move(task)};
  }
  for (const auto& [function, last] : state.last_numbers) known(function).last = std::max(known(function).last, last);
  for (auto& [function, aliases] : state.aliases) {
    for (FunctionAlias& alias : aliases) known(function).aliases[alias.name] = std::move(alias);
  }
}

void PublishedVersions::replace(const std::string& function, PublishedState state, const TaskOf& task_of) {
  const auto before = known_.extract(function);
  recover(std::move(state), task_of);
  if (!before.empty()) {
    for (const auto& [number, version] : before.mapped().versions) {
      if (find_version(function, number) == nullptr) remove_flow(function, number);
    }
  }
  function_changed(function);
}

// ---- flows

RegisteredFunction* PublishedVersions::flow_of(const std::string& function, std::uint64_t version) {
  RegisteredFunction* const latest = ports_.functions.find(function);
  if (latest == nullptr || version == 0) return latest;
  if (RegisteredFunction* const flow = ports_.functions.find_version(function, version)) return flow;
  const Version* const known = find_version(function, version);
  if (known == nullptr) return nullptr;
  RegisteredFunction& flow = ports_.functions.add_version(in_force(*known, latest->record), known->kernel_task);
  ports_.driver.core().add_function(spec_of(flow, latest->flow));
  return &flow;
}

// Its weight is a tag, so that no variable of the version's environment gives it another one.
FunctionRecord PublishedVersions::in_force(const Version& version, const FunctionRecord& latest) const {
  FunctionRecord record = version.record;
  take_tags(kFunctionTags, latest.config, record.config);
  record.config.tags["gpu:weight"] = fmt::format("{}", gpu_settings(latest.config).value_or(GpuSettings()).weight);
  record.reserved_concurrency = latest.reserved_concurrency;
  const int least = kept(latest, record.version);
  if (least > 0) record.config.tags = with_instances_kept(record.config.tags, least).value_or(record.config.tags);
  return record;
}

// All that an alias has are kept of the version that has what is left of its calls, which in a gradual change is the one of before.
int PublishedVersions::kept(const FunctionRecord& latest, std::uint64_t version) const {
  int instances = 0;
  for (const auto& [qualifier, count] : provisioned_in(latest.config.tags).value_or(Provisioned())) {
    std::uint64_t leads_to = version_number(qualifier);
    if (leads_to == 0) {
      const auto& aliases = known_.at(latest.name).aliases;
      const auto alias = aliases.find(qualifier);
      leads_to = alias == aliases.end() ? 0 : alias->second.version;
    }
    if (leads_to == version) instances += count;
  }
  return std::min(instances, kMaxReplicas);
}

FlowSpec PublishedVersions::spec_of(const RegisteredFunction& flow, FlowId family) const {
  FlowSpec spec = flow_spec(flow, ports_.tenants);
  spec.family = family;
  const std::string name = flow_name(flow.record);
  if (ports_.shares.entry(name)) {
    ports_.shares.describe(name, spec);
    return spec;
  }
  const Share share = gpu_settings(flow.record.config).value_or(GpuSettings()).share;
  ports_.shares.describe_seatless(share, flow.kernel_task != nullptr, spec);
  return spec;
}

// First what is given back, so that numbers move from one version to another in one step.
Status PublishedVersions::admit(const FunctionRecord& latest) {
  const auto of = known_.find(latest.name);
  if (of == known_.end()) return {};
  std::vector<std::pair<std::string, std::optional<Shares::Entry>>> before;
  for (const Seating seating : {Seating::kGivesBack, Seating::kKeeps}) {
    for (const auto& [number, version] : of->second.versions) {
      if (seating_of(version, latest) != seating) continue;
      FunctionRecord record = in_force(version, latest);
      before.emplace_back(flow_name(record), ports_.shares.entry(flow_name(record)));
      if (kept(latest, number) == 0) {
        ports_.shares.release(flow_name(record));
        continue;
      }
      const Status admitted = ports_.shares.admit(record, version.kernel_task != nullptr);
      if (admitted) continue;
      std::reverse(before.begin(), before.end());  // who grew makes room for who shrank
      for (const auto& [name, entry] : before) ports_.shares.restore(name, entry);
      return fail(admitted.error().code, "version {}: {}", number, admitted.error().message);
    }
  }
  return {};
}

PublishedVersions::Seating PublishedVersions::seating_of(const Version& version, const FunctionRecord& latest) const {
  const auto entry = ports_.shares.entry(flow_name(version.record));
  const auto wanted = static_cast<std::size_t>(kept(latest, version.record.version));
  if (!entry && wanted == 0) return Seating::kNone;
  return entry && wanted < entry->asked.seats ? Seating::kGivesBack : Seating::kKeeps;
}

// Who finds too few seats keeps those of before, and waits for the others.
PublishedVersions::Held PublishedVersions::hold_seats(const Version& version, const FunctionRecord& latest) {
  FunctionRecord record = in_force(version, latest);
  const std::string name = flow_name(record);
  const auto before = ports_.shares.entry(name);
  if (instances_kept(record.config.tags) == 0) {
    if (before) ports_.shares.release(name);
    return {.has_others = before.has_value(), .is_open = before.has_value()};
  }
  const bool is_kernel_task = version.kernel_task != nullptr;
  const bool is_admitted = ports_.shares.admit(record, is_kernel_task).has_value();
  if (!is_admitted) ports_.shares.ask(record, is_kernel_task);
  const bool has_others = !before || before->seats != ports_.shares.entry(name)->seats;
  return {.has_others = has_others, .is_open = !is_admitted || (before && has_others)};
}

void PublishedVersions::tell_flow(const Version& version, const RegisteredFunction& latest, bool has_other_seats) {
  FunctionRecord record = in_force(version, latest.record);
  RegisteredFunction* flow = ports_.functions.find_version(record.name, record.version);
  if (flow == nullptr && !ports_.shares.entry(flow_name(record))) return;  // it is made by its first call
  const bool is_new = flow == nullptr;
  if (is_new) flow = &ports_.functions.add_version(record, version.kernel_task);
  const bool is_same_program = !has_other_seats && record.config == flow->record.config;
  const auto instances =
      is_same_process(record.config, flow->record.config) ? Core::Instances::kKept : Core::Instances::kReplaced;
  if (!is_same_program) flow->start_failure.clear();
  flow->record = std::move(record);
  const FlowSpec spec = spec_of(*flow, latest.flow);
  ports_.driver.tell([&](Core& core, Instant now, Actions& out) {
    if (is_new) {
      core.add_function(spec);
      core.wake(now, out);
    } else if (is_same_program) {
      core.set_max_concurrency(now, spec.flow, spec.max_concurrency, out);
    } else {
      core.update_function(now, spec, out, instances);
    }
  });
}

// First those that give seats back, so that an alias that moves takes its seats along. True: seats are to be found.
bool PublishedVersions::renew(const std::string& function) {
  const auto of = known_.find(function);
  const RegisteredFunction* const latest = ports_.functions.find(function);
  if (of == known_.end() || latest == nullptr) return false;
  std::vector<const Version*> in_order;
  for (const auto& [number, version] : of->second.versions) in_order.push_back(&version);
  std::stable_partition(in_order.begin(), in_order.end(), [&](const Version* version) {
    return seating_of(*version, latest->record) == Seating::kGivesBack;
  });
  bool is_open = false;
  for (const Version* const version : in_order) {
    const Held held = hold_seats(*version, latest->record);
    is_open |= held.is_open;
    tell_flow(*version, *latest, held.has_others);
  }
  return is_open;
}

void PublishedVersions::function_changed(const std::string& function) {
  if (renew(function)) ports_.seats_changed();
}

void PublishedVersions::recover_seats() {
  for (const auto& [function, known] : known_) renew(function);
}

// What is queued for it ends as removed, and what runs is answered.
void PublishedVersions::remove_flow(const std::string& function, std::uint64_t version) {
  const RegisteredFunction* const flow = ports_.functions.find_version(function, version);
  if (flow == nullptr) return;
  ports_.shares.release(flow_name(flow->record));
  ports_.driver.tell([&](Core& core, Instant now, Actions& out) { core.remove_function(now, flow->flow, out); });
  ports_.removed(*flow);
  ports_.functions.remove_version(function, version);
}

void PublishedVersions::function_removed(const std::string& function) {
  std::vector<std::uint64_t> numbers;
  for (const RegisteredFunction* flow : ports_.functions.family(function)) numbers.push_back(flow->record.version);
  for (const std::uint64_t number : numbers) {
    if (number != 0) remove_flow(function, number);
  }
  known_.erase(function);
}

// ---- versions

const PublishedVersions::Version* PublishedVersions::find_version(const std::string& function,
                                                                  std::uint64_t version) const {
  const auto of = known_.find(function);
  if (of == known_.end()) return nullptr;
  const auto it = of->second.versions.find(version);
  return it == of->second.versions.end() ? nullptr : &it->second;
}

Status PublishedVersions::check_version(const std::string& function, std::uint64_t version) const {
  if (version == 0 || find_version(function, version) != nullptr) return {};
  return fail(no_version(function, version_name(version)));
}

Status PublishedVersions::check_publish(const PublishRequest& request, const RegisteredFunction& function) const {
  if (function.is_pipeline()) {
    return fail(
        Errc::kInvalidArgument,
        "{} is a pipeline, which holds slices of GPUs for itself: it has no versions; deploy it under another name",
        request.function);
  }
  if (function.record.in_place) {
    return fail(Errc::kInvalidArgument,
                "{} runs in place from {}, which may change, and a version never does: deploy a copy of it, without "
                "--in-place (Code.InPlace), and publish that",
                request.function, function.record.code_path);
  }
  if (!request.code_sha256.empty() && request.code_sha256 != function.record.code_sha256) {
    return fail(Errc::kInvalidArgument, "CodeSha256 is '{}', but that of the code of {} is '{}'; read it again",
                request.code_sha256, request.function, function.record.code_sha256);
  }
  return {};
}

void PublishedVersions::publish(PublishRequest request, Callback<FunctionRecord> done) {
  const auto function = ports_.functions.get(request.function);
  if (!function) return done(fail(function.error()));
  if (Status possible = check_publish(request, **function); !possible) return done(fail(possible.error()));
  const FunctionRecord& latest = (*function)->record;
  Known& of = known(request.function);
  FunctionRecord version = version_of(latest, of.last + 1);
  if (request.description) version.config.description = *request.description;
  if (Status valid = validate_config(version.config); !valid) return done(fail(valid.error()));
  if (const Version* const last = find_version(request.function, of.last)) {
    if (is_same(last->record, version_of(latest, of.last))) return done(last->record);
  }
  if (of.versions.size() >= kMaxVersions) {
    return done(fail(Errc::kInvalidArgument,
                     "function {} has {} versions, and may have at most {}: delete those that no alias needs "
                     "(fairlead version delete {} N)",
                     request.function, of.versions.size(), kMaxVersions, request.function));
  }
  if (Status begun = ports_.functions.begin_change(request.function); !begun) return done(fail(begun.error()));
  version.revision_id = ports_.request_ids.next();
  version.last_modified_ms = wall_clock_ms();
  auto task = (*function)->kernel_task;
  ports_.store.put_version(version, [this, version, task, done](const Status& written) {
    ports_.functions.end_change(version.name);
    if (!written) return done(fail(written.error()));
    Known& now = known(version.name);
    now.last = version.version;
    now.versions[version.version] = {version, task};
    function_changed(version.name);
    done(version);
  });
}

Result<std::vector<FunctionRecord>> PublishedVersions::versions(const std::string& function) {
  if (const auto latest = ports_.functions.get(function); !latest) return fail(latest.error());
  std::vector<FunctionRecord> records;
  const auto of = known_.find(function);
  if (of == known_.end()) return records;
  for (const auto& [number, version] : of->second.versions) records.push_back(version.record);
  return records;
}

void PublishedVersions::remove_version(std::string function, std::uint64_t version, std::function<void(Status)> done) {
  const auto latest = ports_.functions.get(function);
  if (!latest) return done(fail(latest.error()));
  if (find_version(function, version) == nullptr) return done(fail(no_version(function, version_name(version))));
  const std::vector<std::string> names = aliases_of(known(function).aliases, version);
  if (!names.empty()) {
    return done(fail(Errc::kConflict,
                     "version {} of function {} is what the aliases {} lead to: let them lead to another first",
                     version, function, fmt::join(names, ", ")));
  }
  if (Status begun = ports_.functions.begin_change(function); !begun) return done(begun);
  ports_.store.delete_version(function, version, [this, function, version, done](const Status& written) {
    ports_.functions.end_change(function);
    if (!written) return done(written);
    // First, so that what is told of the calls that end finds no such version any more.
    known(function).versions.erase(version);
    remove_flow(function, version);
    ports_.seats_changed();
    done({});
  });
}

// ---- aliases

void PublishedVersions::put_alias(std::string function, FunctionAlias alias, bool is_new,
                                  Callback<FunctionAlias> done) {
  const auto latest = ports_.functions.get(function);
  if (!latest) return done(fail(latest.error()));
  if (Status valid = validate_alias(alias); !valid) return done(fail(valid.error()));
  if (Status there = check_version(function, alias.version); !there) return done(fail(there.error()));
  for (const auto& [version, weight] : alias.weights) {
    if (Status there = check_version(function, version); !there) return done(fail(there.error()));
  }
  const auto& aliases = known(function).aliases;
  const bool is_known = aliases.contains(alias.name);
  if (is_new && is_known) {
    return done(fail(Errc::kAlreadyExists, "Alias already exists: {}:{}", function_arn(function), alias.name));
  }
  if (!is_new && !is_known) return done(fail(no_alias(function, alias.name)));
  if (is_new && aliases.size() >= kMaxAliases) {
    return done(fail(Errc::kInvalidArgument,
                     "function {} has {} aliases, and may have at most {}: delete one (fairlead alias delete {} NAME)",
                     function, aliases.size(), kMaxAliases, function));
  }
  // So that no version goes while an alias to it is being written.
  if (Status begun = ports_.functions.begin_change(function); !begun) return done(fail(begun.error()));
  alias.revision_id = ports_.request_ids.next();
  ports_.store.put_alias(function, alias, [this, function, alias, done](const Status& written) {
    ports_.functions.end_change(function);
    if (!written) return done(fail(written.error()));
    known(function).aliases[alias.name] = alias;
    function_changed(function);
    done(alias);
  });
}

Result<FunctionAlias> PublishedVersions::alias(const std::string& function, const std::string& name) {
  if (const auto latest = ports_.functions.get(function); !latest) return fail(latest.error());
  const auto of = known_.find(function);
  if (of == known_.end() || !of->second.aliases.contains(name)) return fail(no_alias(function, name));
  return of->second.aliases.at(name);
}

Result<std::vector<FunctionAlias>> PublishedVersions::aliases(const std::string& function) {
  if (const auto latest = ports_.functions.get(function); !latest) return fail(latest.error());
  std::vector<FunctionAlias> all;
  const auto of = known_.find(function);
  if (of == known_.end()) return all;
  for (const auto& [name, alias] : of->second.aliases) all.push_back(alias);
  return all;
}

void PublishedVersions::remove_alias(std::string function, std::string name, std::function<void(Status)> done) {
  const auto latest = ports_.functions.get(function);
  if (!latest) return done(fail(latest.error()));
  if (!known(function).aliases.contains(name)) return done({});
  if (Status begun = ports_.functions.begin_change(function); !begun) return done(begun);
  ports_.store.delete_alias(function, name, [this, function, name, done](const Status& written) {
    ports_.functions.end_change(function);
    if (!written) return done(written);
    known(function).aliases.erase(name);
    function_changed(function);
    done({});
  });
}

// ---- qualifiers

Result<std::uint64_t> PublishedVersions::choose(const std::string& function, std::string_view qualifier,
                                                std::string_view request_id) {
  if (qualifier.empty() || qualifier == kLatestVersion) return 0;
  const auto of = known_.find(function);
  if (const std::uint64_t number = version_number(qualifier); number > 0) {
    if (find_version(function, number) == nullptr) return fail(no_version(function, qualifier));
    return number;
  }
  const std::string name(qualifier);
  if (of == known_.end() || !of->second.aliases.contains(name)) return fail(no_version(function, qualifier));
  return choose_version(of->second.aliases.at(name), request_id);
}

Result<FunctionRecord> PublishedVersions::find(const std::string& function, std::string_view qualifier) {
  const auto latest = ports_.functions.get(function);
  if (!latest) return fail(latest.error());
  std::uint64_t number = version_number(qualifier);
  if (const bool is_alias = number == 0 && !qualifier.empty() && qualifier != kLatestVersion; is_alias) {
    const auto named = alias(function, std::string(qualifier));
    if (!named) return fail(no_version(function, qualifier));
    number = named->version;
  }
  if (number == 0) return (*latest)->record;
  const Version* const version = find_version(function, number);
  if (version == nullptr) return fail(no_version(function, qualifier));
  return as_seen(version->record, (*latest)->record);
}

}  // namespace fairlead
