// A library found at run time. It stays loaded for the life of the process: GPU drivers keep threads and per-thread state
// that do not survive dlclose().
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/result.h"

namespace fairlead {

class SharedLibrary {
 public:
  // directory: where `name` must be; empty: where the system's loader looks. kUnavailable carries the loader's reason and
  // `advice`, what to install.
  static Result<SharedLibrary> load(const std::string& directory, const std::string& name, const std::string& advice);

  // Points `function` at the symbol. kUnavailable when the library has no such symbol (it is too old, or another one).
  template <typename Function>
  Status bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (function == nullptr) return fail(missing(symbol));
    return {};
  }
  Error missing(const char* symbol) const;

  const std::string& path() const { return path_; }  // the file that was loaded

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

}  // namespace fairlead
