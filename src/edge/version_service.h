// What edges ask of a node about versions and aliases of functions (model/version.h).
//
// Threads: the io_context's; callbacks run on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/function.h"
#include "model/version.h"

namespace fairlead {

struct PublishRequest {
  std::string function;
  std::optional<std::string> description;  // of the version; none: the function's
  std::string code_sha256;                 // that it is to have; "": whatever it has
};

class VersionService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~VersionService() = default;

  // $LATEST as it is now, under the next number. Where the version before is the same, that one is given again, as AWS does.
  // kInvalidArgument: the code is another, or the function has kMaxVersions.
  virtual void publish(PublishRequest request, Callback<FunctionRecord> done) = 0;
  virtual Result<std::vector<FunctionRecord>> versions(const std::string& function) = 0;  // published ones, by number
  // kConflict names the aliases that lead to it.
  virtual void remove_version(std::string function, std::uint64_t version, std::function<void(Status)> done) = 0;

  // kAlreadyExists where it is new and there is one of its name; kNotFound where it is not new and there is none, or no such version.
  virtual void put_alias(std::string function, FunctionAlias alias, bool is_new, Callback<FunctionAlias> done) = 0;
  virtual Result<FunctionAlias> alias(const std::string& function, const std::string& name) = 0;
  virtual Result<std::vector<FunctionAlias>> aliases(const std::string& function) = 0;                      // by name
  virtual void remove_alias(std::string function, std::string name, std::function<void(Status)> done) = 0;  // or none

  // What a qualifier leads to: a number to itself, "" and "$LATEST" to 0, an alias to the version that it chooses for this request id.
  // kNotFound: nothing has that name.
  virtual Result<std::uint64_t> choose(const std::string& function, std::string_view qualifier,
                                       std::string_view request_id) = 0;
  // The record that is there for it; of an alias, the one of its first version.
  virtual Result<FunctionRecord> find(const std::string& function, std::string_view qualifier) = 0;
};

}  // namespace fairlead
