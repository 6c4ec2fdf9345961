// The data layer over HTTP: docs/how-to/objects.md.
//
//   PUT    /v1/objects/KEY[?lifetime=SECONDS]       body: the bytes
//   GET    /v1/objects/KEY[?wait=SECONDS]           the bytes, or those of Range; HEAD and ?info: about them
//   POST   /v1/objects/KEY?create=BYTES             local clients: a file to map and write, then
//   POST   /v1/objects/KEY?seal
//   DELETE /v1/objects/KEY
//   GET    /v1/objects[?prefix=&after=&limit=]      a list
//
// Whose objects: the header X-Fairlead-Tenant, "default" without it; inside a sandbox the function's tenant and no other.
#pragma once

#include <optional>
#include <string>

#include "edge/edge.h"
#include "store/object_store.h"

namespace fairlead {

inline constexpr std::size_t kMaxHttpObjectBytes = 64 << 20;  // larger ones go by mapped memory, or in parts

// What a client is let do.
struct ObjectAccess {
  std::optional<std::string> tenant;  // instead of the header
  std::string content_dir;            // where the client sees sealed objects of its tenant; empty: where the node does
};

void add_object_routes(Routes& routes, ObjectStore& objects, const ObjectAccess& access);
// The same as an edge of its own.
Edge object_edge(ObjectStore& objects, const ObjectAccess& access);

}  // namespace fairlead
