// The identity of a code bundle: SHA-256 over its canonical content. The same files give the same digest whether they
// came as a zip archive or as a folder, in whatever order, with whatever times and owners.
//
// Canonical content: for each entry of the tree, by path in byte order, one record
//   folder  "d" path NUL        file  "f" | "x" (executable) path NUL size NUL sha256(content)
//   link    "l" path NUL target NUL
#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
#include "base/result.h"

namespace fairlead::store {

struct BundleDigest {
  Digest sha256;
  std::string hex() const;
  std::string base64() const;
};

// REQUIRES: nothing else writes to `root` meanwhile.
Result<BundleDigest> digest_tree(const std::string& root);

}  // namespace fairlead::store
