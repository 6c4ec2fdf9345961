// Versions in a cluster: there is $LATEST alone. Nodes tell each other of functions, and not of versions and aliases: one that was published
// at one node would be missing at the home of its function.
//
// Threads: the io_context's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "edge/node_service.h"

namespace fairlead {

class NoVersions final : public VersionService {
 public:
  explicit NoVersions(NodeService& node) : node_(node) {}

  void publish(PublishRequest, Callback<FunctionRecord> done) override { done(fail(refusal())); }
  Result<std::vector<FunctionRecord>> versions(const std::string& function) override {
    return none<FunctionRecord>(function);
  }
  void remove_version(std::string function, std::uint64_t version, std::function<void(Status)> done) override {
    done(fail(unknown(function, version_name(version))));
  }
  void put_alias(std::string, FunctionAlias, bool, Callback<FunctionAlias> done) override { done(fail(refusal())); }
  Result<FunctionAlias> alias(const std::string& function, const std::string& name) override {
    return fail(unknown(function, name));
  }
  Result<std::vector<FunctionAlias>> aliases(const std::string& function) override {
    return none<FunctionAlias>(function);
  }
  void remove_alias(std::string, std::string, std::function<void(Status)> done) override { done({}); }
  Result<std::uint64_t> choose(const std::string& function, std::string_view qualifier, std::string_view) override {
    if (qualifier.empty() || qualifier == kLatestVersion) return 0;
    return fail(unknown(function, qualifier));
  }
  Result<FunctionRecord> find(const std::string& function, std::string_view qualifier) override {
    if (const auto version = choose(function, qualifier, ""); !version) return fail(version.error());
    return node_.get_function(function);
  }

 private:
  template <typename T>
  Result<std::vector<T>> none(const std::string& function) {
    if (const auto record = node_.get_function(function); !record) return fail(record.error());
    return std::vector<T>();
  }
  static Error refusal() {
    return {Errc::kInvalidArgument,
            "this node is one of a cluster, where functions have no versions and aliases but $LATEST: publish on a "
            "node that "
            "is alone"};
  }
  static Error unknown(const std::string& function, std::string_view qualifier) {
    return {Errc::kNotFound, fmt::format("Function not found: {}:{}; in a cluster there is {} alone",
                                         function_arn(function), qualifier, kLatestVersion)};
  }

  NodeService& node_;
};

}  // namespace fairlead
