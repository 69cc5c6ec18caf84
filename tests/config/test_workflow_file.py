"""A good file becomes a definition with its agents; every key of it arrives somewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from backedge.config import AgentSpec, ToolReport, WorkflowFile, WorkflowFileError, find, load
from backedge.config.schema import SCHEMA
from backedge.core.model import Kind, Severity
from backedge.core.prices import Price
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import PassRule, Repeat, Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.notify import Channel, Expiry
from backedge.core.workflow.routes import RouteRule
from tests.config.files import EXAMPLE, problems, read, step


def prompt(folder: Path, name: str = "prompts/code.md") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("do it")
    return folder / name


def test_the_example_of_the_design_loads(tmp_path: Path) -> None:
    path = tmp_path / "backedge.yaml"
    path.write_text(EXAMPLE)
    there = prompt(tmp_path)
    file = load(path)
    assert (file.path, file.folder, file.redact) == (path, tmp_path, ())
    assert file.definition.name == "user-management"
    assert [each.name for each in file.definition.steps] == ["plan", "design", "design_review", "code", "test"]
    assert file.definition.limits == Limits(rounds_per_loop=3, cost_usd=5.0)
    assert file.agents["plan"] == AgentSpec("plan", "command", run=("python", "agents/plan.py"))
    assert file.agents["code"] == AgentSpec("claude", "cli", cli="claude", prompt=there.read_text())
    assert file.steps["test"].report == ToolReport("junit")
    plan, _, review, _, test = file.definition.steps
    assert (plan.phase, plan.judges, plan.agents) == ("planning", (), ("plan",))
    assert (review.judges, review.tests, review.complete) == (("design",), False, False)
    assert (test.judges, test.tests, test.complete) == (("code",), True, True)


EVERYTHING = """\
name: everything
profile: asp
phases: [planning, code, test]
scope: any
limits: {cost_usd: 5, tokens: 1000000, attempts: 100, wall_clock: 2h, errors_in_a_row: 2, provider_wait: 3h, rounds_total: 8,
  recoveries_total: 4, rounds_per_loop: 2.0, rounds_per_pair: false, rounds_per_step: 3, same_finding: 2,
  failures_in_a_row: 5, no_change: 1, oscillation: 1, diverging: true, chain_depth: 2, response_timeout: 90}
routes:
  - {to: plan, category: architecture}
  - {to: code, keywords: [typo, "null pointer"]}
