#include "model/function_profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fairlead {
namespace {

using nlohmann::json;

constexpr double kMostRate = 1e7;       // requests per second
constexpr double kMostTime = 3.6e6;     // ms: an hour
constexpr double kMostBytes = 1 << 30;  // in KiB: a tebibyte
constexpr std::size_t kMaxText = 1024;

// Reads members of one object; the first that is wrong is what it says.
class Members {
 public:
  Members(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  double number(const char* name, double least, double most) {
    const auto found = object_.find(name);
    if (found == object_.end() || !found->is_number()) return refuse("{}{} must be a number", path_, name), least;
    const double value = found->get<double>();
    if (!(value >= least && value <= most)) {
      return refuse("{}{} is {}; it must be between {} and {}", path_, name, value, least, most), least;
    }
    return value;
  }
  int percent(const char* name) { return static_cast<int>(number(name, 1, 100)); }
  std::string text(const char* name, bool may_be_empty) {
    const auto found = object_.find(name);
    if (found == object_.end() || !found->is_string()) return refuse("{}{} must be a string", path_, name), "";
    const std::string& value = found->get_ref<const std::string&>();
    if (value.size() > kMaxText || (value.empty() && !may_be_empty)) {
      return refuse("{}{} has {} bytes; {} to {} are possible", path_, name, value.size(), may_be_empty ? 0 : 1,
                    kMaxText),
             "";
    }
    return value;
  }
  const Status& status() const { return status_; }

 private:
  template <typename... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    if (status_) status_ = fail(Errc::kInvalidArgument, text, std::forward<Args>(args)...);
  }

  const json& object_;
  const std::string path_;
  Status status_;
};

json trial_json(const MeasuredTrial& trial) {
  return {{"width_percent", trial.width_percent},
          {"quota_percent", trial.quota_percent},
          {"rate_per_s", trial.rate_per_s},
          {"error", trial.error},
          {"p50_ms", trial.p50_ms},
          {"p99_ms", trial.p99_ms},
          {"utilisation", trial.utilisation},
          {"memory_bytes", trial.memory.count()},
          {"requests", trial.requests},
          {"why", trial.why}};
}

Result<MeasuredTrial> trial_from(const json& object, const std::string& name) {
  if (!object.is_object()) return fail(Errc::kInvalidArgument, "{} must be an object", name);
  Members members(object, name + ".");
  MeasuredTrial trial{.width_percent = members.percent("width_percent"),
                      .quota_percent = members.percent("quota_percent"),
                      .rate_per_s = members.number("rate_per_s", 1e-6, kMostRate),
                      .error = members.number("error", 1e-6, 10),
                      .p50_ms = members.number("p50_ms", 0, kMostTime),
                      .p99_ms = members.number("p99_ms", 0, kMostTime),
                      .utilisation = members.number("utilisation", 0, 1)};
  trial.memory = Bytes(static_cast<std::int64_t>(members.number("memory_bytes", 0, kMostBytes * 1024)));
  trial.requests = static_cast<std::uint64_t>(members.number("requests", 0, 1e12));
  trial.why = members.text("why", true);
  if (!members.status()) return fail(members.status().error());
  return trial;
}

json beside_json(const TrialBeside& beside) {
  json object = trial_json(beside.trial);
  object["slowdown"] = beside.slowdown;
  object["slowdown_error"] = beside.error;
  return object;
}

json component_json(const ComponentTime& time) {
  return {{"component", time.component},
          {"slice", time.slice},
          {"ms", time.ms},
          {"deviation_ms", time.deviation_ms},
          {"runs", time.runs}};
}

// Only pipelines have any.
Status read_components(const json& all, FunctionProfile& profile) {
  const auto list = all.find("components");
  if (list == all.end()) return {};
  if (!list->is_array() || list->empty() || list->size() > kMaxComponentTimes) {
    return fail(Errc::kInvalidArgument, "components must be a list of 1 to {} times", kMaxComponentTimes);
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json& object = (*list)[i];
    if (!object.is_object()) return fail(Errc::kInvalidArgument, "components[{}] must be an object", i);
    Members members(object, fmt::format("components[{}].", i));
    ComponentTime time{.component = members.text("component", false),
                       .slice = members.text("slice", false),
                       .ms = members.number("ms", 1e-6, kMostTime),
                       .deviation_ms = members.number("deviation_ms", 0, kMostTime)};
    time.runs = static_cast<std::uint64_t>(members.number("runs", 0, 1e12));
    if (!members.status()) return members.status();
    profile.components.push_back(std::move(time));
  }
  return {};
}

// Older profiles have none.
Status read_beside(const json& all, FunctionProfile& profile) {
  if (all.contains("alone")) {
    Members members(all, "");
    profile.alone = members.text("alone", true);
    if (!members.status()) return members.status();
  }
  const auto object = all.find("beside");
  if (object == all.end()) return {};
  auto trial = trial_from(*object, "beside");
  if (!trial) return fail(trial.error());
  Members members(*object, "beside.");
  profile.beside = TrialBeside{.trial = *std::move(trial),
                               .slowdown = members.number("slowdown", kLeastSlowdown, kMostSlowdown),
                               .error = members.number("slowdown_error", 0, 10)};
  return members.status();
}

}  // namespace

