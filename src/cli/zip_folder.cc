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
  if (!zip && zip.error().code == Errc::kTooLarge) {
    return fail(Errc::kTooLarge, "{}; deployed on the node's own machine with --in-place it may be of any size",
                zip.error().message);
  }
  if (!zip) return fail(zip.error());
  return Json{{"ZipFile", base64_encode(*zip)}};
}

Result<Json> folder_in_place_as_code(const NodeClient& node, const std::string& folder) {
  if (!node.may_name_folders()) {
    return fail(Errc::kInvalidArgument,
                "--in-place: the node runs a folder of its own machine, for its operator at a loopback address or its "
                "socket; without --in-place the folder is sent");
  }
  std::error_code error;
  const fs::path place = fs::canonical(folder, error);
  if (error) return fail(errno_error(error.value(), "find " + folder));
  return Json{{"Folder", place.string()}, {"InPlace", true}};
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
