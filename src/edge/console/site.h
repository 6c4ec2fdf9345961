// GET /console and what is below: files that are inside the program, for everybody; what they show they ask for with the viewer's key.
//
// A browser keeps a file and asks with its ETag whether it has changed. Gzip where it is accepted, as it was packed when the program was
// built. Without the vendor files there is one page that says so.
#pragma once

#include "edge/console/site_file.h"
#include "edge/edge.h"

namespace fairlead {

// Everything from this origin, nothing inline, in no frame.
inline constexpr const char* kContentPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

// `files` and `missing` outlive the handlers.
void add_site_routes(Routes& routes, std::span<const SiteFile> files, std::span<const std::string_view> missing);

}  // namespace fairlead