Bytes FunctionProfile::memory() const {
  Bytes most(0);
  for (const MeasuredTrial& trial : trials) most = std::max(most, trial.memory);
  return most;
}

double FunctionProfile::slowdown() const {
  return beside ? std::max(1.0, beside->slowdown) : 1.0;
}

std::string to_json(const FunctionProfile& profile) {
  json trials = json::array();
  for (const MeasuredTrial& trial : profile.trials) trials.push_back(trial_json(trial));
  json all = {{"function", profile.function},
              {"code_sha256", profile.code_sha256},
              {"device", profile.device},
              {"fixed_ms", profile.fixed_ms},
              {"work_ms", profile.work_ms},
              {"saturation_percent", profile.saturation_percent},
              {"error", profile.error},
              {"ended", profile.ended},
              {"measured_ms", profile.measured_ms},
              {"imported", profile.is_imported},
              {"trials", std::move(trials)}};
  if (profile.beside) all["beside"] = beside_json(*profile.beside);
  if (!profile.alone.empty()) all["alone"] = profile.alone;
  for (const ComponentTime& time : profile.components) all["components"].push_back(component_json(time));
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<FunctionProfile> profile_from_json(std::string_view text) {
  if (text.size() > kMaxProfileBytes) {
    return fail(Errc::kInvalidArgument, "the profile has {} bytes; {} is the most", text.size(), kMaxProfileBytes);
  }
  int depth = 0;
  const auto shallow = [&depth](int at, json::parse_event_t, json&) { return (depth = std::max(depth, at)) <= 4; };
  const json all = json::parse(text, shallow, false);
  if (depth > 4 || !all.is_object()) return fail(Errc::kInvalidArgument, "the profile is not a JSON object");
  Members members(all, "");
  FunctionProfile profile{.function = members.text("function", false),
                          .code_sha256 = members.text("code_sha256", false),
                          .device = members.text("device", false),
                          .trials = {},
                          .fixed_ms = members.number("fixed_ms", 0, kMostTime),
                          .work_ms = members.number("work_ms", all.contains("components") ? 0 : 1e-6, kMostTime * 100),
                          .saturation_percent = members.number("saturation_percent", 1, 100),
                          .error = members.number("error", 0, 10),
                          .ended = members.text("ended", true),
                          .measured_ms = static_cast<std::int64_t>(members.number("measured_ms", 0, 1e15)),
                          .is_imported = all.value("imported", json(false)) == json(true)};
  if (!members.status()) return fail(members.status().error());
  const auto trials = all.find("trials");
  if (trials == all.end() || !trials->is_array() || trials->empty() || trials->size() > kMaxProfileTrials) {
    return fail(Errc::kInvalidArgument, "trials must be a list of 1 to {} trials", kMaxProfileTrials);
  }
  for (std::size_t i = 0; i < trials->size(); ++i) {
    auto trial = trial_from((*trials)[i], fmt::format("trials[{}]", i));
    if (!trial) return fail(trial.error());
    profile.trials.push_back(*std::move(trial));
  }
  if (Status read = read_beside(all, profile); !read) return fail(read.error());
  if (Status read = read_components(all, profile); !read) return fail(read.error());
  return profile;
}

}  // namespace fairlead
