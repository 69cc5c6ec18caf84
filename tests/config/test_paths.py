"""Paths in a file are relative to its folder and stay in it, wherever links lead; what must exist does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import problems, read, step


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "schemas").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("x")
    (tmp_path / "project-of-others").mkdir()
    (folder / "prompt.md").write_text("do it")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    return folder


@pytest.mark.parametrize("path", ["prompt.md", "./prompt.md", "schemas/../prompt.md"])
def test_a_prompt_inside_the_folder_is_found(path: str, project: Path) -> None:
    file = read(step(agent="claude", prompt=path), project)
    assert (file.agents["a"].prompt, file.files) == ("do it", {"prompt.md": "do it"})


def test_an_absolute_path_inside_the_folder_is_fine(project: Path) -> None:
    assert problems(step(agent="claude", prompt=str(project / "prompt.md")), project) == []


@pytest.mark.parametrize("path", ["../secret.md", "link.md", "out/secret.md", "/etc/passwd", "schemas/../../secret.md"])
def test_a_prompt_outside_the_folder_is_refused(path: str, project: Path) -> None:
    said = f"5:13: steps.a.prompt: got {path!r}, which leaves the folder of this file: use a path inside it"
    assert problems(step(agent="claude", prompt=path), project) == [said]


@pytest.mark.parametrize("path", ["no.md", "schemas", "loop", "x" * 5000, "prompt.md/more"])
def test_a_prompt_that_is_no_file_is_refused(path: str, project: Path) -> None:
    (said,) = problems(step(agent="claude", prompt=path), project)
    assert said.startswith("5:13: steps.a.prompt: got ")
    assert said.endswith("which is not a file here: create it, or correct the path")


def test_a_workspace_stays_inside_and_need_not_exist_yet(project: Path) -> None:
    assert read(step(run="[x]", workspace="build/later"), project).steps["a"].workspace == project / "build/later"
    assert problems(step(run="[x]", workspace="../project-of-others"), project) == [
        "5:16: steps.a.workspace: got '../project-of-others', which leaves the folder of this file: use a path inside it"
    ]
    assert problems(step(run="[x]", workspace="prompt.md"), project) == [
        "5:16: steps.a.workspace: got 'prompt.md', which is not a folder: name a folder"
    ]


def test_a_report_stays_in_the_workspace(project: Path) -> None:
    judge = "name: w\nsteps:\n  a: {run: [x]}\n  t: {tests: a, run: [x], report: {kind: junit, path: ../x.xml}}\n"
    assert problems(judge, project) == [
        "4:55: steps.t.report.path: got '../x.xml', which leaves the workspace: use a path inside it"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"type": ', "is not JSON: Expecting value in line 1, column 10"),
        (b"\xff", "cannot be read: it is not UTF-8"),
        (b"[" * 100_000, "cannot be read as JSON: it is nested too deep"),
        (b'{"maximum": NaN}', "cannot be read as JSON: NaN is not a JSON number"),
        (b"[1]", "is not a JSON Schema: expected an object"),
        (b" " * (1024 * 1024 + 1), "has more than 1048576 bytes: use a smaller file"),
    ],
)
def test_a_schema_file_that_holds_none_is_refused(content: bytes, said: str, project: Path) -> None:
    (project / "schemas/x.json").write_bytes(content)
    assert problems(step(run="[x]", schema="schemas/x.json"), project) == [
        f"5:13: steps.a.schema: 'schemas/x.json' {said}"
    ]


def test_one_schema_for_several_inputs_is_refused(project: Path) -> None:
    (project / "schemas/x.json").write_text("{}")
    steps = "  p: {run: [x]}\n  q: {run: [x]}\n  a: {run: [x], needs: [p, q], accepts: schemas/x.json}\n"
    assert problems(f"name: w\nsteps:\n{steps}", project) == [
        "5:41: steps.a.accepts: is one schema, but the step needs 2 steps: give a schema by producer"
    ]


def test_an_input_that_is_not_needed_cannot_be_checked(project: Path) -> None:
    text = "name: w\nsteps:\n  plan: {run: [x]}\n  a: {run: [x], needs: plan, accepts: {pln: {}}}\n  b: {run: [x], accepts: {a: {}}}\n"
    assert problems(text, project) == [
        "4:40: steps.a.accepts.pln: the step does not need 'pln': did you mean 'plan'?",
        "5:27: steps.b.accepts.a: the step does not need 'a': add it to needs",
    ]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ('{"type": "objekt"}', "type: is not legal in a JSON Schema: 'objekt' is not one of"),
        ('{"maximum": 1e999}', "cannot be read as JSON: is not a finite number"),
        ('{"maximum": ' + "9" * 400 + "}", "cannot be read as JSON: is too large"),
        ('{"$ref": "other.json"}', "$ref: got 'other.json', which the schema does not contain"),
    ],
)
def test_a_schema_in_its_own_file_is_checked_at_load(project: Path, schema: str, problem: str) -> None:
    (project / "plan.json").write_text(schema)
    (said,) = problems(step(run="[x]", schema="plan.json"), project)
    assert said.startswith("5:13: steps.a.schema: 'plan.json'")
    assert problem in said


def test_a_schema_may_refer_to_itself(project: Path) -> None:
    (project / "plan.json").write_text('{"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}')
    assert problems(step(run="[x]", schema="plan.json"), project) == []
