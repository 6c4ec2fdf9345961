#include "runtime/container_config.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/environment.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

using nlohmann::json;
using testing::Contains;

InstanceSpec example() {
  InstanceSpec spec{.instance = InstanceId(4), .function = "f", .arn = "arn:aws:lambda:eu-west-1:0:function:f"};
  spec.environment = {{"A", "1"}, {"PATH", "/image/bin"}};
  spec.memory_limit = mib(128);
  spec.max_processes = 10;
  spec.binds = {{"/dev/nvidia0", "/dev/nvidia0", true}, {"/host/lib", "/opt/gpu/lib", false}, {"/sg", "/tmp/sg", true}};
  spec.container = InstanceSpec::Container{.rootfs = "/state/images/ab/rootfs",
                                           .arguments = {"/bin/app", "x y"},
                                           .working_directory = "/work",
                                           .uid = 1000,
                                           .gid = 100,
                                           .http_port = 8080};
  return spec;
}

StartOrder order_of(const InstanceSpec& spec) {
  StartOrder plain{.instance = 4,
                   .environment = sandbox_environment(spec),
                   .binds = {{"", kTaskDir, false}, {"/state/run/4.sock", kRuntimeSocketPath, true}},
                   .memory_limit = spec.memory_limit,
                   .max_processes = spec.max_processes,
                   .secrets = spec.secrets};
  for (const InstanceSpec::Bind& bind : spec.binds) plain.binds.push_back({bind.source, bind.target, bind.writable});
  return container_order(plain, *spec.container,
                         {.known = {BPF_STMT(BPF_RET | BPF_K, 2)}, .newer = {BPF_STMT(BPF_RET | BPF_K, 1)}});
}

const json* mount_at(const json& config, const std::string& target) {
  const json& mounts = config["mounts"];
  const auto found =
      std::find_if(mounts.begin(), mounts.end(), [&](const json& m) { return m["destination"] == target; });
  return found == mounts.end() ? nullptr : &*found;
}

TEST(ContainerOrder, SecretsAreFilesAndNotInWhatCrunReads) {
  InstanceSpec spec = example();
  EXPECT_EQ(mount_at(json::parse(order_of(spec).container), kSecretsDir), nullptr);
  spec.secrets = {{"db", "s3cret"}};
  const StartOrder order = order_of(spec);
  EXPECT_EQ(order.secrets, spec.secrets);
  EXPECT_EQ(order.container.find("s3cret"), std::string::npos);
  const json config = json::parse(order.container);
  for (const char* target : {"/run/secrets", "/var/openfaas/secrets"}) {
    const json* const mount = mount_at(config, target);
    ASSERT_NE(mount, nullptr) << target;
    EXPECT_EQ((*mount)["source"], "/run/secrets");
    for (const char* option : {"ro", "nosuid", "nodev", "noexec"}) EXPECT_THAT((*mount)["options"], Contains(option));
  }
}

TEST(ContainerOrder, BindsAreStagedWhereTheImageCannotRedirectThem) {
  const StartOrder order = order_of(example());
  const json config = json::parse(order.container);
  const std::vector<MountBind> expected = {{"/state/images/ab/rootfs", kImageDir, false},
                                           {"/state/run/4.sock", kRuntimeSocketPath, true},
                                           {"/dev/nvidia0", "/dev/nvidia0", true},
                                           {"/host/lib", "/run/fairlead/mounts/3", false},
                                           {"/sg", "/run/fairlead/mounts/4", true}};
  EXPECT_EQ(order.binds, expected);
  EXPECT_EQ(order.http_port, 8080u);
  EXPECT_EQ(order.memory_limit, mib(128));
  EXPECT_TRUE(order.environment.empty());
  EXPECT_EQ(mount_at(config, kTaskDir), nullptr);
  ASSERT_NE(mount_at(config, "/opt/gpu/lib"), nullptr);
  EXPECT_EQ((*mount_at(config, "/opt/gpu/lib"))["source"], "/run/fairlead/mounts/3");
  EXPECT_THAT((*mount_at(config, "/opt/gpu/lib"))["options"], Contains("ro"));
  EXPECT_THAT((*mount_at(config, "/tmp/sg"))["options"], testing::Not(Contains("ro")));
  EXPECT_THAT((*mount_at(config, "/dev/nvidia0"))["options"], testing::Not(Contains("nodev")));
  ASSERT_NE(mount_at(config, kRuntimeSocketPath), nullptr);
}

