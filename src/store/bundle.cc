// Code bundles: filled in a staging folder beside their final place, checked, named by their content, and renamed into
// place in one step. A crash leaves a staging folder, which remove_unused_bundles() removes, never half a bundle.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/base64.h"
#include "base/digest.h"
#include "store/bundle_digest.h"
#include "store/file_tree.h"
#include "store/folder_source.h"
#include "store/staging.h"
#include "store/store.h"
#include "store/unzip.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

std::string code_folder(const std::string& state_dir) {
  return fs::absolute(state_dir).lexically_normal().string() + "/code";
}

// One level down: the usual mistake is to pack the folder instead of its contents.
std::string bootstrap_one_level_down(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    if (entry.is_directory(error) && fs::exists(entry.path() / "bootstrap", error)) {
      return fmt::format("; found {0}/bootstrap: pack the contents of {0}, not {0} itself",
                         entry.path().filename().string());
    }
  }
  return "";
}

// A kernel task has no program.
Status check_program(const std::string& root) {
  std::error_code error;
  const std::string path = root + "/bootstrap";
  for (const char* instead : {"/task.json", "/pipeline.json"}) {  // a kernel task, several of them
    if (fs::is_regular_file(root + instead, error) && !fs::exists(path, error)) return {};
  }
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) {
    return fail(Errc::kInvalidArgument,
                "the code bundle has no file 'bootstrap' at its top level (the program that is started){}",
                bootstrap_one_level_down(root));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::kInvalidArgument, "'bootstrap' in the code bundle must be a regular file");
  }
  // Archives made on other systems carry no executable bits.
  if (chmod(path.c_str(), 0755) != 0) return fail(errno_error(errno, "chmod " + path));
  return {};
}

Result<CodeBundle> install(const std::string& state_dir, const store::FileTree& tree) {
  if (Status status = check_program(tree.root()); !status) return fail(status.error());
  Result<store::BundleDigest> digest = store::digest_tree(tree.root());
  if (!digest) return fail(digest.error());
  CodeBundle bundle{.path = code_folder(state_dir) + "/" + digest->hex(),
                    .sha256 = digest->base64(),
                    .bytes = tree.bytes(),
                    .image = {}};
  if (Status status = store::install_folder(tree.root(), bundle.path); !status) return fail(status.error());
  return bundle;
}

Status copy_file(const store::FolderSource& source, const store::FolderSource::Entry& entry, store::FileTree& tree) {
  const Result<UniqueFd> from = source.open_file(entry.name);
  if (!from) return fail(from.error());
  Result<store::FileTree::File> file = tree.add_file(entry.name, entry.is_executable);
  Status status = file ? Status() : Status(fail(file.error()));
  std::vector<char> buffer(256 << 10);
  while (status) {
    ssize_t size = read(from->get(), buffer.data(), buffer.size());
    if (size < 0) status = fail(errno_error(errno, "read " + entry.name));
    if (size <= 0) break;
    status = file->write({buffer.data(), static_cast<std::size_t>(size)});
  }
  return status ? file->close() : status;
}

Status copy_entry(const store::FolderSource& source, const store::FolderSource::Entry& entry, store::FileTree& tree) {
  using Kind = store::FolderSource::Entry::Kind;
  switch (entry.kind) {
    case Kind::kFolder: return tree.add_folder(entry.name);
    case Kind::kFile: return copy_file(source, entry, tree);
    case Kind::kLink: return tree.add_link(entry.name, entry.link_target);
    case Kind::kOther: break;
  }
  return fail(Errc::kInvalidArgument, "{} is neither file, folder nor symbolic link", entry.name);
}

Status copy_tree(const store::FolderSource& source, store::FileTree& tree) {
  std::vector<std::string> folders{""};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    const auto entries = source.list(folder);
    if (!entries) return fail(entries.error());
    for (const store::FolderSource::Entry& entry : *entries) {
      if (Status status = copy_entry(source, entry, tree); !status) return status;
      if (entry.kind == store::FolderSource::Entry::Kind::kFolder) folders.push_back(entry.name);
    }
  }
  return {};
}

// Who runs it is another user than the node, where that is root, and the node's own elsewhere.
bool may_be_run(std::uint32_t mode) {
  return ::geteuid() != 0 || (mode & S_IXOTH) != 0;
}

Status check_program_in_place(const store::FolderSource& source, const std::string& folder) {
  const Result<std::uint32_t> itself = source.mode_of("");
  if (!itself) return fail(itself.error());
  const Result<std::uint32_t> program = source.mode_of("bootstrap");
  if (!program && program.error().code != Errc::kNotFound) return fail(program.error());
  if (!program) {
    return fail(
        Errc::kInvalidArgument,
        "{} has no file 'bootstrap' at its top level (the program that is started); a kernel task or a pipeline "
        "is read once and copied: deploy it without InPlace",
        folder);
  }
  if (!S_ISREG(*program)) {
    return fail(Errc::kInvalidArgument, "'bootstrap' in {} must be a regular file, since it runs in place", folder);
  }
  if ((*program & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0 && may_be_run(*program) && may_be_run(*itself)) return {};
  return fail(Errc::kInvalidArgument,
              "{0} runs in place as another user, who may not run its bootstrap: chmod o+rx {0} {0}/bootstrap, and o+r "
              "what it reads",
              folder);
}

template <typename Fill>
Result<CodeBundle> store_bundle(const std::string& state_dir, Fill fill) {
  Result<store::Staging> staging = store::Staging::create(code_folder(state_dir));
  if (!staging) return fail(staging.error());
  store::FileTree tree(staging->path());
  if (Status status = fill(tree); !status) return fail(status.error());
  if (Status status = tree.finish(); !status) return fail(status.error());
  return install(state_dir, tree);
}

}  // namespace

Result<CodeBundle> store_zip(const std::string& state_dir, std::string_view zip) {
  return store_bundle(state_dir, [&](store::FileTree& tree) { return store::unzip(zip, tree); });
}

Result<CodeBundle> store_folder(const std::string& state_dir, const std::string& folder,
                                std::optional<std::uint32_t> uid) {
  const Result<store::FolderSource> source = store::FolderSource::open(folder, uid);
  if (!source) return fail(source.error());
  auto bundle = store_bundle(state_dir, [&](store::FileTree& tree) { return copy_tree(*source, tree); });
  if (!bundle && bundle.error().code == Errc::kTooLarge) {
    return fail(Errc::kTooLarge,
                "{}: {}; a folder of any size runs without a copy: fairlead deploy --in-place (Code.InPlace)", folder,
                bundle.error().message);
  }
  return bundle;
}

Result<CodeBundle> folder_in_place(const std::string& folder, std::optional<std::uint32_t> uid,
                                   const std::string& deployment) {
  const auto source = store::FolderSource::open(folder, uid, store::FolderSource::Links::kRefused);
  if (!source) return fail(source.error());
  if (Status runs = check_program_in_place(*source, folder); !runs) return fail(runs.error());
  const Result<FileIdentity> identity = source->identity();
  if (!identity) return fail(identity.error());
  const Digest named = sha256(folder + '\0' + to_text(*identity) + '\0' + deployment);
  return CodeBundle{
      .path = folder, .sha256 = base64_encode(as_text(named)), .bytes = 0, .image = {}, .in_place = *identity};
}

void remove_unused_bundles(const std::string& state_dir, const std::vector<std::string>& used) {
  store::remove_unused_folders(code_folder(state_dir), used, "code bundle");
}

}  // namespace fairlead
