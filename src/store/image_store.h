// Images, each unpacked once below <state>/images/<digest of its manifest>: skopeo fetches it into a layout of its own
// (so that what is checked is what is unpacked), umoci unpacks its layers, and the folder is renamed into place when it
// is complete. A failure or a crash leaves nothing but a staging folder, which the next start removes.
//
//   <state>/images/3c0a.../rootfs     what an instance sees, never written to again
//
// When the node is root, the files' owners are moved to ids that no user of the host has (model/image_ids.h); setuid
// bits and file capabilities are lost by that, on purpose. Else everything belongs to the node's user.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/image.h"
#include "model/registry_rules.h"
#include "store/store.h"

namespace fairlead {

// A run of a tool, and all that it needs of this machine beside the system's programs.
struct ImageTool {
  std::vector<std::string> arguments;      // the first is its file
  std::vector<std::string> reads, writes;  // folders
  bool reads_configuration = false;        // of registries: how to reach them, credentials
  bool has_network = false;
  std::string local_registry = {};  // localhost:PORT or 127.0.0.1:PORT that it may reach by that name; "": none
  bool reads_all = false;           // also what only the owners of these folders may read
  bool owns_files = false;          // it gives files to the ids of images
};

struct ImageStoreOptions {
  // The command line that runs a tool in a jail, as the user kImageIdBase where the node is root. Null: tools run as the node.
  using Launcher = std::function<std::vector<std::string>(const ImageTool&)>;

  std::string state_dir;
  bool root = false;               // the node is root
  std::uint32_t functions_id = 0;  // the user and group id of functions on the host, when root
  Duration tool_timeout = std::chrono::minutes(15);
  Launcher launcher = {};
  RegistryRules registries = RegistryRules::everything_public();
};

class ImageStore {
 public:
  explicit ImageStore(ImageStoreOptions options) : options_(std::move(options)) {}

  // Fetches and unpacks; an image that is there already is fetched, to learn what the reference means, but not unpacked
  // again. Blocks, for minutes if need be. kInvalidArgument: there is no such image, or it is malformed, for another
  // machine, too large, of a registry that the rules forbid; kResourceExhausted: the disk is full; kUnavailable: the registry does not answer, a tool is
  // missing, or stop().
  // REQUIRES: one call at a time.
  Result<CodeBundle> add(const std::string& uri);

  // Ends what add() waits for. Any thread.
  void stop() { stop_.store(true); }

 private:
  const ImageStoreOptions options_;
  std::atomic<bool> stop_ = false;
};

// At start, like remove_unused_bundles(): `used` are the paths of bundles.
void remove_unused_images(const std::string& state_dir, const std::vector<std::string>& used);

}  // namespace fairlead
