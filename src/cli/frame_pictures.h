// Frames of a node's devices, as GET /fairlead/v1/frames tells them: as text, as a picture, and as a trace.
//
// Example: f:  |====|      |====|        its instance held the device twice; a place that was revoked has an outline
//          g:       |==|         |==|
//
// Pure. What others named is escaped.
#pragma once

#include <string>

#include "cli/node_client.h"

namespace fairlead::cli {

// A table for each device: who held it, how often and for which part of the time.
std::string frames_text(const Json& gpus);
// Of one device: a row for each instance. SVG.
std::string frames_svg(const Json& gpu);
// The trace event format, which ui.perfetto.dev opens: a process for each device, a thread for each instance.
std::string frames_trace(const Json& gpus);

}  // namespace fairlead::cli
