#!/usr/bin/env python3
"""Each check of this folder against small trees: a bad one must fail for its reason, a good one must pass."""
import json
import os
import pathlib
import runpy
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import class_sizes
import comment_share
import doc_links
import exported_symbols
import file_sizes
import format  # the check beside this file
import include_arrows
import include_direction
import mutants
import portable
import self_contained_headers
import size_ratchet
import tested_sources
import thread_safety
import tidy
import tree
import vocabulary
import waits


class Checks(unittest.TestCase):
    def test_every_check_can_be_run(self):
        here = pathlib.Path(__file__).resolve().parent
        checks = runpy.run_path(str(here / "run"))["CHECKS"]
        self.assertEqual([name for name in checks if not os.access(here / f"{name}.py", os.X_OK)], [])


class Lint(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def compile(self, path, source, *flags):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-x", "c++", "-", "-o", self.root / path, *flags], input=source, text=True, check=True)

    def assert_one(self, check, *words):
        problems = check(self.root)
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def assert_clean(self, check):
        self.assertEqual(check(self.root), [])


class Text(Lint):
    def test_comments_and_literals_are_blanked_and_lines_kept(self):
        lines = tree.code_lines('int a;  // getenv\n/* rand\n */ char b = \'"\'; f("sleep", 1\'000);')
        self.assertEqual([line.rstrip() for line in lines], ["int a;", "", "    char b =    ; f(       , 1'000);"])


class ClassSizes(Lint):
    def write_class(self, methods, fields, kind="class"):
        lines = [f"  void f{i}(int a);" for i in range(methods)] + [f"  int g{i}_ = 0;" for i in range(fields)]
        self.write("src/node/a.h", f"namespace fairlead {{\n{kind} A {{\n" + "\n".join(lines) + "\n};\n}  // namespace\n")

    def test_a_class_within_the_bounds_is_clean(self):
        self.write_class(30, 15)
        self.assert_clean(class_sizes.check)

    def test_one_method_or_field_more_is_named(self):
        self.write_class(31, 1)
        self.assert_one(class_sizes.check, "src/node/a.h:fairlead::A", "31 methods and 1 fields", "may have 30 and 15")
        self.write_class(1, 16)
        self.assert_one(class_sizes.check, "1 methods and 16 fields")

    def test_a_class_of_the_baseline_may_not_grow(self):
        self.write(class_sizes.BASELINE, '{"src/node/a.h:fairlead::A": [33, 15]}')
        self.write_class(33, 15)
        self.assert_clean(class_sizes.check)
        self.write_class(34, 15)
        self.assert_one(class_sizes.check, "34 methods", "may have 33")

    def test_what_a_field_says_of_its_lock_is_no_method(self):
        fields = "\n".join(f"  int g{i}_ FL_GUARDED_BY(mutex_) = 0;" for i in range(14))
        methods = "\n".join(f"  void f{i}() SOFTGPU_REQUIRES(mutex_);" for i in range(30))
        self.write("src/node/a.h", f"class FL_CAPABILITY(\"mutex\") A {{\n{methods}\n{fields}\n  Mutex mutex_;\n}};\n")
        self.assert_clean(class_sizes.check)
        self.assertEqual(class_sizes.measure(self.root), {"src/node/a.h:A": [30, 15]})

    def test_values_and_overrides_do_not_count(self):
        self.write_class(0, 40, "struct")
        self.assert_clean(class_sizes.check)
        overrides = "\n".join(f"  void f{i}() override;" for i in range(40))
        self.write("src/node/a.h", f"class A : B {{\n  A();\n{overrides}\n}};\n")
        self.assert_clean(class_sizes.check)

    def test_updating_lowers_and_never_raises(self):
        self.write(class_sizes.BASELINE, '{"src/node/a.h:fairlead::A": [50, 20], "src/node/b.h:fairlead::B": [50, 20]}')
        self.write_class(40, 22)
        class_sizes.update(self.root)
        self.assertEqual(class_sizes.baseline(self.root), {"src/node/a.h:fairlead::A": [40, 20]})


class CommentShare(Lint):
    def test_one_line_in_ten_is_enough_and_less_is_not(self):
        self.write("src/gpu/fence/a.cc", "// why\n" + "int a;\n" * 9)
        self.assert_clean(comment_share.check)
        self.write("src/gpu/fence/a.cc", "// why\n" + "int a;  // what\n" * 10)
        self.assert_one(comment_share.check, "src/gpu/fence", "9.1 %", "at least 10 %")

    def test_tests_and_other_folders_do_not_count(self):
        self.write("src/gpu/fence/a.cc", "// why\nint a;\n")
        self.write("src/gpu/fence/a_test.cc", "int a;\n" * 99)
        self.write("src/gpu/fence/testing/b.h", "int a;\n" * 99)
        self.write("src/node/c.cc", "int a;\n" * 99)
        self.assert_clean(comment_share.check)


class IncludeDirection(Lint):
    def test_upward_include_fails(self):
        self.write("src/decide/queueing/a.cc", '#include "base/ids.h"\n#include "decide/core/core.h"\n')
        self.assert_one(include_direction.check, "src/decide/queueing/a.cc:2", "decide/core/core.h")

    def test_a_folders_private_header_fails(self):
        self.write("src/decide/core/a.cc", '#include "decide/queueing/policy.h"\n#include "decide/queueing/order.h"\n')
        self.write("src/decide/queueing/a.cc", '#include "decide/queueing/order.h"\n')
        self.assert_one(include_direction.check, "src/decide/core/a.cc:2", "order.h")

    def test_softgpu_sees_nothing_of_the_platform(self):
        self.write("softgpu/driver/a.cc", '#include "abi/cuda.h"\n#include "base/result.h"\n')
        self.assert_one(include_direction.check, "base/result.h")

    def test_rooms_of_softgpu_see_those_below_only(self):
        self.write("softgpu/driver/context/a.cc", '#include "softgpu/mutex.h"\n#include "softgpu/driver/log.h"\n'
                   '#include "softgpu/driver/stream/a.h"\n')
        self.write("softgpu/driver/stream/a.cc", '#include "softgpu/driver/context/context.h"\n')
        self.write("softgpu/driver/context/a_test.cc", '#include "softgpu/driver/graph/graph.h"\n')
        self.assert_one(include_direction.check, "softgpu/driver/context/a.cc:3", "softgpu/driver/stream/a.h")

    def test_a_new_room_of_softgpu_needs_a_row(self):
        self.write("softgpu/novel/a.cc", '#include "softgpu/mutex.h"\n')
        self.assert_one(include_direction.check, "softgpu/novel", "no row")

    def test_rows_of_softgpu_form_no_circle(self):
        self.assertEqual(include_direction.upward(include_direction.SOFTGPU), [])
        self.assertEqual(include_direction.upward({"a": {"b"}, "b": {"a"}}), [("a", "b")])

    def test_network_library_stays_at_the_edge(self):
        self.write("src/decide/core/a.cc", "#include <boost/asio.hpp>\n")
        self.assert_one(include_direction.check, "boost/asio.hpp")

    def test_beast_stays_out_of_headers(self):
        self.write("src/net/a.h", "#include <boost/beast/http.hpp>\n")
        self.assert_one(include_direction.check, "costs every includer")

    def test_new_folder_needs_a_row(self):
        self.write("src/novel/a.cc", "")
        self.assert_one(include_direction.check, "novel")

    def test_an_edge_sees_no_other(self):
        self.write("src/edge/native/a.cc", '#include "edge/edge.h"\n#include "edge/native/a.h"\n#include "edge/lambda/b.h"\n')
        self.assert_one(include_direction.check, "src/edge/native/a.cc:3", "edge/lambda/b.h")

    def test_the_node_sees_edges_only_where_it_is_wired(self):
        self.write("src/node/serve.cc", '#include "edge/lambda/b.h"\n#include "edge/node_service.h"\n')
        self.write("src/node/node.cc", '#include "edge/lambda/b.h"\n#include "edge/node_service.h"\n')
        self.assert_one(include_direction.check, "src/node/node.cc:1", "edge/lambda/b.h")

    def test_downward_includes_pass(self):
        self.write("src/decide/core/a.cc", '#include "decide/core/a.h"\n#include "decide/queueing/policy.h"\n#include <vector>\n')
        self.assert_clean(include_direction.check)


class IncludeArrows(Lint):
    def check(self, most, **rows):
        with unittest.mock.patch.object(include_direction, "ALLOWED", {"base": set(), "edge": {"base"}, **rows}):
            return include_arrows.check(self.root, most)

    def write_edges(self):
        self.write("src/edge/a.cc", '#include "base/a.h"\n#include "edge/b.h"\n#include <vector>\n#include "c.h"\n')
        self.write("src/edge/c.h", "")
        self.write("src/edge/native/a.cc", '#include "base/a.h"\n#include "edge/a.h"\n')

    def test_a_folder_within_another_makes_no_arrow_of_its_own(self):
        self.write_edges()
        self.assertEqual(self.check(1, **{"edge/native": {"base", "edge"}}), [])

    def test_an_arrow_more_fails_and_one_less_lowers_the_bound(self):
        self.write_edges()
        rows = {"edge/native": {"base", "edge"}}
        self.assertIn("1 arrows between folders, may have 0", self.check(0, **rows)[0])
        self.assertIn("lower MOST from 2", self.check(2, **rows)[0])

    def test_a_row_has_no_more_than_is_used(self):
        self.write_edges()
        problems = self.check(1, **{"edge/native": {"base", "edge", "net"}, "net": set()})
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("edge/native may include net and does not", problems[0])


class Vocabulary(Lint):
    def test_clock_in_a_decision_fails(self):
        self.write("src/decide/placement/a.cc", "auto t = std::chrono::steady_clock::now();\n")
        self.assert_one(vocabulary.check, "a clock")

    def test_clock_in_a_comment_passes(self):
        self.write("src/decide/placement/a.cc", "// not steady_clock::now()\n")
        self.assert_clean(vocabulary.check)

    def test_iteration_over_unordered_container_fails(self):
        self.write("src/decide/queueing/a.h", "std::unordered_map<int, std::vector<int>> flows_;\n")
        self.write("src/decide/queueing/a.cc", "void f() {\n  for (auto& [id, flow] : state.flows_) {}\n}\n")
        self.assert_one(vocabulary.check, "src/decide/queueing/a.cc:2", "unordered")

    def test_reading_a_file_in_a_way_that_throws_fails(self):
        self.write("src/node/a.cc", "std::string text(std::istreambuf_iterator<char>(file), {});\n")
        self.write("src/node/a_test.cc", "std::string text(std::istreambuf_iterator<char>(file), {});\n")
        self.assert_one(vocabulary.check, "src/node/a.cc:1", "base/read_file.h")

    def test_lookup_in_unordered_container_passes(self):
        self.write("src/decide/queueing/a.cc", "std::unordered_map<int, int> flows_;\nauto f = flows_.find(1);\n")
        self.assert_clean(vocabulary.check)

    def test_sleep_in_a_unit_test_fails(self):
        self.write("src/node/a_test.cc", "std::this_thread::sleep_for(1ms);\n")
        self.assert_one(vocabulary.check, "sleep")

    def test_unfinished_work_fails(self):
        self.write("src/node/a.cc", "int a;  // TO" "DO: more\n")
        self.assert_one(vocabulary.check, "unfinished")


class Waits(Lint):
    def test_sleep_in_a_test_fails_without_a_reason(self):
        self.write("tests/functional/test_a.py", "import time\n\n\ntime.sleep(1)\n")
        self.assert_one(waits.check, "tests/functional/test_a.py:4", "eventually")

    def test_sleep_with_a_reason_passes(self):
        self.write("tests/functional/test_a.py", "time.sleep(1)  # sleep: the pace of the callers\n")
        self.write("tests/functions/hang/bootstrap.py", "time.sleep(1)\n")
        self.assert_clean(waits.check)

    def test_short_deadline_fails(self):
        self.write("tests/functional/test_a.py", "eventually(lambda: f(g()), timeout=9.5)\n")
        self.assert_one(waits.check, "less than 30 s")

    def test_elapsed_time_that_decides_fails(self):
        self.write("tests/functional/test_a.py", "assert time.monotonic() - begun < 4\n")
        self.assert_one(waits.check, "less than 30 s")

    def test_short_deadlines_of_unit_tests_fail(self):
        for line in ("constexpr auto kPatience = std::chrono::seconds(20);", "while (monotonic_now() < monotonic_now() + 5s) {}",
                     "const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);",
                     "ASSERT_GT(io.run_one_for(seconds(20)), 0u);"):
            self.write("src/net/a_test.cc", line + "\n")
            self.assert_one(waits.check, "less than 30 s")

    def test_generous_deadlines_and_code_that_is_no_test_pass(self):
        self.write("tests/functional/test_a.py", "eventually(lambda: f(), timeout=60)\neventually(f)\n")
        self.write("src/net/a_test.cc", "constexpr auto kPatience = std::chrono::minutes(2);\nnow() + 200s;\n"
                   "now() + std::chrono::milliseconds(5);  // wait: how long the gate is watched\n")
        self.write("src/net/a.cc", "deadline = monotonic_now() + 5s;\n")
        self.assert_clean(waits.check)


class Sizes(Lint):
    LONG = "int f() {\n" + "  g();\n" * 90 + "}\n"

    def test_long_function_fails(self):
        self.write("src/base/a.cc", self.LONG)
        self.assert_one(size_ratchet.check, "src/base/a.cc:f", "92 lines")

    def test_long_function_of_the_baseline_may_not_grow(self):
        self.write("src/base/a.cc", self.LONG)
        self.write(size_ratchet.BASELINE, '{"files": {}, "functions": {"src/base/a.cc:f": 92}}')
        self.assert_clean(size_ratchet.check)
        self.write("src/base/a.cc", self.LONG.replace("}", "  g();\n}"))
        self.assert_one(size_ratchet.check, "93 lines, may have 92")

    def test_update_lowers_and_never_raises(self):
        self.write("src/base/a.cc", self.LONG)
        self.write(size_ratchet.BASELINE,
                   '{"files": {"gone.cc": 900}, "functions": {"src/base/a.cc:f": 80}}')
        size_ratchet.update(self.root)
        self.assertEqual(size_ratchet.baseline(self.root), {"files": {}, "functions": {"src/base/a.cc:f": 80}})

    def test_long_file_fails(self):
        self.write("src/base/a.h", "int a;\n" * 801)
        self.assert_one(size_ratchet.check, "801 lines")

    def test_large_file_fails(self):
        self.write("docs/video.bin", "x" * (600 * 1024))
        self.assert_one(file_sizes.check, "video.bin")


class TestedSources(Lint):
    LONG = '#include "node/a.h"\n' + "int a;\n" * 200

    def write_table(self, elsewhere=(), untested=()):
        self.write(tested_sources.TABLE, json.dumps({"elsewhere": dict(elsewhere), "untested": list(untested)}))

    def test_a_long_source_without_a_test_fails(self):
        self.write("src/node/a.cc", self.LONG)
        self.write("src/node/short.cc", "int a;\n" * 200)
        self.write("src/node/testing/fake.cc", self.LONG)
        self.assert_one(tested_sources.check, "src/node/a.cc: more than 200 lines", "write a_test.cc")

    def test_one_with_a_test_of_its_name_passes(self):
        self.write("src/node/a.cc", self.LONG)
        for name in ("a_test.cc", "a_prop_test.cc"):
            self.write(f"src/node/{name}", "")
            self.assert_clean(tested_sources.check)
            (self.root / "src/node" / name).unlink()

    def test_one_whose_test_has_another_name_passes_where_it_includes_the_header(self):
        self.write("src/node/a.cc", self.LONG)
        self.write_table(elsewhere={"src/node/a.cc": ["src/node/b_test.cc", "node/a.h"]})
        self.assert_one(tested_sources.check, "src/node/b_test.cc is no test")
        self.write("src/node/b_test.cc", '#include "node/b_fixture.h"\n')
        self.assert_one(tested_sources.check, "src/node/b_test.cc does not include node/a.h")
        self.write("src/node/b_fixture.h", '#include "node/a.h"\n')
        self.assert_clean(tested_sources.check)
        self.write_table(elsewhere={"src/node/a.cc": ["src/node/b_test.cc", "base/a.h"]})
        self.assert_one(tested_sources.check, "base/a.h is of another folder")

    def test_the_list_of_those_without_may_only_shrink(self):
        self.write("src/node/a.cc", self.LONG)
        self.write_table(untested=["src/node/a.cc", "src/node/gone.cc"])
        self.assert_one(tested_sources.check, "src/node/gone.cc needs no place in it any more")
        self.write("src/node/b.cc", self.LONG)
        tested_sources.update(self.root)
        self.assertEqual(tested_sources.read_table(self.root), {"elsewhere": {}, "untested": ["src/node/a.cc"]})
        self.assert_one(tested_sources.check, "src/node/b.cc: more than 200 lines and no test")


class Mutants(Lint):
    TOOL = runpy.run_path(str(tree.ROOT / "tools/mutants"))

    def write_list(self, **changes):
        self.write("src/node/a.cc", "int limit() { return 3; }\nint other() { return 4; }\n")
        fields = {"name": "one-more", "file": "src/node/a.cc", "text": "return 3;", "replacement": "return 4;",
                  "tests": ["node_tests A.*"], **changes}
        lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None]
        self.write(mutants.LIST, "[[mutant]]\n" + "\n".join(lines) + "\n")

    def test_a_list_that_fits_is_clean_and_none_is_too(self):
        self.assert_clean(mutants.check)
        self.write_list()
        self.assert_clean(mutants.check)

    def test_a_text_that_is_not_there_once_fails(self):
        self.write_list(text="return 5;")
        self.assert_one(mutants.check, "one-more: its text stands 0 times in src/node/a.cc", "write the mutant anew")
        self.write_list(text="return")
        self.assert_one(mutants.check, "stands 2 times")

    def test_what_is_no_mutant_fails(self):
        self.write_list(replacement="return 3;")
        self.assert_one(mutants.check, "the replacement is the text itself")
        self.write_list(file="src/node/b.cc")
        self.assert_one(mutants.check, "there is no src/node/b.cc")
        self.write_list(file="src/sim/a.cc")
        self.assert_one(mutants.check, "src/sim/a.cc is no source of ")
        self.write_list(tests=[])
        self.assert_one(mutants.check, "no test is to see it")
        self.write_list(replacement=None)
        self.assert_one(mutants.check, "one-more: has to have name, file, text, replacement, tests")

    def test_the_copy_is_the_tree_and_keeps_its_build(self):
        self.write("tree/a.cc", "new")
        self.write("tree/sub/b.cc", "b")
        self.write("copy/a.cc", "old")
        self.write("copy/sub/gone.cc", "gone")
        self.write("copy/build/a.o", "built")
        self.TOOL["copy_tree"](self.root / "tree", self.root / "copy")
        files = {str(path.relative_to(self.root / "copy")): path.read_text() for path in (self.root / "copy").rglob("*.*")}
        self.assertEqual(files, {"a.cc": "new", "sub/b.cc": "b", "build/a.o": "built"})

    def test_a_mutant_is_in_the_file_while_its_tests_run_and_not_afterwards(self):
        self.write_list()
        mutant = mutants.read(self.root)[0]
        seen = []

        def with_tests(build, test):
            with unittest.mock.patch.dict(self.TOOL["verdict"].__globals__, build=build, run_test=test):
                return self.TOOL["verdict"](self.root, mutant, {"node_tests A.*": 1.0})

        def failing(copy, test, limit_s):
            seen.append((copy / "src/node/a.cc").read_text().splitlines()[0])
            return "A.B"

        self.assertEqual(with_tests(lambda *_: None, failing), ("killed", "A.B"))
        self.assertEqual(seen, ["int limit() { return 4; }"])
        self.assertEqual(with_tests(lambda *_: None, lambda *_: None), ("survived", ""))
        self.assertEqual(with_tests(lambda *_: "error", failing), ("broken", "error"))
        self.assertIn("return 3;", (self.root / "src/node/a.cc").read_text())

    def test_a_test_that_fails_crashes_or_hangs_says_so(self):
        script = '#!/bin/sh\ncase "$*" in *Good*) exit 0;; *Bad*) echo "[  FAILED  ] A.Bad (1 ms)"; exit 1;;\n' \
                 "*Crash*) kill -6 $$;; *) exec sleep 600;; esac\n"
        self.write("build/bin/t", script)
        (self.root / "build/bin/t").chmod(0o755)
        run = self.TOOL["run_test"]
        self.assertIsNone(run(self.root, "t A.Good", 60))
        self.assertEqual(run(self.root, "t A.Bad", 60), "A.Bad")
        self.assertEqual(run(self.root, "t A.Crash", 60), "t ends with status -6")
        self.assertEqual(run(self.root, "t", 0.1), "t does not end within 0 s")

    def test_too_few_killed_or_one_that_does_not_compile_is_a_failure(self):
        summary = self.TOOL["summary"]
        self.assertEqual(summary(["killed"] * 36 + ["survived"] * 4, 36), ("36 of 40 mutants killed, at least 36 must be", 0))
        self.assertEqual(summary(["killed"] * 35 + ["survived"] * 5, 36)[1], 1)
        line, status = summary(["killed"] * 39 + ["broken"], 36)
        self.assertEqual(status, 1)
        self.assertIn("1 do not compile", line)


