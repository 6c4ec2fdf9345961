// The image store over tools that are scripts: what it asks of them, and what it makes of how they end. With the real
// ones it is tried in tests/.
#include "store/image_store.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "model/image_ids.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using store::TestFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

#if defined(__aarch64__)
const std::string kMachine = "arm64";
#else
const std::string kMachine = "amd64";
#endif

const std::string kManifest(64, 'a'), kConfiguration(64, 'c');

struct ImageStoreTest : testing::Test {
  ImageStoreTest() {
    write_documents("");
    // Copies the layout that the test wrote; for `inspect`, tells its digest.
    script("skopeo",
           "for last; do :; done\n"
           "case \"$*\" in *' inspect '*) echo sha256:" +
               kManifest +
               "; exit;; esac\n"
               "target=${last#oci:}\n"
               "cp -r " +
               folder / "layout/." + " \"${target%:image}\"\n");
    script("umoci",
           "for last; do :; done\n"
           "mkdir -p \"$last/etc\"\n"
           "echo 'app:x:1000:1001::/:' > \"$last/etc/passwd\"\n"
           "echo program > \"$last/run\"\n");
    setenv("PATH", (folder / "tools").c_str(), 1);
  }
  ~ImageStoreTest() override { setenv("PATH", path_before.c_str(), 1); }

  // A program of that name, which notes its arguments.
  void script(const std::string& name, const std::string& body) {
    folder.write("tools/" + name,
                 "#!/bin/sh\nPATH=/usr/bin:/bin\necho " + name + " \"$@\" >> " + folder / "calls" + "\n" + body);
    fs::permissions(folder / ("tools/" + name), fs::perms::owner_all);
  }
  void write_documents(const std::string& user) {
    folder.write("layout/index.json", R"({"manifests":[{"digest":"sha256:)" + kManifest + R"("}]})");
    folder.write("layout/blobs/sha256/" + kManifest,
                 R"({"config":{"digest":"sha256:)" + kConfiguration + R"("},"layers":[{"size":5}]})");
    folder.write("layout/blobs/sha256/" + kConfiguration, R"({"os":"linux","architecture":")" + kMachine +
                                                              R"(","config":{"Entrypoint":["/run"],"User":")" + user +
                                                              "\"}}");
  }

  Result<CodeBundle> add(const std::string& uri) { return ImageStore(options).add(uri); }
  Result<CodeBundle> add() { return add("oci:" + folder / "layout" + ":v1"); }
  // The error of a fetch where skopeo ends like this.
  Error skopeo_fails(const std::string& words) {
    script("skopeo", "echo '" + words + "' >&2\nexit 1\n");
    const auto bundle = add();
    FL_CHECK(!bundle);
    return bundle.error();
  }
  std::vector<std::string> images() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "state/images")) names.push_back(entry.path().filename());
    return names;
  }

  TestFolder folder;
  ImageStoreOptions options{.state_dir = folder / "state"};
  const std::string path_before = getenv("PATH");
};

TEST_F(ImageStoreTest, AnImageIsUnpackedUnderItsDigestAndDescribed) {
  const auto bundle = add();
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->path, folder / "state/images/" + kManifest);
  EXPECT_EQ(bundle->sha256, kManifest);
  ASSERT_TRUE(bundle->image.has_value());
  EXPECT_EQ(bundle->image->uri, "oci:" + folder / "layout" + ":v1");
  EXPECT_EQ(bundle->image->resolved_uri, "oci:" + folder / "layout" + "@sha256:" + kManifest);
  EXPECT_EQ(bundle->image->digest, "sha256:" + kManifest);
  EXPECT_THAT(bundle->image->defaults.entry_point, ElementsAre("/run"));
  EXPECT_GE(bundle->image->bytes, 8192) << "two files";
  EXPECT_EQ(folder.read("state/images/" + kManifest + "/rootfs/run"), "program\n");
  EXPECT_THAT(images(), ElementsAre(kManifest)) << "no staging folder is left";
}

