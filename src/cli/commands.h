// The commands of `fairlead`, one file each.
#pragma once

#include <functional>

#include "cli/cli.h"
#include "node/serve_options.h"

namespace fairlead::cli {

// Run a node. `serve` is fairlead::serve, or what a test has instead.
using Serve = std::function<int(const ServeOptions&, const RereadSettings&)>;
void add_serve(Cli& cli, Serve serve);
void add_doctor(Cli& cli);
void add_device_server(Cli& cli);  // hidden: the node starts it
void add_model_server(Cli& cli);   // hidden: the node starts it
void add_spawner(Cli& cli);        // hidden too
void add_jail(Cli& cli);           // hidden, too

// Functions.
void add_deploy(Cli& cli);
void add_list(Cli& cli);
void add_describe(Cli& cli);
void add_remove(Cli& cli);

// Use and watch them.
void add_invoke(Cli& cli);
void add_logs(Cli& cli);
void add_status(Cli& cli);
void add_top(Cli& cli);
void add_dead_letters(Cli& cli);
void add_why(Cli& cli);
void add_ktask(Cli& cli);

void add_cluster(Cli& cli);
void add_object(Cli& cli);
void add_graph(Cli& cli);
void add_tenant(Cli& cli);
void add_secret(Cli& cli);
void add_certificate(Cli& cli);

void add_plan(Cli& cli);
void add_sim(Cli& cli);
void add_replay(Cli& cli);
void add_profile(Cli& cli);
void add_fence(Cli& cli);

void add_version(Cli& cli);
void add_completion(Cli& cli);

void add_all_commands(Cli& cli, Serve serve);

}  // namespace fairlead::cli
