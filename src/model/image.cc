#include "model/image.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::size_t kMaxReferenceLength = 1024;
constexpr std::size_t kMaxTagLength = 128;
constexpr std::string_view kRegistryPrefix = "docker://";
constexpr std::string_view kLayoutPrefix = "oci:";
constexpr std::string_view kBadTag = "the tag must be 1 to 128 letters, digits, '.', '_' and '-'";
constexpr std::string_view kExpected =
    "it must be oci:DIR:TAG with an absolute folder, or a registry reference such as docker://HOST/NAME:TAG";

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_word(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxTagLength && is_word(tag.front()) &&
         std::all_of(tag.begin(), tag.end(), [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

// [HOST[:PORT]/]path/of/components. A host is told from a component by its dot, port or capital letters; whether it
// exists is the registry client's to find out.
bool is_repository(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.back() == '/' || name.find("//") != std::string_view::npos) {
    return false;
  }
  const std::size_t slash = name.find('/');
  const std::string_view host = slash == std::string_view::npos ? "" : name.substr(0, slash);
  const std::string_view path = name.substr(host.empty() ? 0 : slash + 1);
  const auto is_host_character = [](char c) { return is_word(c) || c == '.' || c == '-' || c == ':'; };
  const auto is_path_character = [](char c) { return is_lower_or_digit(c) || c == '.' || c == '_' || c == '-'; };
  return std::all_of(host.begin(), host.end(), is_host_character) && (host.empty() || is_word(host.front())) &&
         is_lower_or_digit(path.front()) &&
         std::all_of(path.begin(), path.end(), [&](char c) { return c == '/' || is_path_character(c); });
}

tl::unexpected<Error> refused(std::string_view field, std::string_view text, std::string_view why) {
  return fail(Errc::kInvalidArgument, "{} is '{}': {}; {}", field, text.substr(0, 256), why, kExpected);
}

Result<ImageReference> parse_layout(std::string_view field, std::string_view text) {
  std::string_view rest = text.substr(kLayoutPrefix.size());
  if (!rest.starts_with('/')) return refused(field, text, "the folder is not absolute");
  const std::size_t colon = rest.find(':');
  const std::string_view dir = rest.substr(0, colon);
  if (dir.size() < 2) return refused(field, text, "the folder is missing");
  if (colon != std::string_view::npos && !is_tag(rest.substr(colon + 1))) {
    return refused(field, text, kBadTag);
  }
  return ImageReference{.source = std::string(text),
                        .layout_dir = std::string(dir),
                        .repository = std::string(kLayoutPrefix) + std::string(dir)};
}

Result<ImageReference> parse_registry(std::string_view field, std::string_view text) {
  std::string_view repository = text;
  if (repository.starts_with(kRegistryPrefix)) repository.remove_prefix(kRegistryPrefix.size());
  if (repository.find("://") != std::string_view::npos) return refused(field, text, "the transport is not known");
  std::string_view digest;
  if (const std::size_t at = repository.find('@'); at != std::string_view::npos) {
    digest = repository.substr(at);
    repository = repository.substr(0, at);
    if (!is_sha256_digest(digest.substr(1))) return refused(field, text, "the digest is not sha256: and 64 digits");
  }
  std::string_view tag;
  const std::size_t colon = repository.rfind(':');
  if (colon != std::string_view::npos && repository.find('/', colon) == std::string_view::npos) {
    tag = repository.substr(colon);
    repository = repository.substr(0, colon);
    if (!is_tag(tag.substr(1))) return refused(field, text, kBadTag);
  }
  if (!is_repository(repository)) return refused(field, text, "the name is not a repository's");
  // Of a tag and a digest the digest says more, and skopeo takes one of them.
  const std::string_view version = digest.empty() ? tag : digest;
  return ImageReference{.source = fmt::format("{}{}{}", kRegistryPrefix, repository, version),
                        .layout_dir = {},
                        .repository = std::string(repository)};
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; });
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Status validate_list(std::string_view field, const std::vector<std::string>& list) {
  if (list.size() > kMaxImageConfigItems) {
    return fail(Errc::kInvalidArgument, "{} has {} items; it may have at most {}", field, list.size(),
                kMaxImageConfigItems);
  }
  if (std::any_of(list.begin(), list.end(), has_nul)) return fail(Errc::kInvalidArgument, "{} contains a NUL", field);
  if (!list.empty() && list.front().empty()) return fail(Errc::kInvalidArgument, "{}[0] is empty", field);
  return {};
}

std::size_t bytes_of(const std::vector<std::string>& list) {
  std::size_t bytes = 0;
  for (const std::string& item : list) bytes += item.size() + 1;
  return bytes;
}

}  // namespace

