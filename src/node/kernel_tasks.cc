#include "node/kernel_tasks.h"

#include <sodium.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cuda/kernel_image.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kTaskFile[] = "task.json";

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return fail(Errc::kInvalidArgument, "the code bundle has no file {}", path);
  return bytes;
}

std::string sha256(std::string_view bytes) {
  std::string digest(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return digest;
}

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

constexpr std::string_view kLibraryPrefix = "fairlead:";

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
  return fail(
      Errc::kInvalidArgument,
      "a kernel's module is '{}': the built-in library in {} has no such module; docs/kernel-library.md lists them",
      name, kernels.string());
}

Result<std::string> module_file(const std::string& code_path, const std::string& name) {
  return name.starts_with(kLibraryPrefix) ? library_module(name) : file_in(code_path, name, "a kernel's module");
}

// "file": NAME of a constant becomes the key of an object that is named by its content.
Result<std::string> replace_files(const std::string& code_path, std::string text, BundledTask& task) {
  json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("buffers") || !document["buffers"].is_object()) return text;
  bool replaced = false;
  for (auto& [name, buffer] : document["buffers"].items()) {
    if (!buffer.is_object() || !buffer.contains("file") || !buffer["file"].is_string()) continue;
    const std::string what = fmt::format("buffers.{}.file", name);
    const auto path = file_in(code_path, buffer["file"].get<std::string>(), what);
    if (!path) return fail(path.error());
    const auto bytes = read_file(*path);
    if (!bytes) return fail(bytes.error());
    BundledConstant constant{"sha256/" + hexadecimal(sha256(*bytes)), *path,
                             Bytes(static_cast<std::int64_t>(bytes->size()))};
    buffer.erase("file");
    buffer["key"] = constant.key;
    task.constants.push_back(std::move(constant));
    replaced = true;
  }
  return replaced ? document.dump() : text;  // as it came, for the errors of the reader
}

// An object of a file has the file's size.
Status check_sizes(const KernelTask& task, const std::vector<BundledConstant>& constants) {
  for (const BufferSpec& buffer : task.buffers) {
    for (const BundledConstant& constant : constants) {
      if (buffer.constant != constant.key || buffer.bytes == constant.bytes) continue;
      return fail(Errc::kInvalidArgument, "buffers.{} has {} bytes, its file {}", buffer.name, buffer.bytes.count(),
                  constant.bytes.count());
    }
  }
  return {};
}

}  // namespace

bool is_kernel_task(const std::string& code_path) {
  std::error_code error;
  return fs::is_regular_file(code_path + "/" + kTaskFile, error) && !fs::exists(code_path + "/bootstrap", error);
}

Result<BundledTask> read_kernel_task(const std::string& code_path) {
  BundledTask bundled;
  KernelTaskSpec spec;
  const auto text = read_file(code_path + "/" + kTaskFile);
  if (!text) return fail(text.error());
  const auto replaced = replace_files(code_path, *text, bundled);
  if (!replaced) return fail(replaced.error());
  auto task = wire::kernel_task_from_json(*replaced);
  if (!task) return fail(task.error().code, "{}: {}", kTaskFile, task.error().message);
  std::vector<std::vector<KernelSignature>> signatures;
  for (KernelModule& module : task->modules) {
    auto path = module_file(code_path, module.name);
    if (!path) return fail(path.error());
    const auto bytes = read_file(*path);
    if (!bytes) return fail(bytes.error());
    auto image = read_kernel_image(*bytes);
    if (!image) return fail(image.error().code, "{}: {}", module.name, image.error().message);
    signatures.push_back(std::move(image->kernels));
    module.sha256 = sha256(*bytes);
    spec.module_files.push_back(*std::move(path));
  }
  if (Status valid = validate_task(*task, signatures, DeviceLimits{}); !valid) {
    return fail(valid.error().code, "{}: {}", kTaskFile, valid.error().message);
  }
  if (Status sized = check_sizes(*task, bundled.constants); !sized) return fail(sized.error());
  spec.task = *std::move(task);
  bundled.spec = std::make_shared<const KernelTaskSpec>(std::move(spec));
  return bundled;
}

// ---- objects

std::optional<ObjectSource::Known> StoredObjects::look_up(const ObjectKey& name) {
  const auto info = store_.info({name.tenant, name.key});
  if (!info) return std::nullopt;
  return Known{info->content, info->bytes, info->created_ms, info->state == ObjectState::kOnDevice};
}

void StoredObjects::open(const ObjectKey& name, Duration patience, std::function<void(Result<Opened>)> done) {
  store_.open_object({name.tenant, name.key}, patience, [done = std::move(done)](Result<OpenObject> object) {
    if (!object) return done(fail(object.error()));
    done(Opened{object->info.content, object->info.bytes, std::move(object->memory)});
  });
}

Status StoredObjects::expect(const ObjectKey& name) {
  return store_.expect({name.tenant, name.key});
}

Status StoredObjects::promise(const ObjectKey& name, Bytes bytes, Fetch fetch) {
  return store_.promise({name.tenant, name.key}, bytes, std::move(fetch));
}

void StoredObjects::abandon(const ObjectKey& name, Error why) {
  store_.abandon({name.tenant, name.key}, std::move(why));
}

}  // namespace fairlead