TEST(ContainerOrder, APlaceBelowAnotherIsMountedAfterIt) {
  const json config = json::parse(order_of(example()).container);
  std::vector<std::string> targets;
  for (const json& mount : config["mounts"]) targets.push_back(mount["destination"]);
  const auto at = [&](const char* target) { return std::find(targets.begin(), targets.end(), target); };
  EXPECT_LT(at("/dev"), at("/dev/null"));
  EXPECT_LT(at("/dev"), at("/dev/shm"));
  EXPECT_LT(at("/dev"), at("/dev/nvidia0"));
  EXPECT_LT(at("/tmp"), at("/tmp/sg"));
}

TEST(ContainerOrder, GivesNoRights) {
  const json config = json::parse(order_of(example()).container);
  const json& process = config["process"];
  EXPECT_EQ(process["noNewPrivileges"], true);
  EXPECT_EQ(process["capabilities"].size(), 5u);
  for (const json& set : process["capabilities"]) EXPECT_TRUE(set.is_array() && set.empty());
  EXPECT_EQ(config["root"]["readonly"], true);
  EXPECT_EQ(process["rlimits"][0]["type"], "RLIMIT_NPROC");
  EXPECT_LE(process["rlimits"][0]["hard"], 10u);
  std::vector<std::string> namespaces;
  for (const json& entry : config["linux"]["namespaces"]) namespaces.push_back(entry["type"]);
  EXPECT_THAT(namespaces, testing::UnorderedElementsAre("pid", "mount", "ipc", "user"));
  // One program of both: the first one's last word is replaced by the second. RET 2 is 8 bytes.
  EXPECT_EQ(config["annotations"]["run.oci.seccomp_bpf_data"], "BgAAAAIAAAA=");
}

TEST(ContainerOrder, TheProgramIsTheImages) {
  const json process = json::parse(order_of(example()).container)["process"];
  EXPECT_EQ(process["args"], json({"/bin/app", "x y"}));
  EXPECT_EQ(process["cwd"], "/work");
  EXPECT_EQ(process["user"], json({{"uid", 1000}, {"gid", 100}}));
  EXPECT_THAT(process["env"], Contains("PATH=/image/bin"));
  EXPECT_THAT(process["env"], Contains("PORT=8080"));
  EXPECT_THAT(process["env"], Contains("AWS_LAMBDA_RUNTIME_API=127.0.0.1:9001"));
  EXPECT_THAT(process["env"], testing::Not(Contains(testing::StartsWith("LD_LIBRARY_PATH="))));
}

TEST(ContainerOrder, IdsOfTheHostAreTheFunctionsAndUnusedOnes) {
  const json part = json::parse(order_of(example()).container)["linux"];
  if (::geteuid() != 0) {
    EXPECT_EQ(part["uidMappings"], json::array({{{"containerID", 0}, {"hostID", 0}, {"size", 1}}}));
    return;
  }
  EXPECT_THAT(part["uidMappings"], Contains(json({{"containerID", 1000}, {"hostID", kSandboxUid}, {"size", 1}})));
  EXPECT_THAT(part["gidMappings"], Contains(json({{"containerID", 100}, {"hostID", kSandboxUid}, {"size", 1}})));
  for (const json& range : part["uidMappings"]) EXPECT_NE(range["hostID"], 0);
}

TEST(ContainerOrder, TextThatIsNotUtf8IsNoCrash) {
  InstanceSpec spec = example();
  spec.environment["BYTES"] = "\xff\xfe";
  spec.container->working_directory = "";
  EXPECT_EQ(json::parse(order_of(spec).container)["process"]["cwd"], "/");
}

}  // namespace
}  // namespace fairlead
