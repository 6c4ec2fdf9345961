// Small things that all nodes of a common store have: API keys, secrets. A document has a kind, a name, and a text that only its kind
// understands. Who can write to the store can put any text there, so what a text says is believed where it is sealed under a key that
// the store does not have.
//
// Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead {

inline constexpr std::size_t kMostDocumentBytes = 64 << 10;  // a longer one is not believed

struct SharedDocument {
  std::string kind;
  std::string name;
  std::string body;
};

// All of them, as they were at one moment.
struct SharedDocuments {
  std::int64_t revision = 0;  // grows with each change
  bool is_anew = false;       // the store may have lost changes: a lower revision than before counts
  std::vector<SharedDocument> documents;
};

// Changes that are made together, of one kind.
struct DocumentChanges {
  struct One {
    std::string name;
    std::optional<std::string> body;  // none: removed
  };
  std::string kind;
  std::string needs;  // the name of a document of the kind that must be there; empty: none must
  std::vector<One> all;
};

// Makes all of them or none, for all nodes; the revision. kNotFound: what they need is not there. kUnavailable: the store cannot be
// reached. Waits for the store: not for the node's thread.
using PublishDocuments = std::function<Result<std::int64_t>(const DocumentChanges&)>;

}  // namespace fairlead
