#include "node/cdi.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/read_file.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSpecBytes = 4 << 20;
constexpr std::size_t kMaxEntries = 200;  // of one list: what one message to the spawner carries

// Reads one specification; keeps the first error.
class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  CdiSpec spec(const YAML::Node& root) {
    CdiSpec spec;
    if (!root.IsMap()) return wrong("the document", "a map"), spec;
    spec.kind = text(root["kind"], "kind", true);
    spec.common = edits(root["containerEdits"], "containerEdits");
    for (const YAML::Node& device : list(root["devices"], "devices")) {
      if (!device.IsMap()) return wrong("devices", "a list of maps"), spec;
      const std::string name = text(device["name"], "devices.name", true);
      spec.devices[name] = edits(device["containerEdits"], "devices." + name + ".containerEdits");
    }
    return spec;
  }
  const Status& status() const { return status_; }

 private:
  void wrong(const std::string& field, std::string_view expected) {
    if (status_) status_ = fail(Errc::kCorrupt, "CDI specification {}: {} is not {}", origin_, field, expected);
  }

  std::string text(const YAML::Node& node, const std::string& field, bool required = false) {
    if (node && node.IsScalar() && !(required && node.Scalar().empty())) return node.Scalar();
    if ((node && !node.IsNull()) || required) wrong(field, "a string");
    return {};
  }

  std::string path(const YAML::Node& node, const std::string& field, const std::string& absent = {}) {
    std::string value = text(node, field, absent.empty());
    if (value.empty()) value = absent;
    const fs::path parsed(value);
    const bool climbs = std::find(parsed.begin(), parsed.end(), "..") != parsed.end();
    if (!parsed.is_absolute() || climbs) wrong(field, "an absolute path without '..'");
    return value;
  }

  YAML::Node list(const YAML::Node& node, const std::string& field) {
    if (!node || node.IsNull()) return YAML::Node(YAML::NodeType::Sequence);
    if (node.IsSequence() && node.size() <= kMaxEntries) return node;
    wrong(field, fmt::format("a list of at most {}", kMaxEntries));
    return YAML::Node(YAML::NodeType::Sequence);
  }

  CdiEdits edits(const YAML::Node& node, const std::string& field) {
    CdiEdits result;
    if (!node || node.IsNull()) return result;
    if (!node.IsMap()) return wrong(field, "a map"), result;
    for (const YAML::Node& device : list(node["deviceNodes"], field + ".deviceNodes")) {
      if (!device.IsMap()) return wrong(field + ".deviceNodes", "a list of maps"), result;
      const std::string target = path(device["path"], field + ".deviceNodes.path");
      const std::string source = path(device["hostPath"], field + ".deviceNodes.hostPath", target);
      if (!target.starts_with("/dev/")) wrong(field + ".deviceNodes.path", "below /dev");
      result.binds.push_back({source, target, true});
    }
    for (const YAML::Node& mount : list(node["mounts"], field + ".mounts")) {
      if (!mount.IsMap()) return wrong(field + ".mounts", "a list of maps"), result;
      // Read-only whatever the options say: they describe the driver, which no function has to change.
      const std::string source = path(mount["hostPath"], field + ".mounts.hostPath");
      result.binds.push_back({source, path(mount["containerPath"], field + ".mounts.containerPath"), false});
    }
    for (const YAML::Node& entry : list(node["env"], field + ".env")) {
      const std::string variable = entry.IsScalar() ? entry.Scalar() : "";
      const std::size_t equals = variable.find('=');
      if (equals == 0 || equals == std::string::npos) return wrong(field + ".env", "a list of NAME=value"), result;
      result.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
    return result;
  }

  const std::string_view origin_;
  Status status_;
};

bool is_specification(const fs::path& file) {
  return file.extension() == ".json" || file.extension() == ".yaml" || file.extension() == ".yml";
}

std::optional<CdiSpec> read_file(const fs::path& file) {
  const auto text = read_whole_file(file);
  Result<CdiSpec> spec = text ? parse_cdi(*text, file.string()) : fail(text.error());
  if (spec) return *std::move(spec);
  spdlog::warn("{}; left out", spec.error().message);
  return std::nullopt;
}

// Links beside a library that lead to it: libcuda.so.1 for libcuda.so.570.1.
std::vector<std::string> short_names(const fs::path& library) {
  std::vector<std::string> names;
  std::error_code error;
  const std::string file = library.filename();
  const std::string stem = file.substr(0, file.find(".so"));
  for (const fs::directory_entry& entry : fs::directory_iterator(library.parent_path(), error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(stem + ".so") || name == file || !entry.is_symlink(error)) continue;
    if (fs::equivalent(entry.path(), library, error)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<CdiEdits> CdiSpec::edits_for(const std::string& device) const {
  const auto found = devices.find(device);
  if (found == devices.end()) return std::nullopt;
  CdiEdits result = common;
  result.binds.insert(result.binds.end(), found->second.binds.begin(), found->second.binds.end());
  for (const auto& [name, value] : found->second.environment) result.environment[name] = value;
  return result;
}

Result<CdiSpec> parse_cdi(const std::string& text, std::string_view origin) {
  if (text.size() > kMaxSpecBytes) {
    return fail(Errc::kCorrupt, "CDI specification {} has {} bytes; it may have at most {}", origin, text.size(),
                kMaxSpecBytes);
  }
  try {
    Reader reader(origin);
    CdiSpec spec = reader.spec(YAML::Load(text));
    if (!reader.status()) return fail(reader.status().error());
    return spec;
  } catch (const YAML::Exception& error) {
    return fail(Errc::kCorrupt, "CDI specification {}: {}", origin, error.what());
  }
}

void add_library_names(CdiEdits& edits) {
  std::vector<InstanceSpec::Bind> links;
  std::set<std::string> folders;
  for (const InstanceSpec::Bind& bind : edits.binds) {
    const fs::path target(bind.target);
    if (bind.writable || target.filename().string().find(".so") == std::string::npos) continue;
    folders.insert(target.parent_path());
    for (const std::string& name : short_names(bind.source)) {
      links.push_back({bind.source, (target.parent_path() / name).string(), false});
    }
  }
  edits.binds.insert(edits.binds.end(), links.begin(), links.end());
  std::string& path = edits.environment["LD_LIBRARY_PATH"];
  for (const std::string& folder : folders) path += (path.empty() ? "" : ":") + folder;
  if (path.empty()) edits.environment.erase("LD_LIBRARY_PATH");
}

std::optional<CdiSpec> find_cdi(const std::vector<std::string>& folders, std::string_view kind) {
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    std::error_code error;
    std::set<fs::path> files;  // in a fixed order
    for (const fs::directory_entry& entry : fs::directory_iterator(*folder, error)) files.insert(entry.path());
    for (const fs::path& file : files) {
      if (!is_specification(file)) continue;
      std::optional<CdiSpec> spec = read_file(file);
      if (!spec || spec->kind != kind) continue;
      add_library_names(spec->common);
      for (auto& [name, edits] : spec->devices) add_library_names(edits);
      return spec;
    }
  }
  return std::nullopt;
}

}  // namespace fairlead
