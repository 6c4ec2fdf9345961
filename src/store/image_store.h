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
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/image.h"
#include "store/store.h"

namespace fairlead {

struct ImageStoreOptions {
  std::string state_dir;
  bool root = false;               // the node is root
  std::uint32_t functions_id = 0;  // the user and group id of functions on the host, when root
  Duration tool_timeout = std::chrono::minutes(15);
};

class ImageStore {
 public:
  explicit ImageStore(ImageStoreOptions options) : options_(std::move(options)) {}

  // Fetches and unpacks; an image that is there already is fetched, to learn what the reference means, but not unpacked
  // again. Blocks, for minutes if need be. kInvalidArgument: there is no such image, or it is malformed, for another
  // machine, too large; kResourceExhausted: the disk is full; kUnavailable: the registry does not answer, a tool is
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