TEST_F(ImageStoreTest, WhatIsThereIsNotUnpackedAgainButReadAlike) {
  const auto first = add();
  script("umoci", "exit 9\n");
  const auto second = add();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->image, second->image);
  EXPECT_EQ(first->path, second->path);
}

TEST_F(ImageStoreTest, ARegistrysTagIsPinnedBeforeItIsFetched) {
  const auto bundle = add("quay.io/team/app:latest");
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->image->resolved_uri, "quay.io/team/app@sha256:" + kManifest);
  EXPECT_THAT(folder.read("calls"), AllOf(HasSubstr("{{.Digest}} docker://quay.io/team/app:latest\n"),
                                          HasSubstr("copy --quiet docker://quay.io/team/app@sha256:" + kManifest)));
  script("skopeo", "echo none\n");
  EXPECT_THAT(add("quay.io/team/app:latest").error().message, HasSubstr("digest 'none'"));
}

TEST_F(ImageStoreTest, TheProgramsUserIsTheImagesOwn) {
  options.root = ::geteuid() == 0;
  write_documents("app");
  const auto bundle = add();
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->image->defaults.uid, options.root ? 1000u : 0u);
  EXPECT_EQ(bundle->image->defaults.gid, options.root ? 1001u : 0u);
  write_documents("nobody-there");
  EXPECT_EQ(add().error().code, Errc::kInvalidArgument);
}

TEST_F(ImageStoreTest, OwnersAreMovedToIdsThatNobodyOfTheHostHas) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  options.root = true;
  options.functions_id = 65530;
  write_documents("app");
  script("umoci",
         "for last; do :; done\n"
         "mkdir -p \"$last/etc\"\n"
         "echo 'app:x:1000:1001::/:' > \"$last/etc/passwd\"\n"
         "touch \"$last/own\" \"$last/roots\" \"$last/other\"\n"
         "ln -s /etc/shadow \"$last/link\"\n"
         "chown 1000:1001 \"$last/own\"; chown 33:34 \"$last/other\"\n"
         "ln \"$last/other\" \"$last/same\"\n");
  const auto bundle = add();
  ASSERT_TRUE(bundle) << bundle.error().message;
  const auto owner_of = [&](const std::string& name) {
    struct stat info {};
    FL_CHECK(::lstat((bundle->path + "/rootfs/" + name).c_str(), &info) == 0);
    return std::pair(info.st_uid, info.st_gid);
  };
  EXPECT_EQ(owner_of("own"), std::pair(65530u, 65530u));
  EXPECT_EQ(owner_of("roots"), std::pair(kImageIdBase, kImageIdBase));
  EXPECT_EQ(owner_of("other"), std::pair(kImageIdBase + 33, kImageIdBase + 34)) << "of two names, moved once";
  EXPECT_EQ(owner_of("link"), std::pair(kImageIdBase, kImageIdBase));
  struct stat shadow {};
  ASSERT_EQ(::stat("/etc/shadow", &shadow), 0);
  EXPECT_EQ(shadow.st_uid, 0u) << "links are not followed";
}

TEST_F(ImageStoreTest, FilesOfTheHostAreNotReadThroughAnImagesLinks) {
  folder.write("host/passwd", "app:x:7:7::/:\n");
  write_documents("app");
  for (const std::string& link :
       {"mkdir \"$last\"; ln -s " + folder / "host" + " \"$last/etc\"\n",
        "mkdir -p \"$last/etc\"; ln -s " + folder / "host/passwd" + " \"$last/etc/passwd\"\n"}) {
    script("umoci", "for last; do :; done\n" + link);
    const auto bundle = add();
    ASSERT_FALSE(bundle) << link;
    EXPECT_THAT(bundle.error().message, HasSubstr("app"));
  }
}

