"""cmake/batches.py: which sources may be compiled as one. What it puts together wrongly does not compile, or means something else."""

import pathlib
import sys
import tempfile

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "cmake"))
import batches  # noqa: E402

ALONE = "namespace fairlead {{ namespace {{ {} }} void {}() {{ }} }}"


def together(tmp_path, first, second, headers=()):
    tmp_path = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))  # what is read once is kept by its path
    for name, text in headers:
        (tmp_path / name).write_text(text)
    paths = [tmp_path / "first.cc", tmp_path / "second.cc"]
    for path, text in zip(paths, (first, second)):
        path.write_text(text)
    return batches.batches(tmp_path, paths, 8) == [paths]


@pytest.mark.parametrize("own", [
    "int refused(int x) { return x; }", "Result<int> refused(std::string_view why);", "constexpr int refused = 1;", "struct refused { int a; };",
    "const std::map<int, std::string> refused{{1, \"{\"}};", "template <typename T> bool refused(const T& a) { return a; }",
    "enum class refused { kA };", "using refused = int;", "class refused : public Base { void f() override {} };", "const char* refused[] = {\"a\"};"])
def test_what_one_has_for_itself_the_other_does_not_say(tmp_path, own):
    alone = ALONE.format(own, "a")
    assert together(tmp_path, alone, ALONE.format("int other() { return 1; }", "b"))
    assert not together(tmp_path, alone, ALONE.format("int other() { return refused(1); }", "b"))
    assert not together(tmp_path, ALONE.format("", "b") + "int c = refused;", alone)


def test_the_same_name_twice(tmp_path):
    assert not together(tmp_path, ALONE.format("int failed() { return 1; }", "a"), ALONE.format("int failed() { return 2; }", "b"))


@pytest.mark.parametrize("text", ["static int refused() { return 1; }", "#define refused 1\n", "namespace n { const int refused = 2; }"])
def test_what_is_private_without_an_unnamed_namespace(tmp_path, text):
    assert not together(tmp_path, text, "int b() { return refused; }")


@pytest.mark.parametrize("said", ["x.refused", "x->refused()", "fairlead::refused()", "\"refused\"", "1; // refused", "1; /* refused */", "R\"(refused)\""])
def test_members_qualified_names_and_texts_are_not_looked_up(tmp_path, said):
    assert together(tmp_path, "namespace { int refused() { return 1; } }", f"auto b(X x) {{ return {said}; }}")


def test_a_function_that_others_see_may_be_called(tmp_path):
    assert together(tmp_path, "namespace fairlead { int shared() { return 1; } }", "namespace fairlead { int b() { return shared(); } }")


def test_a_header_of_the_one_declares_what_the_other_has_for_itself(tmp_path):
    header = [("node.h", "namespace fairlead { class Node; }")]
    assert not together(tmp_path, '#include "node.h"\n', "namespace fairlead { namespace { struct Node {}; } }", header)


def test_a_namespace_that_only_one_sees(tmp_path):
    header = [("fake.h", "namespace fairlead::testing { int a(); }")]
    assert not together(tmp_path, '#include "fake.h"\n', "namespace fairlead { using testing::HasSubstr; }", header)


def test_who_opens_a_namespace_goes_with_those_who_open_it(tmp_path):
    opens = "using namespace fairlead;\n"
    assert not together(tmp_path, opens + "int a;", "int b;")
    assert together(tmp_path, opens + "int a;", opens + "int b;")
    assert together(tmp_path, "using namespace std::chrono_literals;\nint a;", "int b;")


def test_no_more_than_most(tmp_path):
    paths = [tmp_path / f"{number}.cc" for number in range(10)]
    for path in paths:
        path.write_text(f"int {path.stem};")
    assert [len(batch) for batch in batches.batches(tmp_path, paths, 4)] == [4, 4, 2]