class Binaries(Lint):
    def test_library_that_exports_its_insides_fails(self):
        self.compile("build/lib/softgpu/libcuda.so.1", 'extern "C" void cuInit() {}\nvoid inner() {}\n', "-shared", "-fPIC")
        self.assert_one(exported_symbols.check, "exports _Z5innerv")

    def test_library_that_exports_its_names_passes(self):
        self.compile("build/lib/softgpu/libcuda.so.1", 'extern "C" void cuInit() {}\n', "-shared", "-fPIC")
        self.assert_clean(exported_symbols.check)

    def test_program_that_needs_a_shared_library_is_not_portable(self):
        source = "int main(int n, char**) { return *new int(n) == 0; }\n"  # no streams: those of static libraries need more
        self.compile("build-portable/bin/fairlead", source)
        self.assertIn("libstdc++.so.6", "\n".join(portable.check(self.root)))
        self.compile("build-portable/bin/fairlead", source, "-static-libstdc++", "-static-libgcc")
        self.assert_clean(portable.check)

    def test_nothing_built_is_not_portable(self):
        self.assert_one(portable.check, "make portable")


class Compilers(Lint):
    def test_unformatted_file_fails(self):
        shutil.copy(tree.ROOT / ".clang-format", self.root)
        self.write("src/base/a.cc", "int  a ;\n")
        self.assert_one(format.check, "src/base/a.cc")
        format.fix(self.root)
        self.assert_clean(format.check)

    def test_header_that_leans_on_another_fails(self):
        self.write("src/base/a.h", "#pragma once\nstd::string a();\n")
        self.assert_one(self_contained_headers.check, "does not compile alone")

    def test_header_that_its_source_includes_first_is_left_to_the_build(self):
        self.write("src/base/a.h", "#pragma once\nstd::string a();\n")
        self.write("src/base/a.cc", '// A.\n#include "base/a.h"\n')
        self.assert_clean(self_contained_headers.check)
        self.write("src/base/a.cc", '#include <string>\n#include "base/a.h"\n')
        self.assert_one(self_contained_headers.check, "does not compile alone")

    def test_abi_header_that_is_not_c_fails(self):
        self.write("abi/a.h", "#pragma once\nnamespace a {}\n")
        self.assert_one(self_contained_headers.check, "(c)")

    def test_tidy_finds_a_use_after_move(self):
        shutil.copy(tree.ROOT / ".clang-tidy", self.root)
        self.write("src/base/a.cc", "#include <utility>\nstruct A { A(A&&); int b; };\nvoid take(A);\n"
                                    "int f(A a) { take(std::move(a)); return a.b; }\n")
        self.write("build/compile_commands.json",
                   f'[{{"directory": "{self.root}", "command": "g++ -c {self.root}/src/base/a.cc", '
                   f'"file": "{self.root}/src/base/a.cc"}}]')
        self.assert_one(tidy.check, "src/base/a.cc:4", "use-after-move")

    def test_tidy_reads_a_clean_source_once(self):
        shutil.copy(tree.ROOT / ".clang-tidy", self.root)
        self.write("src/base/a.h", "inline int one() { return 1; }\n")
        self.write("src/base/a.cc", '#include "a.h"\nint two() { return 2 * one(); }\n')
        self.write("build/build.ninja", "rule cxx\n  command = g++ -MD -MF $out.d -o $out -c $in\n  deps = gcc\n"
                                        f"  depfile = $out.d\nbuild a.o: cxx {self.root}/src/base/a.cc\n")
        subprocess.run(["ninja", "-C", self.root / "build"], check=True, capture_output=True)
        self.write("build/compile_commands.json",
                   f'[{{"directory": "{self.root}/build", "command": "g++ -o a.o -c {self.root}/src/base/a.cc", '
                   f'"file": "{self.root}/src/base/a.cc"}}]')
        self.assert_clean(tidy.check)
        with unittest.mock.patch.object(tidy, "tidy", return_value=["read again"]):
            self.assert_clean(tidy.check)
            self.write("src/base/a.h", "inline int one() { return 3; }\n")
            self.assertEqual(tidy.check(self.root), ["read again"])


