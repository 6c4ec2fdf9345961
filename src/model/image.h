// A function packaged as an OCI image: how an image is named, what it says about itself, and what the author overrides.
// Names and bounds of the overrides are AWS Lambda's (ImageConfig).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr std::size_t kMaxImageConfigItems = 1500;
inline constexpr std::size_t kMaxImageConfigBytes = 16 << 10;  // entry point and command together
inline constexpr std::size_t kMaxWorkingDirectoryLength = 1000;
inline constexpr std::int64_t kMaxImageBytes = std::int64_t{10} << 30;  // unpacked, as Lambda's
inline constexpr std::uint32_t kMaxImageId = 65535;                     // user and group ids inside an image

// The tag that says how an image's program is reached: "lambda" (it calls the Runtime API), "http" (it listens on $PORT) or "openfaas"
// (so does it, and is ready when it says 200 at /_/health). Without it the image decides, see speaks_lambda() and has_watchdog().
inline constexpr const char* kContractTag = "image:contract";

// Where an image comes from.
struct ImageReference {
  std::string source;      // as skopeo takes it: "oci:/images/app:latest", "docker://quay.io/app:latest"
  std::string layout_dir;  // of an OCI layout on this machine; empty: a registry
  std::string repository;  // "quay.io/app" or "oci:/images/app": what a digest can be appended to
};

// Accepts "oci:DIR[:TAG]" with an absolute DIR, "docker://NAME[:TAG|@DIGEST]", and NAME[:TAG|@DIGEST], which means
// docker://. kInvalidArgument names `field`, the text and what is expected.
Result<ImageReference> parse_image_reference(std::string_view field, std::string_view text);

// "sha256:" and 64 hexadecimal digits in lower case.
bool is_sha256_digest(std::string_view text);

// What the author sets in place of the image's own. Empty: the image's.
struct ImageOverrides {
  std::vector<std::string> entry_point;
  std::vector<std::string> command;
  std::string working_directory;

  bool empty() const { return entry_point.empty() && command.empty() && working_directory.empty(); }
  bool operator==(const ImageOverrides&) const = default;
};
Status validate_overrides(const ImageOverrides& overrides);

// What the image says about itself.
struct ImageDefaults {
  std::vector<std::string> entry_point;
  std::vector<std::string> command;
  std::string working_directory;
  std::map<std::string, std::string> environment;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  bool operator==(const ImageDefaults&) const = default;
};

// What the registry keeps of an unpacked image.
struct FunctionImage {
  std::string uri;           // as the author wrote it
  std::string resolved_uri;  // the same pinned to a digest
  std::string digest;        // "sha256:..." of the image's manifest
  std::int64_t bytes = 0;    // unpacked
  ImageDefaults defaults;

  bool operator==(const FunctionImage&) const = default;
};

// The command line that starts it: each override replaces its own part, as in Lambda (not as in Docker, where another
// entry point also drops the command). Empty: the image names no program, and neither did the author.
std::vector<std::string> image_arguments(const ImageDefaults& defaults, const ImageOverrides& overrides);

// Whether the image says that its program is a client of Lambda's Runtime API: it was built for Lambda
// (LAMBDA_TASK_ROOT), or its command line names a runtime client or a `bootstrap`.
bool speaks_lambda(const ImageDefaults& defaults, const std::vector<std::string>& arguments);

// Whether its program is OpenFaaS's watchdog: its command line names `fwatchdog`.
bool has_watchdog(const std::vector<std::string>& arguments);

}  // namespace fairlead
