#include "store/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>

#include "base/command.h"
#include "base/unique_fd.h"
#include "model/image_ids.h"
#include "store/oci_image.h"
#include "store/staging.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
constexpr std::string_view kArchitecture = "arm64";
#else
constexpr std::string_view kArchitecture = "amd64";
#endif

constexpr std::string_view kTag = ":image";  // of the only image in a staging layout

std::string images_folder(const std::string& state_dir) {
  return fs::absolute(state_dir).lexically_normal().string() + "/images";
}

// What a tool said last: skopeo's msg="...", umoci's line after its mark, both without their decoration.
std::string last_words(std::string_view errors) {
  while (!errors.empty() && (errors.back() == '\n' || errors.back() == ' ')) errors.remove_suffix(1);
  std::string_view line = errors.substr(errors.rfind('\n') + 1);
  constexpr std::string_view kMessage = "msg=\"";
  if (const std::size_t begin = line.find(kMessage); begin != std::string_view::npos) {
    line.remove_prefix(begin + kMessage.size());
    if (line.ends_with('"')) line.remove_suffix(1);
  }
  std::string text;
  for (std::size_t i = 0; i < line.size() && text.size() < 500; ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '"') continue;
    if (static_cast<unsigned char>(line[i]) >= ' ' && static_cast<unsigned char>(line[i]) < 0x7f) text += line[i];
  }
  text.erase(0, text.find_first_not_of(' '));
  return text.empty() ? "it gave no reason" : text;
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view phrase) { return text.find(phrase) != std::string_view::npos; });
}

Error tool_error(const std::string& tool, const std::string& uri, const CommandResult& result) {
  Errc code = Errc::kInvalidArgument;
  if (mentions(result.errors, {"no space left on device", "disk quota exceeded"})) code = Errc::kResourceExhausted;
  if (mentions(result.errors, {"connection refused", "no such host", "i/o timeout", "network is unreachable",
                               "TLS handshake", "server misbehaving", "toomanyrequests"})) {
    code = Errc::kUnavailable;
  }
  return {code, fmt::format("image {}: {} failed with status {}: {}", uri, tool, result.exit_status,
                            last_words(result.errors))};
}

