// The software GPU of the build for tests in this process, with a state folder of their own.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "gpu/context.h"

namespace fairlead {

// The same one every time. `library_dir`: where its libcuda is.
inline CudaContext& software_gpu(const char* library_dir) {
  static const std::unique_ptr<CudaContext> context = [library_dir] {
    static const std::string home = std::filesystem::temp_directory_path() / fmt::format("device-{}", ::getpid());
    ::setenv("SOFTGPU_HOME", home.c_str(), 1);
    std::atexit([] { std::filesystem::remove_all(home); });
    auto opened = CudaContext::open(library_dir, 0);
    FL_CHECK(opened.has_value(), "{}", opened.error().message);
    return *std::move(opened);
  }();
  return *context;
}

}  // namespace fairlead
