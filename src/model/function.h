// A function as its author registered it: plain values, no behaviour. Names and bounds follow AWS Lambda's where it has
// them, so that its SDKs work unchanged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/result.h"
#include "base/units.h"
#include "model/device.h"
#include "model/image.h"
#include "model/tenant.h"

namespace fairlead {

// Bounds that input is checked against. Errors quote them.
inline constexpr std::size_t kMaxFunctionNameLength = 64;
inline constexpr std::size_t kMaxSyncPayloadBytes = 6 << 20;   // 6 MiB, RequestResponse
inline constexpr std::size_t kMaxAsyncPayloadBytes = 1 << 20;  // 1 MiB, Event
inline constexpr std::size_t kMaxResponseBytes = 6 << 20;
inline constexpr std::size_t kMaxEnvironmentBytes = 4096;
inline constexpr std::size_t kMaxTags = 50;
inline constexpr std::size_t kMaxZippedCodeBytes = 50 << 20;
inline constexpr std::size_t kMaxUnzippedCodeBytes = 250 << 20;
inline constexpr int kMinMemoryMib = 128, kMaxMemoryMib = 10240;
inline constexpr int kMinTimeoutSeconds = 1, kMaxTimeoutSeconds = 900;
inline constexpr int kMinEphemeralStorageMib = 64, kMaxEphemeralStorageMib = 10240;
inline constexpr int kMaxReplicas = 1000;

// What `gpu:*` tags and GPU_* environment variables say (reference: apis.md 15.2; the tag wins over the variable).
struct GpuSettings {
  Share share;          // gpu:compute-percent, gpu:memory-mib; gpu:quota-request, gpu:quota-limit: tags only
  double weight = 1.0;  // gpu:weight           fair share, 0.01-100
  std::string tenant = kDefaultTenant;  // gpu:tenant           who pays; a tag only, and for the function's life
  std::optional<int> objective_ms;      // gpu:objective-ms     wanted from arrival to answer, 1-3600000; a tag only
  std::string
      mig_profile;    // gpu:mig-profile      slices that it may run on (model/mig_tag.h); a tag only; "": any device
  Replicas replicas;  // gpu:replicas         N, which is N:N, or MIN:MAX; a tag only

  // How many instances are kept, each in a seat on a device: with a request at least one.
  std::size_t seats() const {
    return share.is_best_effort() ? replicas.least : std::max<std::size_t>(replicas.least, 1);
  }

  bool operator==(const GpuSettings&) const = default;
};

enum class PackageType { kZip, kImage };

// What the author sets (CreateFunction, UpdateFunctionConfiguration).
struct FunctionConfig {
  std::string description;
  std::string role;                              // accepted for the SDKs' sake, not used
  PackageType package_type = PackageType::kZip;  // of its creation; never changes
  std::string handler;                           // passed to the function as _HANDLER; empty for an image
  std::string runtime = "provided.al2023";       // means nothing for an image
  ImageOverrides image_config;                   // for images only
  int memory_mib = 512;
  int timeout_seconds = 60;
  int ephemeral_storage_mib = 512;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> tags;

  bool operator==(const FunctionConfig&) const = default;
};

// What the registry keeps.
struct FunctionRecord {
  std::string name;
  FunctionConfig config;
  std::string code_sha256;  // as Lambda reports it: base64 for code, hexadecimal for an image
  std::int64_t code_bytes = 0;
  std::string code_path;  // directory with the unpacked code, `bootstrap` in it, or with an image's `rootfs`;
                          // content-addressed, immutable
  std::optional<FunctionImage> image;  // when package_type is kImage
  std::optional<FileIdentity> in_place =
      {};  // code_path is the author's own folder, this one, and no copy; it may change, and code_bytes is 0
  std::string revision_id;  // changes with every update
  std::int64_t last_modified_ms = 0;
  std::optional<int> reserved_concurrency;
  std::vector<std::string> seats;  // UUIDs of the devices where instances are kept, one for each; where they were last
  std::uint64_t version = 0;       // a published one (model/version.h), which never changes; 0: $LATEST
};

// Checks. Each error names the field, the value and the bound.
Status validate_function_name(const std::string& name);  // [A-Za-z0-9-_]{1,64}
Status validate_config(const FunctionConfig& config);
Result<GpuSettings> gpu_settings(const FunctionConfig& config);

// How an image's program is reached, as its author said it with kContractTag; empty: he did not.
// REQUIRES: validate_config().
std::string image_contract(const FunctionConfig& config);

// Accepts "name", "name:$LATEST", a partial ARN ("123:function:name") and a full one; gives the bare name. Other
// qualifiers are kNotFound: there are no versions yet.
Result<std::string> function_name_from(const std::string& name_or_arn);
std::string function_arn(const std::string& name);

// Whether an instance that was started by one is as the other would start it: they differ in what the node alone looks at, which
// are its quotas of time, its weight, objective and replicas, and its description.
bool is_same_process(const FunctionConfig& one, const FunctionConfig& other);

}  // namespace fairlead
