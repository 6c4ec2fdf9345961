// Functions in Python as their authors write them (python/fairlead/author): `fairlead deploy FILE.py`, `new`, `dev`. The work is done by
// that package, run by this machine's python3 as the user who typed the command; this file finds and starts it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead::cli {

// Whether `what` names a function in Python: FILE.py, FILE.py:NAME, or a folder (FOLDER:NAME) with a handler.py and nothing that a
// node could run as it is.
bool is_python_function(const std::string& what);

// A folder that can be deployed, removed with this object.
class BuiltFunction {
 public:
  // `name`: what it is to be called; "": as its file says. Blocks while pip installs what the function requires, which speaks on
  // standard error. kInvalidArgument: the file, or a requirement, was refused, and standard error says why; kNotFound: no python3.
  static Result<BuiltFunction> build(const std::string& what, const std::string& name);

  BuiltFunction(BuiltFunction&& other) noexcept;
  BuiltFunction& operator=(BuiltFunction&&) = delete;
  ~BuiltFunction();

  // From now on it stays, beside the layers, for a node that runs it where it lies; `node` tells several nodes' apart.
  Status keep_for(const std::string& node);
  // It is deployed. The one before it stays, too, since instances of it may run. REQUIRES: keep_for().
  void remove_older() const;

  const std::string& name() const { return name_; }
  const std::string& folder() const { return folder_; }
  const nlohmann::json& tags() const { return tags_; }
  const nlohmann::json& configuration() const { return configuration_; }  // fields of CreateFunction

 private:
  BuiltFunction() = default;

  std::string name_;
  std::string folder_;
  std::string prefix_;  // of its folder and of those before it, which stay; "": it is removed
  nlohmann::json tags_, configuration_;
};

// Becomes `python3 -m fairlead.author ARGUMENTS`, which is told the endpoint and this program's path. Comes back with an exit status
// only where that fails.
Result<int> become_author(const std::vector<std::string>& arguments, const std::string& endpoint);

}  // namespace fairlead::cli