class ThreadSafety(Lint):
    """A counter with a lock; the header of the real locks stands beside it."""
    TAKEN = "  const fairlead::MutexLock lock(mutex_);\n"

    def write_counter(self, body):
        for header in ("mutex.h", "thread_annotations.h"):
            self.write(f"src/base/{header}", (tree.ROOT / "src/base" / header).read_text())
        self.write("src/node/a.h", '#include "base/mutex.h"\nclass A {\n void add();\n fairlead::Mutex mutex_;\n'
                                   " int count_ FL_GUARDED_BY(mutex_) = 0;\n};\n")
        self.write("src/node/a.cc", '#include "node/a.h"\nvoid A::add() {\n' + body + "}\n")
        self.write("src/node/b.cc", '#include "node/a.h"\nthis is not read: it touches nothing\n')
        commands = [{"directory": str(self.root), "file": str(self.root / name),
                     "command": f"g++ -std=c++20 -I{self.root}/src -o a.o -c {self.root / name}"}
                    for name in ("src/node/a.cc", "src/node/b.cc")]
        self.write("build/compile_commands.json", json.dumps(commands))

    def test_access_without_the_lock_fails(self):
        self.write_counter("  ++count_;\n")
        self.assert_one(thread_safety.check, "src/node/a.cc:3", "count_", "requires holding mutex 'mutex_'")

    def test_access_behind_the_lock_fails(self):
        self.write_counter("  {\n" + self.TAKEN + "  }\n  ++count_;\n")
        self.assert_one(thread_safety.check, "src/node/a.cc:6", "count_")

    def test_access_under_the_lock_passes_and_is_read_once(self):
        self.write_counter(self.TAKEN + "  ++count_;\n")
        self.assert_clean(thread_safety.check)
        with unittest.mock.patch.object(thread_safety, "read", return_value=["read again"]):
            self.assert_clean(thread_safety.check)
            self.write("src/base/thread_annotations.h", (self.root / "src/base/thread_annotations.h").read_text() + "\n")
            self.assertEqual(thread_safety.check(self.root), ["read again"])

    def test_header_with_an_access_is_read_through_some_source(self):
        self.write_counter("  // nothing\n")
        header = (self.root / "src/node/a.h").read_text()
        self.write("src/node/a.h", header.replace("void add();", "void add();\n int get() { return count_; }"))
        self.assert_one(thread_safety.check, "src/node/a.h:4", "count_")

    def test_lock_that_says_nothing_fails(self):
        self.write_counter(self.TAKEN)
        self.write("softgpu/device/a.h", "// a std::mutex\nstd::shared_mutex mutex_;\n")
        self.assert_one(thread_safety.check, "softgpu/device/a.h:2", "std::shared_mutex", "softgpu/mutex.h")


class Pages(Lint):
    def test_dead_link_fails(self):
        self.write("README.md", "[a](docs/a.md)\n")
        self.write("docs/a.md", "[b](b.md)\n")
        self.assert_one(doc_links.check, "docs/a.md:1", "no such file: b.md")

    def test_dead_heading_fails(self):
        self.write("README.md", "[a](docs/a.md)\n")
        self.write("docs/a.md", "# One thing\n[b](#another)\n")
        self.assert_one(doc_links.check, "no such heading")

    def test_page_that_no_link_leads_to_fails(self):
        self.write("README.md", "[a](docs/a.md)\n")
        self.write("docs/a.md", "[a](a.md) `[b](b.md)`\n")
        self.write("docs/b.md", "[a](a.md)\n")
        self.assert_one(doc_links.check, "docs/b.md", "docs/README.md")

    def test_good_links_pass(self):
        self.write("README.md", "[a](/docs/a.md)\n")
        self.write("docs/a.md", "# One thing\n[b](b.md#c-d) [d](#one-thing) [e](https://example.org)\n`[f](g)`\n")
        self.write("docs/b.md", "## C: D\n")
        self.assert_clean(doc_links.check)


if __name__ == "__main__":
    unittest.main(verbosity=0)
