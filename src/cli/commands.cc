#include "cli/commands.h"

#include "cli/autoscale.h"
#include "cli/develop.h"
#include "cli/frames.h"
#include "cli/published.h"
#include "cli/usage.h"
#include "cli/warm.h"

namespace fairlead::cli {

void add_all_commands(Cli& cli, Serve serve) {
  add_serve(cli, std::move(serve));
  add_doctor(cli);
  add_device_server(cli);
  add_model_server(cli);
  add_spawner(cli);
  add_jail(cli);
  add_new(cli);
  add_dev(cli);
  add_deploy(cli);
  add_list(cli);
  add_describe(cli);
  add_remove(cli);
  add_warm(cli);
  add_unload(cli);
  add_invoke(cli);
  add_logs(cli);
  add_status(cli);
  add_top(cli);
  add_dead_letters(cli);
  add_why(cli);
  add_frames(cli);
  add_usage(cli);
  add_cluster(cli);
  add_object(cli);
  add_graph(cli);
  add_tenant(cli);
  add_secret(cli);
  add_certificate(cli);
  add_ktask(cli);
  add_plan(cli);
  add_sim(cli);
  add_replay(cli);
  add_profile(cli);
  add_autoscale(cli);
  add_fence(cli);
  add_alias(cli);
  add_version(cli);
  add_completion(cli);
}

}  // namespace fairlead::cli