on_breach: skip
on_protected: ask
on_worse: rollback
on_error: restore
protects: {add: [golden/**], except: [package.json]}
room: copy
sandbox: "off"
baseline: false
stories: {folder: work/stories, worktree: true, create_pr: [gh, pr], on_breach: error, circuit_breaker: false}
new_findings: {medium: ask}
agreement: authority
authority: [code, plan]
kinds: {security_block: fix_request}
max_steps: 20.0
agents:
  coder: {cli: codex, model: gpt, prompt: prompts/code.md, session: fresh, allowed_tools: [Read], timeout: 5m,
    permission_mode: full, max_turns: 30, max_budget_usd: 1, env: {A: x, B: y}}
  own: {run: [./agent.sh, 3.10]}
  fun: {python: "agents.more:Coder.work"}
  boss: {human: true, prompt: prompts/code.md}
redact: [API_KEY]
roles: {security: [injection], legal: []}
notify:
  - {to: "${SLACK_URL}", on: [opened, decided], for: security, remind: [30m, 4h], quiet: "22:00-07:00", secret: HOOK}
  - {command: [notify-send, "{title}"]}
expire: {after: 24h, choice: skip, only: [low]}
prices: {gpt: {input: 1.25, cached_input: 0.125, output: 10}, gemini: {input: 0, output: 2}}
checks:
  units: {compare: ["plan:/units", "code:/units"], rule: subset, resolve: authority, authority: [plan], severity: low}
  fit: {compare: ["plan:/a", "code:/b"], compatible: {table: {x: [y, z]}}}
  fits: {compare: ["plan:/a", "code:/b"], rule: compatible, compatible: {run: [./fits, 1.50]}}
gates:
  coverage: {metric: "code:/coverage", at_least: 80, causes: "code:/why", requests: {code: more tests}, severity: blocker}
  size: {metric: {report: size.json, path: /total}, at_most: 3 MB, needs: code}
  grade: {metric: "code:/grade", equals: A}
  errors: {metric: "code:/errors", zero: true}
steps:
  plan: {phase: planning, plans: {judges: true}, agent: boss, schema: schemas/plan.json}
  code:
    phase: code
    needs: plan
    agents: [coder, own, fun, "python:m:f", claude]
    model: large
    env: {B: z}
    accepts: {plan: {type: object}}
    schema: {type: object, properties: {done: {type: boolean}}}
    reads: {plan: [/units, /api]}
    writes: [src/**]
    workspace: services/api
    idempotent: true
    approval: human
    group: building
    installs: true
    on_error: keep
    when: ["plan:/units", "plan:/api != none"]
    repeat: {until: "code:/score >= 90", max: 3, to: plan}
  review:
    reviews: [code, plan]
    needs: [plan]
    agent: gemini
    timeout: 90s
    passes_if: {critical: 0, high: 2.0}
    limits: {rounds_per_loop: 1, same_finding: false}
    complete: true
    for: [security, legal]
    on_worse: keep
    on_doubt: rerun
    accepts: {code: schemas/plan.json}
  lint: {reviews: code, run: [ruff], report: {kind: sarif, path: build/lint.sarif}, writes: [], accepts: schemas/plan.json,
    room: overlay, sandbox: bwrap, baseline: true, keeps: [lint.txt]}
  test: {tests: code, run: [pytest], report: exitcode, complete: false, reruns: 2, canary: true, hidden: true, passes_if: asp-code, timeout: 30}
"""


@pytest.fixture
def everything(tmp_path: Path) -> WorkflowFile:
    prompt(tmp_path)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/plan.json").write_text('{"type": "object", "required": ["units"]}')
    return read(EVERYTHING, tmp_path)


def test_every_key_at_the_top_arrives(everything: WorkflowFile) -> None:
    made = everything.definition
    assert (made.name, made.profile, made.phases, made.scope) == (
        "everything",
        "asp",
        ("planning", "code", "test"),
        "any",
    )
    assert (made.max_steps, [step.name for step in made.steps if step.plans_judges]) == (20, ["plan"])
    assert [step.name for step in made.steps if step.plans] == ["plan"]
    assert [step.name for step in made.steps if step.tool] == ["lint", "test"]
    assert made.limits == Limits(
        cost_usd=5.0,
        tokens=1_000_000,
        attempts=100,
        wall_clock=7200.0,
        errors_in_a_row=2,
        provider_wait=10_800.0,
        rounds_total=8,
        recoveries_total=4,
        rounds_per_loop=2,
        rounds_per_pair=None,
        rounds_per_step=3,
        same_finding=2,
        failures_in_a_row=5,
        no_change=1,
        oscillation=1,
        diverging=True,
        chain_depth=2,
        response_timeout=90.0,
    )
    assert made.routes == (
        RouteRule("plan", category=("architecture",)),
        RouteRule("code", keywords=("typo", "null pointer")),
    )
    assert made.on_breach == "skip"
    assert made.roles == (("security", ("injection",)), ("legal", ()))
    assert made.notify == (
        Channel("${SLACK_URL}", (), ("opened", "decided"), "security", (1800.0, 14_400.0), "22:00-07:00", "HOOK"),
        Channel("", ("notify-send", "{title}")),
    )
    assert made.expire == Expiry(86_400.0, "skip", (Severity.LOW,))
    assert {step.name: step.for_roles for step in made.steps if step.for_roles} == {"review": ("security", "legal")}
    assert made.on_protected == "ask"
    assert (made.on_worse, [(step.name, step.on_worse) for step in made.steps if step.on_worse]) == (
        "rollback",
        [("review", "keep")],
    )
    assert [made.policy_for(each) for each in Severity] == ["rework", "rework", "ask", "defer"]
    assert everything.redact == ("API_KEY",)
    assert everything.prices == {"gpt": Price(1.25, 10.0, 0.125), "gemini": Price(0.0, 2.0)}
    assert made.checks == (
        Check("units", ("plan:/units", "code:/units"), "subset", (), False, "authority", ("plan",), Severity.LOW),
        Check("fit", ("plan:/a", "code:/b"), "compatible", (("x", ("y", "z")),)),
        Check("fits", ("plan:/a", "code:/b"), "compatible", command=True),
    )
    assert everything.agents["fits"].run == ("./fits", "1.50")
    assert made.gates == (
        Gate(
            "coverage",
            "code:/coverage",
            threshold=80,
            causes="code:/why",
            requests=(("code", "more tests"),),
            severity=Severity.CRITICAL,
            blocking=True,
        ),
        Gate("size", report="size.json", path="/total", bound="at_most", threshold="3 MB", needs=("code",)),
        Gate("grade", "code:/grade", bound="equals", threshold="A"),
        Gate("errors", "code:/errors", bound="zero"),
    )


def test_every_key_of_a_step_arrives(everything: WorkflowFile) -> None:
    _, code, review, lint, test, last = everything.definition.steps
    assert (last.name, last.needs) == ("create_pr", ("plan", "code"))
    assert (code.phase, code.needs, code.checked, code.on_doubt) == ("code", ("plan",), True, "rerun")
    assert code.reads == (("plan", ("/units", "/api")),)
    assert (code.group, code.when) == ("building", ("plan:/units", "plan:/api != none"))
    assert code.repeat == Repeat(("code:/score >= 90",), 3, "plan")
    assert (review.judges, review.needs, review.complete, review.on_doubt) == (("code", "plan"), (), True, "rerun")
    assert review.passes_if == PassRule(at_most=(("critical", 0), ("high", 2)))
    assert review.limits is not None
    assert (review.limits.rounds_per_loop, review.limits.same_finding, review.limits.rounds_total) == (1, None, 8)
    assert (review.timeout, test.timeout, code.timeout) == (90.0, 30.0, None)
    assert (lint.complete, test.complete, test.passes_if) == (True, False, PassRule("asp-code"))
    extras = everything.steps
    assert extras["code"].accepts == {"plan": {"type": "object"}}
    assert extras["code"].schema == {"type": "object", "properties": {"done": {"type": "boolean"}}}
    assert extras["plan"].schema == {"type": "object", "required": ["units"]}
    assert extras["lint"].accepts == extras["review"].accepts == {"code": extras["plan"].schema}
    assert (extras["code"].writes, extras["lint"].writes, extras["test"].writes) == (("src/**",), (), None)
    assert extras["code"].workspace == everything.folder / "services/api"
    assert extras["plan"].workspace == everything.folder
    assert extras["lint"].report == ToolReport("sarif", "build/lint.sarif")
    assert extras["test"].report == ToolReport("exitcode")
    assert (extras["code"].installs, extras["lint"].installs) == (True, False)
    assert (extras["code"].on_error, extras["lint"].on_error, everything.evidence.on_error) == ("keep", None, "restore")
    lint_evidence, test_evidence = extras["lint"], extras["test"]
    assert (lint_evidence.room, lint_evidence.sandbox, lint_evidence.baseline) == ("overlay", "bwrap", True)
    assert (lint_evidence.keeps, test_evidence.keeps) == (("lint.txt",), ())
    assert (test_evidence.reruns, test_evidence.canary, lint_evidence.canary) == (2, True, False)
    assert (test.hidden, lint.hidden) == (True, False)


def test_every_key_of_an_agent_arrives_and_the_step_has_the_last_word(everything: WorkflowFile) -> None:
    code = everything.definition.steps[1]
    assert code.agents == ("code", "code#2", "code#3", "code#4", "code#5")
    coder, own, fun, inline, claude = (everything.agents[name] for name in code.agents)
    assert coder == AgentSpec(
        name="coder",
        kind="cli",
        cli="codex",
        model="large",
        prompt=(everything.folder / "prompts/code.md").read_text(),
        session="fresh",
        allowed_tools=("Read",),
        permission_mode="full",
        max_turns=30,
        max_budget_usd=1.0,
        timeout=300.0,
        env={"A": "x", "B": "z"},
    )
    assert own == AgentSpec("own", "command", run=("./agent.sh", "3.10"), env={"B": "z"})
    assert fun == AgentSpec("fun", "python", function="agents.more:Coder.work")
    assert inline == AgentSpec("python:m:f", "python", function="m:f")
    assert claude == AgentSpec("claude", "cli", cli="claude", model="large", env={"B": "z"})
    assert everything.agents["plan"].kind == "human"
    assert everything.agents["review"].timeout == 90.0


def test_everything_uses_every_key_there_is() -> None:
    def keys(schema: dict[str, object]) -> set[str]:
        properties = schema.get("properties", {})
        assert isinstance(properties, dict)
        return set(properties)

    top = SCHEMA["properties"]
    words = {word.strip(" {[-") for line in EVERYTHING.splitlines() for word in line.replace(",", ":").split(":")}
    for schema in (SCHEMA, top["limits"], top["agents"]["additionalProperties"], top["steps"]["additionalProperties"]):
        assert keys(schema) <= words


def test_a_definition_can_be_written_and_read_back(everything: WorkflowFile) -> None:
    text = msgspec.json.encode(everything.definition)
    assert msgspec.json.decode(text, type=Workflow) == everything.definition


def test_the_longest_patience_of_a_ladder_counts_when_all_rungs_have_one(tmp_path: Path) -> None:
    agents = "agents: {x: {run: [x], timeout: 10}, y: {run: [y], timeout: 1m}}\n"
    file = read(f"name: w\n{agents}steps: {{a: {{agents: [x, y]}}}}\n", tmp_path)
    assert file.definition.steps[0].timeout == 60.0
    assert [file.agents[name].timeout for name in ("a", "a#2")] == [10.0, 60.0]


def test_a_workflow_without_a_name_has_that_of_its_folder(tmp_path: Path) -> None:
    assert read("steps: {a: {run: [x]}}\n", tmp_path).definition.name == tmp_path.name


def test_an_agent_cli_can_be_redefined(tmp_path: Path) -> None:
    file = read("name: w\nagents: {claude: {run: [./stand-in]}}\nsteps: {a: {agent: claude}}\n", tmp_path)
    assert file.agents["a"].run == ("./stand-in",)


def test_a_python_agent_is_not_imported(tmp_path: Path) -> None:
    assert read(step(agent="python:no_such_module:f"), tmp_path).agents["a"].function == "no_such_module:f"


def test_a_file_without_names_of_its_own_takes_those_of_the_profile(tmp_path: Path) -> None:
    text = "name: w\nprofile: asp\nsteps: {d: {phase: design, run: [x]}, r: {reviews: d, run: [x]}}\n"
    assert read(text, tmp_path).definition.steps[1].passes_if == PassRule("asp-design")


def test_a_file_is_found_in_the_folder_or_above(tmp_path: Path) -> None:
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    (tmp_path / "backedge.yml").write_text(EXAMPLE)
    assert find(below) == tmp_path / "backedge.yml"
    (tmp_path / "backedge.yaml").write_text(EXAMPLE)
    assert find(below) == tmp_path / "backedge.yaml"
    (below / "backedge.yml").write_text(EXAMPLE)
    assert find(below) == below / "backedge.yml"


def test_a_missing_file_is_one_helpful_sentence(tmp_path: Path) -> None:
    sentence = f"no backedge.yaml in {tmp_path} or above: run `backedge init`"
    for act in (lambda: find(tmp_path), lambda: load(tmp_path / "backedge.yaml")):
        with pytest.raises(WorkflowFileError) as caught:
            act()
        assert str(caught.value) == sentence
    with pytest.raises(WorkflowFileError, match=r"other\.yaml does not exist: name a workflow file"):
        load(tmp_path / "other.yaml")
    with pytest.raises(WorkflowFileError, match="is not a file: name a workflow file"):
        load(tmp_path)


def test_problems_name_the_file_as_seen_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sub/backedge.yaml"
    path.parent.mkdir()
    path.write_text("nmae: w\nsteps: {a: {run: [x]}}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkflowFileError) as caught:
        load(path)
    assert str(caught.value) == "sub/backedge.yaml:1:1: nmae: unknown key: did you mean 'name'?"
    assert caught.value.located[0].line == 1


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "backedge.yaml"
    path.symlink_to(path)
    with pytest.raises(WorkflowFileError):
        load(path)


def test_importing_the_package_reads_no_yaml_library() -> None:
    code = "import sys, backedge.config; sys.exit('ruamel' in sys.modules or 'ruamel.yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_good_file_has_no_problems(tmp_path: Path) -> None:
    assert problems(step(run="[x]"), tmp_path) == []


def test_a_file_may_have_kinds_of_its_own(tmp_path: Path) -> None:
    file = read("name: w\nkinds: {security_block: fix_request}\nsteps: {a: {run: [x]}}\n", tmp_path)
    assert file.definition.kinds == (("security_block", Kind.FIX_REQUEST),)
    assert problems("name: w\nkinds: {fix_request: test_failure}\nsteps: {a: {run: [x]}}\n", tmp_path) == [
        "2:9: kinds.fix_request: kind 'fix_request' in kinds has the name of a built-in kind: choose another name"
    ]


COSTS = "limits: {cost_usd: 5}\nsteps:\n  a: {agent: codex, model: gpt-5-codex}\n"
PRICE = "prices: {gpt-5-codex: {input: 1.25, output: 10}}\n"


def test_a_cost_limit_that_nothing_can_reach_is_refused_and_the_agent_is_named(tmp_path: Path) -> None:
    tests = "  t: {tests: a, run: [pytest], report: exitcode}\n  h: {needs: a, agent: human}\n"
    for text in (COSTS, COSTS + tests):
        (told,) = problems(text, tmp_path)
        assert told == (
            "1:20: limits.cost_usd: nothing can reach it: codex reports tokens and no cost; add its price "
            "(`prices: {gpt-5-codex: {input: …, output: …}}`), or use limits.tokens"
        )


@pytest.mark.parametrize("more", [PRICE, PRICE.replace("gpt-5-codex", "codex")])
def test_a_price_lets_it_be_reached(more: str, tmp_path: Path) -> None:
    assert read(COSTS + more, tmp_path).warnings == ()
    assert read(COSTS.replace("{cost_usd: 5}", "{cost_usd: false}"), tmp_path).warnings == ()


def test_a_cost_limit_that_counts_only_some_agents_is_warned_of(tmp_path: Path) -> None:
    (told,) = read(COSTS + "  b: {agent: claude}\n  c: {agent: gemini, needs: b}\n", tmp_path).warnings
    assert "limits.cost_usd: does not count codex, gemini, which reports tokens and no cost: add its price" in told


@pytest.mark.parametrize(("top", "own"), [("on_worse: rollback\n", ""), ("", ", on_worse: rollback")])
def test_a_rollback_of_functions_restores_only_outputs(tmp_path: Path, top: str, own: str) -> None:
    text = f"name: w\n{top}steps:\n  code: {{agent: 'python:m:f'}}\n  review: {{reviews: code, run: [x]{own}}}\n"
    (told,) = read(text, tmp_path).warnings
    assert "a rollback restores only the output of code: it is not known which files a Python function changes" in told
    assert read(text.replace("rollback", "keep"), tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("channel", "warning"),
    [
        ("{to: slack://a/b/c}", "this address may have a secret in it"),
        ("{to: 'https://hooks.slack.com/services/T0/B0/XYZ'}", "this address may have a secret in it"),
        ("{to: ops@example.com}", "this address has no scheme"),
        ("{to: 'slack://${TOKENS}', secret: HOOK}", "slack:// messages are not signed"),
        ("{to: 'https://example.com/hook', secret: HOOK}", ""),
        ("{to: '${SLACK_URL}'}", ""),
        ("{command: [notify-send, '{title}']}", ""),
    ],
)
def test_an_address_that_is_probably_wrong_is_named(channel: str, warning: str, tmp_path: Path) -> None:
    (tmp_path / "backedge.yaml").write_text(f"steps: {{a: {{run: ['true'], writes: []}}}}\nnotify:\n  - {channel}\n")
    found = [each for each in load(tmp_path / "backedge.yaml").warnings if "notify" in each]
    assert [":3:" in each and warning in each for each in found] == ([True] if warning else [])
    assert "XYZ" not in "".join(found)


def test_an_address_that_needs_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backedge.config.notify.find_spec", lambda _: None)
    (tmp_path / "backedge.yaml").write_text("steps: {a: {run: ['true']}}\nnotify:\n  - {to: 'slack://${TOKENS}'}\n")
    assert any("pip install 'backedge[notify]'" in each for each in load(tmp_path / "backedge.yaml").warnings)
