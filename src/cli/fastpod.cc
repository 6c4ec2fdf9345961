#include "cli/fastpod.h"

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>

namespace fairlead::cli {
namespace {

constexpr const char* kKind = "FaSTPod";
constexpr const char* kGroup = "faasshare.com/";

// Reads one document. The first thing that is wrong is kept, and what is wrong reads as empty.
class Reader {
 public:
  Json deployment(const YAML::Node& document) {
    if (!document.IsMap()) return wrong("the document", "a FaSTPod"), Json();
    if (text(document["kind"], "kind") != kKind) wrong("kind", kKind);
    if (!text(document["apiVersion"], "apiVersion").starts_with(kGroup)) wrong("apiVersion", "faasshare.com/v1");
    const YAML::Node metadata = map(document["metadata"], "metadata");
    const YAML::Node spec = map(document["spec"], "spec");
    const YAML::Node container = only_container(map(spec["podSpec"], "spec.podSpec")["containers"]);
    Json deployment{{"service", text(metadata["name"], "metadata.name")},
                    {"image", text(container["image"], "spec.podSpec.containers[0].image")},
                    {"envVars", variables(container["env"])},
                    {"labels", texts(metadata["labels"], "metadata.labels")},
                    {"annotations", texts(metadata["annotations"], "metadata.annotations")}};
    if (metadata["namespace"]) deployment["namespace"] = text(metadata["namespace"], "metadata.namespace");
    const YAML::Node resources = container["resources"];
    if (resources && resources.IsMap() && resources["limits"]) {
      deployment["limits"] = texts(resources["limits"], "spec.podSpec.containers[0].resources.limits");
    }
    if (const YAML::Node replicas = spec["replicas"]) {
      deployment["annotations"]["gpu:replicas"] = text(replicas, "spec.replicas");
    }
    return deployment;
  }
  const Status& status() const { return status_; }

 private:
  void wrong(const std::string& field, std::string_view must_be) {
    if (status_) status_ = fail(Errc::kInvalidArgument, "{} must be {}", field, must_be);
  }

  std::string text(const YAML::Node& node, const std::string& field) {
    if (node && node.IsScalar()) return node.Scalar();
    wrong(field, "a text");
    return "";
  }

  YAML::Node map(const YAML::Node& node, const std::string& field) {
    if (node && node.IsMap()) return node;
    wrong(field, "there");
    return YAML::Node(YAML::NodeType::Map);
  }

  Json texts(const YAML::Node& node, const std::string& field) {
    Json all = Json::object();
    if (!node || node.IsNull()) return all;
    if (!node.IsMap()) return wrong(field, "names with texts"), all;
    for (const auto& entry : node) {
      const std::string name = text(entry.first, field);
      all[name] = text(entry.second, fmt::format("{}: {}", field, name));
    }
    return all;
  }

  Json variables(const YAML::Node& list) {
    Json all = Json::object();
    if (!list || list.IsNull()) return all;
    if (!list.IsSequence()) return wrong("spec.podSpec.containers[0].env", "a list"), all;
    for (const YAML::Node& each : list) {
      const YAML::Node entry = map(each, "spec.podSpec.containers[0].env: each");
      const std::string name = text(entry["name"], "spec.podSpec.containers[0].env: name");
      all[name] = text(entry["value"], fmt::format("spec.podSpec.containers[0].env: the value of {}", name));
    }
    return all;
  }

  YAML::Node only_container(const YAML::Node& containers) {
    if (containers && containers.IsSequence() && containers.size() == 1 && containers[0].IsMap()) return containers[0];
    wrong("spec.podSpec.containers", "a list of one: a function is one container");
    return YAML::Node(YAML::NodeType::Map);
  }

  Status status_;
};

}  // namespace

Result<std::vector<Json>> deployments_of(std::string_view yaml) {
  if (yaml.size() > kMostManifestBytes) {
    return fail(Errc::kTooLarge, "the file has {} bytes; it may have at most {}", yaml.size(), kMostManifestBytes);
  }
  std::vector<Json> deployments;
  try {
    for (const YAML::Node& document : YAML::LoadAll(std::string(yaml))) {
      if (document.IsNull()) continue;  // what stands before the first "---"
      if (deployments.size() == kMostManifests) {
        return fail(Errc::kInvalidArgument, "the file has more than {} documents", kMostManifests);
      }
      Reader reader;
      deployments.push_back(reader.deployment(document));
      if (!reader.status()) {
        return fail(Errc::kInvalidArgument, "document {}: {}", deployments.size(), reader.status().error().message);
      }
    }
  } catch (const YAML::Exception& error) {
    return fail(Errc::kInvalidArgument, "document {}: {}", deployments.size() + 1, error.what());
  }
  if (deployments.empty()) return fail(Errc::kInvalidArgument, "the file has no document; it must have a FaSTPod");
  return deployments;
}

}  // namespace fairlead::cli