bool is_sha256_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr std::size_t kDigits = 64;
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kDigits) return false;
  return std::all_of(text.begin() + kPrefix.size(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<ImageReference> parse_image_reference(std::string_view field, std::string_view text) {
  if (text.empty()) return fail(Errc::kInvalidArgument, "{} is empty; {}", field, kExpected);
  if (text.size() > kMaxReferenceLength) {
    return fail(Errc::kInvalidArgument, "{} has {} bytes; it may have at most {}", field, text.size(),
                kMaxReferenceLength);
  }
  if (has_control_character(text)) return refused(field, text, "it contains a space or control character");
  return text.starts_with(kLayoutPrefix) ? parse_layout(field, text) : parse_registry(field, text);
}

Status validate_overrides(const ImageOverrides& overrides) {
  if (Status status = validate_list("ImageConfig.EntryPoint", overrides.entry_point); !status) return status;
  if (Status status = validate_list("ImageConfig.Command", overrides.command); !status) return status;
  const std::size_t bytes = bytes_of(overrides.entry_point) + bytes_of(overrides.command);
  if (bytes > kMaxImageConfigBytes) {
    return fail(Errc::kInvalidArgument, "ImageConfig: EntryPoint and Command have {} bytes; they may have at most {}",
                bytes, kMaxImageConfigBytes);
  }
  const std::string& dir = overrides.working_directory;
  if (dir.size() > kMaxWorkingDirectoryLength) {
    return fail(Errc::kInvalidArgument, "ImageConfig.WorkingDirectory has {} bytes; it may have at most {}", dir.size(),
                kMaxWorkingDirectoryLength);
  }
  if (has_nul(dir)) return fail(Errc::kInvalidArgument, "ImageConfig.WorkingDirectory contains a NUL");
  if (!dir.empty() && dir.front() != '/') {
    return fail(Errc::kInvalidArgument, "ImageConfig.WorkingDirectory is '{}'; it must begin with '/'", dir);
  }
  return {};
}

std::vector<std::string> image_arguments(const ImageDefaults& defaults, const ImageOverrides& overrides) {
  std::vector<std::string> arguments = overrides.entry_point.empty() ? defaults.entry_point : overrides.entry_point;
  const std::vector<std::string>& command = overrides.command.empty() ? defaults.command : overrides.command;
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

bool speaks_lambda(const ImageDefaults& defaults, const std::vector<std::string>& arguments) {
  constexpr std::string_view kClients[] = {"lambda_entrypoint", "lambda-entrypoint", "awslambdaric",
                                           "aws-lambda-ric",    "aws_lambda_ric",    "AWSLambda"};
  if (defaults.environment.contains("LAMBDA_TASK_ROOT")) return true;
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const std::string_view name = std::string_view(argument).substr(argument.rfind('/') + 1);
    return name == "bootstrap" || std::any_of(std::begin(kClients), std::end(kClients), [&](std::string_view client) {
             return argument.find(client) != std::string::npos;
           });
  });
}

bool has_watchdog(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return std::string_view(argument).substr(argument.rfind('/') + 1) == "fwatchdog";
  });
}

}  // namespace fairlead
