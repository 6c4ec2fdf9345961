#include "node/kernel_tasks.h"

#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json_bounds.h"
#include "base/read_file.h"
#include "gpu/kernel_image.h"
#include "wire/json_value.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kTaskFile[] = "task.json";

Result<std::string> read_file(const std::string& path) {
  auto bytes = read_whole_file(path);
  if (!bytes) return fail(Errc::kInvalidArgument, "the code bundle has no file {}", path);
  return bytes;
}

constexpr std::string_view kLibraryPrefix = "fairlead:";
constexpr char kLentPrefix[] = "fairlead:request/";

// A name of the task as a file of the bundle; nothing outside of it.
Result<std::string> file_in(const std::string& code_path, const std::string& name, std::string_view what) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::path(code_path) / name, error);
  const fs::path inside = path.lexically_relative(fs::weakly_canonical(code_path, error));
  if (error || inside.empty() || *inside.begin() == "..") {
    return fail(Errc::kInvalidArgument, "{} is '{}', which is not in the code bundle", what, name);
  }
  if (!fs::is_regular_file(path, error))
    return fail(Errc::kInvalidArgument, "{} is '{}': there is no such file", what, name);
  return path.string();
}

// A module of the built-in library, beside this program: "fairlead:gemm" is share/fairlead/kernels/gemm.ptx.
Result<std::string> library_module(const std::string& name) {
  std::error_code error;
  const fs::path kernels =
      fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share/fairlead/kernels";
  const std::string stem = name.substr(kLibraryPrefix.size());
  const fs::path path = kernels / (stem + ".ptx");
  if (!stem.empty() && stem.find('/') == std::string::npos && fs::is_regular_file(path, error)) return path.string();
  return fail(Errc::kInvalidArgument,
              "a kernel's module is '{}': the built-in library in {} has no such module; "
              "docs/reference/kernel-library.md lists them",
              name, kernels.string());
}

// Where a task's files come from. `what` says where the task names them.
class TaskFiles {
 public:
  struct Module {
    std::string path;  // for the device server's node to open, as long as the task is there
    std::string bytes;
  };
  struct Constant {
    std::string key;
    Bytes bytes{0};
  };

  virtual ~TaskFiles() = default;
  virtual Result<Module> module(const std::string& name) = 0;
  virtual Result<Constant> constant(const std::string& name, std::string_view what) = 0;
};

Result<TaskFiles::Module> module_at(Result<std::string> path) {
  if (!path) return fail(path.error());
  auto bytes = read_file(*path);
  if (!bytes) return fail(bytes.error());
  return TaskFiles::Module{*std::move(path), *std::move(bytes)};
}

class BundleFiles final : public TaskFiles {
 public:
  BundleFiles(const std::string& code_path, std::vector<BundledConstant>& constants)
      : code_path_(code_path), constants_(constants) {}

  Result<Module> module(const std::string& name) override {
    return module_at(name.starts_with(kLibraryPrefix) ? library_module(name)
                                                      : file_in(code_path_, name, "a kernel's module"));
  }

  Result<Constant> constant(const std::string& name, std::string_view what) override {
    const auto path = file_in(code_path_, name, what);
    if (!path) return fail(path.error());
    const auto bytes = read_file(*path);
    if (!bytes) return fail(bytes.error());
    constants_.push_back({"sha256/" + to_hex(as_text(sha256(*bytes))), *path, Bytes(std::ssize(*bytes))});
    return Constant{constants_.back().key, constants_.back().bytes};
  }

 private:
  const std::string& code_path_;
  std::vector<BundledConstant>& constants_;
};

// What a request's task needs for as long as it or a session of it is there.
struct RequestedTask {
  KernelTaskSpec spec;
  std::vector<std::shared_ptr<const MemoryFile>> modules;
  std::vector<std::shared_ptr<const LentObject>> lent;
};

class RequestFiles final : public TaskFiles {
 public:
  RequestFiles(const KernelTaskRequest& request, RequestedTask& task) : task_(task) {
    for (const KernelTaskRequest::File& file : request.files) files_[file.name] = {&file.bytes, false};
  }

  Result<Module> module(const std::string& name) override {
    if (name.starts_with(kLibraryPrefix)) return module_at(library_module(name));
    const auto bytes = find(name, "a kernel's module");
    if (!bytes) return fail(bytes.error());
    auto file = MemoryFile::make(**bytes);
    if (!file) return fail(file.error());
    task_.modules.push_back(*file);
    return Module{(*file)->path(), **bytes};
  }

  Result<Constant> constant(const std::string& name, std::string_view what) override {
    const auto bytes = find(name, what);
    if (!bytes) return fail(bytes.error());
    const std::string key = kLentPrefix + to_hex(as_text(sha256(**bytes)));
    for (const auto& lent : task_.lent) {
      if (lent->key == key) return Constant{key, lent->file->bytes()};
    }
    auto file = MemoryFile::make(**bytes);
    if (!file) return fail(file.error());
    const Bytes size = (*file)->bytes();
    task_.lent.push_back(std::make_shared<const LentObject>(key, std::string(as_text(blake2b(**bytes))),
                                                            wall_clock_ms(), *std::move(file)));
    return Constant{key, size};
  }

