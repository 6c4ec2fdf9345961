// The files of the console, inside the program: site/ and what tools/console-vendor fetched, as cmake/embed_site.py wrote them down.
//
// Plain values.
#pragma once

#include <span>
#include <string_view>

namespace fairlead {

struct SiteFile {
  std::string_view path;  // below /console: "app.js", "vendor/preact.js"
  std::string_view type;  // Content-Type
  std::string_view etag;  // with its quotes
  std::string_view plain, gzip;
};

// By path. Defined by the generated source.
std::span<const SiteFile> site_files();
// Names of what tools/console-vendor had not fetched when the program was built: "preact 11.2.0". Empty: the console is whole.
std::span<const std::string_view> missing_site_parts();

}  // namespace fairlead