// What a tool wrote into its folder. It may have been taken over by what it read: a link is not followed, and no more is read
// than a document may have.
Result<std::string> read_document(const std::string& path) {
  constexpr std::size_t kMostBytes = 8 << 20;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Errc::kInvalidArgument, "the image is malformed: {} is missing", path);
  }
  if (info.st_size > static_cast<off_t>(kMostBytes)) {
    return fail(Errc::kTooLarge, "the image is malformed: {} has {} bytes, the limit is {}", path, info.st_size,
                kMostBytes);
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// What umoci made is a folder, and no link to one: the tool may have been taken over by what it read. What is below is then nobody's to
// exchange: who wrote it has ended.
Status check_is_folder(const std::string& rootfs) {
  struct stat info {};
  if (lstat(rootfs.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return fail(Errc::kInvalidArgument, "the image is malformed: {} is no folder", rootfs);
}

// A file of the unpacked image, empty when it is not there. A link in an image may point anywhere on the host: not
// followed, in any part of the path.
std::string read_inside(const std::string& rootfs, const char* name) {
  const std::string folder = rootfs + "/etc";
  const int dir = open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return "";
  const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  close(dir);
  if (fd < 0) return "";
  std::string text(1 << 20, '\0');
  const ssize_t size = read(fd, text.data(), text.size());
  close(fd);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// Walks an unpacked image: counts its bytes and, for root, moves its owners. Links are not followed.
class TreeWalk {
 public:
  // `first_id`: the host's id of what is the image's id 0 on disk.
  TreeWalk(const store::ImageUser& user, std::optional<std::uint32_t> functions_id, std::uint32_t first_id = 0)
      : user_(user), functions_id_(functions_id), first_id_(first_id) {}

  Status run(const std::string& root) {
    if (Status status = visit(root); !status) return status;
    std::error_code error;
    fs::recursive_directory_iterator walk(root, error);
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
      if (Status status = visit(walk->path().string()); !status) return status;
    }
    if (error) return fail(errno_error(error.value(), "read folder " + root));
    return {};
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  Status visit(const std::string& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return fail(errno_error(errno, "stat " + path));
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1 && !seen_.insert(info.st_ino).second) return {};
    bytes_ += info.st_blocks * 512;
    if (bytes_ > kMaxImageBytes) {
      return fail(Errc::kTooLarge, "the image takes more than {} bytes unpacked", kMaxImageBytes);
    }
    if (!functions_id_) return {};
    const uid_t uid = host_id(info.st_uid - first_id_, user_.uid, *functions_id_);
    const gid_t gid = host_id(info.st_gid - first_id_, user_.gid, *functions_id_);
    if (lchown(path.c_str(), uid, gid) != 0) return fail(errno_error(errno, "chown " + path));
    return {};
  }

  const store::ImageUser user_;
  const std::optional<std::uint32_t> functions_id_;
  const std::uint32_t first_id_;
  std::set<ino_t> seen_;  // files with several names, each to be counted and moved once
  std::int64_t bytes_ = 0;
};

// One image on its way into the store.
class Fetch {
 public:
  Fetch(const ImageStoreOptions& options, const std::atomic<bool>& stop, std::string uri, ImageReference reference,
        std::string folder)
      : options_(options),
        stop_(stop),
        uri_(std::move(uri)),
        reference_(std::move(reference)),
        folder_(std::move(folder)),
        layout_(folder_ + "/layout"),
        temporary_(folder_ + "/tmp") {}

  Result<CodeBundle> run() {
    if (Status status = check_registry(); !status) return fail(status.error());
    for (const std::string& path : {layout_, temporary_}) {
      if (Status status = make_folder(path); !status) return fail(status.error());
    }
    if (Status status = copy(); !status) return fail(status.error());
    if (Status status = read_documents(); !status) return fail(status.error());
    const std::string hex = image_.digest.substr(image_.digest.find(':') + 1);
    const std::string path = images_folder(options_.state_dir) + "/" + hex;
    std::error_code error;
    Status unpacked = fs::exists(path, error) ? read_unpacked(path + "/rootfs") : unpack(path);
    if (!unpacked) return fail(unpacked.error());
    image_.uri = uri_;
    return CodeBundle{.path = path, .sha256 = hex, .bytes = 0, .image = std::move(image_)};
  }

 private:
  bool is_jailed() const { return options_.launcher != nullptr; }

  Result<CommandResult> run_tool(ImageTool tool) const {
    const std::string name = tool.arguments.front();
    const std::string file = find_program(name);
    if (file.empty()) {
      return fail(Errc::kUnavailable, "{0} is not installed; functions that are images need it (apt-get install {0})",
                  name);
    }
    std::vector<std::string> words = tool.arguments;
    if (is_jailed()) {
      tool.arguments.front() = file;
      if (!file.starts_with("/usr/") && !file.starts_with("/bin/")) {
        tool.reads.push_back(fs::path(file).parent_path());
      }
      tool.writes.push_back(temporary_);
      words = options_.launcher(tool);
    }
    Result<CommandResult> result = run_command({.arguments = std::move(words),
                                                .environment = tool_environment(),
                                                .inherits_environment = false,
                                                .timeout = options_.tool_timeout,
                                                .kill_signal = is_jailed() ? SIGTERM : SIGKILL,
                                                .stop = &stop_});
    if (result && result->exit_status != 0) return fail(tool_error(name, uri_, *result));
    return result;
  }

  // What the tools need to find programs, credentials and the way out; nothing else of the node's.
  std::map<std::string, std::string> tool_environment() const {
    std::map<std::string, std::string> environment;
    for (const char* name :
         {"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR",
          "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}) {
      if (const char* value = std::getenv(name)) environment[name] = value;
    }
    environment["TMPDIR"] = temporary_;  // removed with the staging folder
    return environment;
  }

  // A folder that the tools fill. In a jail they are somebody else.
  Status make_folder(const std::string& path) const {
    if (mkdir(path.c_str(), 0755) != 0) return fail(errno_error(errno, "create folder " + path));
    if (!is_jailed() || !options_.root) return {};
    if (chown(path.c_str(), kImageIdBase, kImageIdBase) == 0) return {};
    return fail(errno_error(errno, "chown " + path));
  }

  static std::vector<std::string> skopeo(std::initializer_list<std::string> arguments) {
    std::vector<std::string> all{"skopeo"};
    // Debian keeps the policy in a package that skopeo only recommends. Where there is one, it is obeyed.
    const char* home = std::getenv("HOME");
    const bool has_policy =
        access("/etc/containers/policy.json", R_OK) == 0 ||
        (home != nullptr && access((std::string(home) + "/.config/containers/policy.json").c_str(), R_OK) == 0);
    if (!has_policy) all.emplace_back("--insecure-policy");
    all.insert(all.end(), {"--override-os", "linux", "--override-arch", std::string(kArchitecture)});
    all.insert(all.end(), arguments);
    return all;
  }

  bool is_layout() const { return !reference_.layout_dir.empty(); }

  // By its name; the addresses behind it are looked at by who connects to them.
  Status check_registry() const {
    if (is_layout()) return {};
    const HostPort registry = split_host_port(registry_of(reference_.repository));
    if (registry.port != 0 && options_.registries.allows(registry)) return {};
    return fail(Errc::kInvalidArgument, "Code.ImageUri is '{}': {}:{} is no registry of this node; {}", uri_,
                registry.host, registry.port, RegistryRules::advice(registry));
  }

  // What the operator has listed of this machine. Programs send no proxy what goes to the machine that they are on.
  std::string local_registry() const {
    const HostPort registry = split_host_port(registry_of(reference_.repository));
    const bool is_local = registry.host == "localhost" || registry.host == "127.0.0.1";
    return is_local ? fmt::format("{}:{}", registry.host, registry.port) : "";
  }

  ImageTool skopeo_tool(std::initializer_list<std::string> arguments) const {
    ImageTool tool{.arguments = skopeo(arguments), .reads = {}, .writes = {layout_}};
    tool.reads_configuration = true;
    if (is_layout()) {
      tool.reads.push_back(reference_.layout_dir);
      tool.reads_all = true;  // the operator named it
    } else {
      tool.has_network = true;
      tool.local_registry = local_registry();
    }
    return tool;
  }

  Status copy() {
    if (is_layout() && access((reference_.layout_dir + "/index.json").c_str(), R_OK) != 0) {
      return fail(Errc::kInvalidArgument, "image {}: {} is not an OCI layout that the node can read (no index.json)",
                  uri_, reference_.layout_dir);
    }
    std::string source = reference_.source;
    if (!is_layout()) {
      // A tag may move between two calls; a digest does not.
      Result<CommandResult> digest = run_tool(skopeo_tool({"inspect", "--no-tags", "--format", "{{.Digest}}", source}));
      if (!digest) return fail(digest.error());
      const std::string text = digest->output.substr(0, digest->output.find('\n'));
      if (!is_sha256_digest(text)) return fail(Errc::kInvalidArgument, "image {}: digest '{}'", uri_, text);
      source = "docker://" + reference_.repository + "@" + text;
      image_.resolved_uri = reference_.repository + "@" + text;
    }
    const auto copied = run_tool(skopeo_tool({"copy", "--quiet", source, "oci:" + layout_ + std::string(kTag)}));
    if (!copied) return fail(copied.error());
    return {};
  }

  Result<std::string> blob(const std::string& digest) const {
    const std::string path = layout_ + "/blobs/sha256/" + digest.substr(digest.find(':') + 1);
    return read_document(path);
  }

  Status read_documents() {
    const Result<std::string> index = read_document(layout_ + "/index.json");
    if (!index) return fail(index.error());
    Result<std::string> digest = store::manifest_digest(*index);
    if (!digest) return fail(digest.error());
    image_.digest = *std::move(digest);
    if (image_.resolved_uri.empty()) image_.resolved_uri = reference_.repository + "@" + image_.digest;
    const Result<std::string> manifest_text = blob(image_.digest);
    if (!manifest_text) return fail(manifest_text.error());
    const auto manifest = store::parse_manifest(*manifest_text);
    if (!manifest) return fail(manifest.error());
    const Result<std::string> config_text = blob(manifest->config_digest);
    if (!config_text) return fail(config_text.error());
    auto config = store::parse_configuration(*config_text, kArchitecture);
    if (!config) return fail(config.error());
    image_.defaults = std::move(config->defaults);
    user_name_ = std::move(config->user);
    return {};
  }

  Result<store::ImageUser> find_user(const std::string& rootfs) {
    auto user = store::resolve_user(user_name_, read_inside(rootfs, "passwd"), read_inside(rootfs, "group"));
    if (!user) return user;
    // Without root there is one id only.
    if (!options_.root) *user = {};
    image_.defaults.uid = user->uid;
    image_.defaults.gid = user->gid;
    return user;
  }

  Status read_unpacked(const std::string& rootfs) {
    if (Status folder = check_is_folder(rootfs); !folder) return folder;
    if (const auto user = find_user(rootfs); !user) return fail(user.error());
    TreeWalk walk({}, std::nullopt);
    if (Status status = walk.run(rootfs); !status) return status;
    image_.bytes = walk.bytes();
    return {};
  }

  Status unpack(const std::string& path) {
    const std::string folder = folder_ + "/image";
    const std::string rootfs = folder + "/rootfs";
    if (Status made = make_folder(folder); !made) return made;
    ImageTool umoci{
        .arguments = {"umoci", "raw", "unpack"}, .reads = {layout_}, .writes = {folder}, .owns_files = true};
    if (!options_.root) umoci.arguments.emplace_back("--rootless");
    umoci.arguments.insert(umoci.arguments.end(), {"--image", layout_ + std::string(kTag), rootfs});
    if (const auto unpacked = run_tool(std::move(umoci)); !unpacked) return fail(unpacked.error());
    if (Status made = check_is_folder(rootfs); !made) return made;
    if (options_.root && chown(folder.c_str(), 0, 0) != 0) return fail(errno_error(errno, "chown " + folder));
    const auto user = find_user(rootfs);
    if (!user) return fail(user.error());
    TreeWalk walk(*user, options_.root ? std::optional(options_.functions_id) : std::nullopt,
                  is_jailed() ? kImageIdBase : 0);
    if (Status status = walk.run(rootfs); !status) return status;
    image_.bytes = walk.bytes();
    return store::install_folder(folder, path);
  }

  const ImageStoreOptions& options_;
  const std::atomic<bool>& stop_;
  const std::string uri_;
  const ImageReference reference_;
  const std::string folder_;
  const std::string layout_, temporary_;
  FunctionImage image_;
  std::string user_name_;
};

}  // namespace

Result<CodeBundle> ImageStore::add(const std::string& uri) {
  Result<ImageReference> reference = parse_image_reference("Code.ImageUri", uri);
  if (!reference) return fail(reference.error());
  const Result<store::Staging> staging = store::Staging::create(images_folder(options_.state_dir));
  if (!staging) return fail(staging.error());
  return Fetch(options_, stop_, uri, *std::move(reference), staging->path()).run();
}

void remove_unused_images(const std::string& state_dir, const std::vector<std::string>& used) {
  store::remove_unused_folders(images_folder(state_dir), used, "image");
}

}  // namespace fairlead