TEST_F(ImageStoreTest, HowAToolFailedSaysWhoCanHelp) {
  EXPECT_EQ(skopeo_fails("dial tcp: connection refused").code, Errc::kUnavailable);
  EXPECT_EQ(skopeo_fails("toomanyrequests: slow down").code, Errc::kUnavailable);
  EXPECT_EQ(skopeo_fails("write: no space left on device").code, Errc::kResourceExhausted);
  const Error error = skopeo_fails("first\ntime=\"2026\" level=fatal msg=\"reading \\\"v1\\\": manifest unknown\"");
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("skopeo failed with status 1: reading \"v1\": manifest unknown"),
                                   Not(HasSubstr("level=")), Not(HasSubstr("first"))));
  EXPECT_THAT(skopeo_fails("").message, HasSubstr("it gave no reason"));
}

TEST_F(ImageStoreTest, AFailureLeavesNothing) {
  script("umoci", "mkdir -p \"$5\"; echo 'layer is damaged' >&2; exit 1\n");
  EXPECT_THAT(add().error().message, HasSubstr("umoci failed with status 1: layer is damaged"));
  fs::remove(folder / ("layout/blobs/sha256/" + kConfiguration));
  EXPECT_THAT(add().error().message, HasSubstr(kConfiguration + " is missing"));
  EXPECT_THAT(images(), ElementsAre());
}

TEST_F(ImageStoreTest, AToolThatIsMissingIsNamedWithItsPackage) {
  fs::remove(folder / "tools/umoci");
  const auto bundle = add();
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, Errc::kUnavailable);
  EXPECT_THAT(bundle.error().message, HasSubstr("apt-get install umoci"));
}

TEST_F(ImageStoreTest, AFolderThatIsNoLayoutIsRefusedBeforeAnyTool) {
  const auto bundle = add("oci:" + folder / "tools");
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(bundle.error().message, HasSubstr("no index.json"));
  EXPECT_FALSE(fs::exists(folder / "calls"));
}

TEST_F(ImageStoreTest, AToolThatHangsIsEndedByItsLimitOrByTheNode) {
  script("skopeo", "exec sleep 600\n");
  options.tool_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(add().error().code, Errc::kDeadlineExceeded);
  options.tool_timeout = std::chrono::minutes(10);
  ImageStore stopped(options);
  stopped.stop();
  EXPECT_EQ(stopped.add("oci:" + folder / "layout").error().code, Errc::kUnavailable);
}

TEST_F(ImageStoreTest, WhatNoFunctionUsesIsRemoved) {
  const auto bundle = add();
  ASSERT_TRUE(bundle);
  folder.write("state/images/staging-1-abc/half", "of an earlier process");
  folder.write("state/images/" + std::string(64, 'b') + "/rootfs/run", "old");
  remove_unused_images(folder / "state", {bundle->path});
  EXPECT_THAT(images(), ElementsAre(kManifest));
}

// umoci reads what strangers wrote, and may have been taken over: what it leaves is a stranger's too.
TEST_F(ImageStoreTest, ALinkInPlaceOfTheUnpackedFolderIsNotWalked) {
  folder.write("host/etc/passwd", "root:x:0:0::/:");
  script("umoci", "for last; do :; done\nln -s " + folder / "host" + " \"$last\"\n");
  struct stat before {};
  ASSERT_EQ(::lstat((folder / "host/etc/passwd").c_str(), &before), 0);
  const auto bundle = add();
  ASSERT_FALSE(bundle);
  EXPECT_THAT(bundle.error().message, HasSubstr("is no folder"));
  struct stat after {};
  ASSERT_EQ(::lstat((folder / "host/etc/passwd").c_str(), &after), 0);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_FALSE(fs::exists(folder / ("state/images/" + kManifest)));
}

TEST_F(ImageStoreTest, ToolsSeeNothingOfTheNodesEnvironment) {
  ::setenv("AWS_SECRET_ACCESS_KEY", "s3cret", 1);
  script("skopeo", "env > " + folder / "seen" + "\nexit 1\n");
  EXPECT_FALSE(add());
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  EXPECT_THAT(folder.read("seen"), AllOf(HasSubstr("TMPDIR="), Not(HasSubstr("s3cret"))));
}

}  // namespace
}  // namespace fairlead
