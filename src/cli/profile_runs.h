// An experiment on a node, from the command line: started, followed to its end, told.
#pragma once

#include <string>

#include "cli/cli.h"

namespace fairlead::cli {

struct ProfileRun {
  std::string function;
  std::string payload;
  bool is_generated = false;  // instead, of a kernel task: what the node makes up
  bool is_grid = false;
  double trial_seconds = 0;
  bool is_alone = false;  // no trial beside a copy of the function
};

// The author is told before that the function will run many times. False: he was asked, and does not want it.
enum class Payloads { kOfAuthor, kMadeUp };
enum class Experiment { kRectangles, kGrid, kPipeline };
bool agrees_to_calls(Cli& cli, const std::string& function, Payloads payloads, Experiment experiment, bool yes);
// Starts it and waits for its end; says each trial on stderr. The profile, as the node keeps it.
Result<Json> run_experiment(Cli& cli, const ProfileRun& run);
std::string profile_text(const Json& profile);
// What components of a pipeline take on each type of slice; "": `times` is empty or no list.
std::string component_times_text(const Json& times);
// "/fairlead/v1/functions/NAME" + suffix
std::string native_path(const std::string& function, const std::string& suffix);
std::string tags_path(const std::string& function);  // "/2017-03-31/tags/" + its ARN

}  // namespace fairlead::cli