  Status all_used() const {
    for (const auto& [name, file] : files_) {
      if (!file.used) return fail(Errc::kInvalidArgument, "files has '{}', which the task does not name", name);
    }
    return {};
  }

 private:
  struct File {
    const std::string* bytes;
    bool used;
  };

  Result<const std::string*> find(const std::string& name, std::string_view what) {
    const auto found = files_.find(name);
    if (found == files_.end()) return fail(Errc::kInvalidArgument, "{} is '{}': there is no such file", what, name);
    found->second.used = true;
    return found->second.bytes;
  }

  RequestedTask& task_;
  std::map<std::string, File> files_;
};

// "file": NAME of a constant becomes the key of an object that is named by its content.
Result<std::string> replace_files(std::string text, TaskFiles& files, std::vector<TaskFiles::Constant>& constants) {
  if (!check_json_bounds(text, kTaskFile, wire::kDocumentBounds)) return text;
  json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("buffers") || !document["buffers"].is_object()) return text;
  bool replaced = false;
  for (auto& [name, buffer] : document["buffers"].items()) {
    if (!buffer.is_object() || !buffer.contains("file") || !buffer["file"].is_string()) continue;
    auto constant = files.constant(buffer["file"].get<std::string>(), fmt::format("buffers.{}.file", name));
    if (!constant) return fail(constant.error());
    buffer.erase("file");
    buffer["key"] = constant->key;
    constants.push_back(*std::move(constant));
    replaced = true;
  }
  return replaced ? document.dump() : text;  // as it came, for the errors of the reader
}

// An object of a file has the file's size.
Status check_sizes(const KernelTask& task, const std::vector<TaskFiles::Constant>& constants) {
  for (const BufferSpec& buffer : task.buffers) {
    for (const TaskFiles::Constant& constant : constants) {
      if (buffer.constant != constant.key || buffer.bytes == constant.bytes) continue;
      return fail(Errc::kInvalidArgument, "buffers.{} has {} bytes, its file {}", buffer.name, buffer.bytes.count(),
                  constant.bytes.count());
    }
  }
  return {};
}

Result<KernelTaskSpec> read_task(const std::string& text, TaskFiles& files) {
  KernelTaskSpec spec;
  std::vector<TaskFiles::Constant> constants;
  const auto replaced = replace_files(text, files, constants);
  if (!replaced) return fail(replaced.error());
  auto task = wire::kernel_task_from_json(*replaced);
  if (!task) return fail(task.error().code, "{}: {}", kTaskFile, task.error().message);
  std::vector<std::vector<KernelSignature>> signatures;
  for (KernelModule& module : task->modules) {
    auto file = files.module(module.name);
    if (!file) return fail(file.error());
    auto image = read_kernel_image(file->bytes);
    if (!image) return fail(image.error().code, "{}: {}", module.name, image.error().message);
    signatures.push_back(std::move(image->kernels));
    module.sha256 = as_text(sha256(file->bytes));
    spec.module_files.push_back(std::move(file->path));
  }
  if (Status valid = validate_task(*task, signatures, DeviceLimits{}); !valid) {
    return fail(valid.error().code, "{}: {}", kTaskFile, valid.error().message);
  }
  if (Status sized = check_sizes(*task, constants); !sized) return fail(sized.error());
  spec.task = *std::move(task);
  return spec;
}

}  // namespace

bool is_kernel_task(const std::string& code_path) {
  std::error_code error;
  return fs::is_regular_file(code_path + "/" + kTaskFile, error) && !fs::exists(code_path + "/bootstrap", error);
}

Result<BundledTask> read_kernel_task(const std::string& code_path) {
  BundledTask bundled;
  const auto text = read_file(code_path + "/" + kTaskFile);
  if (!text) return fail(text.error());
  BundleFiles files(code_path, bundled.constants);
  auto spec = read_task(*text, files);
  if (!spec) return fail(spec.error());
  bundled.spec = std::make_shared<const KernelTaskSpec>(*std::move(spec));
  return bundled;
}

Result<BundledTask> read_requested_task(const KernelTaskRequest& request) {
  const auto requested = std::make_shared<RequestedTask>();  // shared: the spec in it is what others hold
  RequestFiles files(request, *requested);
  auto spec = read_task(request.task, files);
  if (!spec) return fail(spec.error());
  if (Status used = files.all_used(); !used) return fail(used.error());
  requested->spec = *std::move(spec);
  return BundledTask{
      .spec = {requested, &requested->spec}, .constants = {}, .lent = requested->lent, .pipeline = nullptr};
}

}  // namespace fairlead
