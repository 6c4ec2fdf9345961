#include "cli/zip_folder.h"

#include <unistd.h>

#include <filesystem>

#include "base/base64.h"
#include "store/zip_writer.h"

namespace fairlead::cli {
namespace fs = std::filesystem;

Result<Json> folder_as_code(NodeClient& node, const std::string& folder, bool upload) {
  if (node.may_name_folders() && !upload) {
    std::error_code ignored;
    return Json{{"Folder", fs::canonical(folder, ignored).string()}};
  }
  Result<std::string> zip = zip_folder(folder);
  if (!zip) return fail(zip.error());
  return Json{{"ZipFile", base64_encode(*zip)}};
}

Status check_function_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return fail(Errc::kNotFound, "{} is not a folder", folder);
  const std::string bootstrap = folder + "/bootstrap";
  for (const char* instead : {"/task.json", "/pipeline.json"}) {  // a kernel task, several of them
    if (fs::is_regular_file(folder + instead, error) && !fs::exists(bootstrap, error)) return {};
  }
  if (!fs::is_regular_file(bootstrap, error)) {
    return fail(Errc::kInvalidArgument,
                "{} has no file 'bootstrap': the program that is started, which asks for invocations at "
                "$AWS_LAMBDA_RUNTIME_API",
                folder);
  }
  if (access(bootstrap.c_str(), X_OK) != 0) {
    return fail(Errc::kInvalidArgument, "{0} is not executable: chmod +x {0}", bootstrap);
  }
  return {};
}

}  // namespace fairlead::cli
