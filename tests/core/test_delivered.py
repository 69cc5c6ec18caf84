"""Judged is delivered: a verdict counts only for the files that the run leaves behind."""

from __future__ import annotations

from typing import Any

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.model import Status
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.checks import Gate
from backedge.core.workflow.definition import Step
from backedge.core.workflow.limits import Limits
from tests.core.play import Play, Reply, Seen, failed, flow, grows, out, passed, seen, step

CODE = step("code", phase="code")
TEST = step("test", tests="code", tool=True)
REVIEW = step("review", reviews="code")
DOCS = step("docs", "code", phase="test")


def wrote(output: object, tree: str, *files: str) -> Seen:
    """An attempt that changed these files, and left all files with this digest."""
    return seen(out(output), tree=tree, files=files)


def judged(tree: str, **more: Any) -> Seen:
    return seen(passed(), tree=tree, **more)


def order(run: Play) -> list[str]:
    return [event.step for event in run.of(e.AttemptStarted)]


class TestTools:
    """A tool judges all files: its verdict counts only for the tree that it saw."""

    def test_a_tool_judges_again_when_a_later_step_changed_files(self) -> None:
        scripts = {"code": [wrote("c", "t1")], "docs": [wrote("d", "t2")], "test": [judged("t1"), judged("t2")]}
        run = Play(flow(CODE, TEST, DOCS), scripts).run()
        assert (run.outcome, order(run)) == ("verified", ["code", "test", "docs", "test"])
        assert run.of(e.VerdictsVoided) == [e.VerdictsVoided(run.now - 1, ("test",), "files changed since")]

    def test_it_does_not_judge_again_when_nothing_changed(self) -> None:
        scripts = {"code": [wrote("c", "t1")], "docs": [wrote("d", "t1")], "test": [judged("t1")]}
        assert order(Play(flow(CODE, TEST, DOCS), scripts).run()) == ["code", "test", "docs"]

    def test_what_it_finds_then_is_the_next_round(self) -> None:
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1"), wrote("cc", "t3")],
            "docs": [wrote("d", "t2"), wrote("dd", "t3")],
            "test": [judged("t1"), seen(failed("docs broke it"), tree="t2"), judged("t3")],
        }
        run = Play(flow(CODE, TEST, DOCS), scripts).run()
        assert (run.outcome, run.finding().status) == ("verified", Status.FIXED)
        assert order(run) == ["code", "test", "docs", "test", "code", "test", "docs"]

    def test_it_judges_again_at_most_once_in_a_round_and_then_a_person_is_asked(self) -> None:
        scripts = {"code": [wrote("c", "t1")], "test": [judged(f"t{n}", after=f"t{n + 1}") for n in range(1, 9)]}
        run = Play(flow(CODE, TEST), scripts).run()
        assert (run.outcome, run.attempts()["test"]) == ("waiting", 2)
        packet = run.s.escalations["E-1"]
        assert (packet.step, packet.reason) == (
            "test",
            "the delivered files are not those that 'test' judged: they changed again after it judged them once more",
        )
        assert run.s.attempts <= (max_attempts(run.workflow) or 0)

    def test_continue_lets_it_judge_again(self) -> None:
        moving = [judged("t1", after="t2"), judged("t2", after="t3"), judged("t3")]
        run = Play(flow(CODE, TEST), {"code": [wrote("c", "t1")], "test": moving}).run()
        assert run.decide("continue").run().outcome == "verified"
        assert run.attempts()["test"] == 3

    def test_skip_ends_the_run_accepted(self) -> None:
        moving = [judged(f"t{n}", after=f"t{n + 1}") for n in range(1, 9)]
        run = Play(flow(CODE, TEST), {"code": [wrote("c", "t1")], "test": moving}).run()
        assert run.decide("skip").run().outcome == "accepted"

    def test_a_round_allows_it_once_more(self) -> None:
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1"), wrote("cc", "t3")],
            "docs": [wrote("d", "t2"), wrote("dd", "t4")],
            "test": [judged("t1"), judged("t2"), judged("t3"), judged("t4")],
        }
        run = Play(flow(CODE, TEST, DOCS), scripts).run()
        assert run.person_raises("code").run().outcome == "verified"
        assert run.attempts() == {"code": 2, "test": 4, "docs": 2}

    def test_a_step_that_ended_while_it_judged_counts_as_later(self) -> None:
        """What the judge measured is older than what the other step reported."""
        run = Play(flow(CODE, TEST, step("docs")), {"test": [judged("t2")]})
        run.finish("code", wrote("c", "t1"))
        run.finish("docs", wrote("d", "t2"))
        run.finish("test", judged("t1"))
        assert run.of(e.EvidenceRecorded)[-1].evidence.after == "t2"
        run.run()
        assert (run.outcome, run.attempts()["test"]) == ("verified", 2)

    def test_a_verdict_that_was_not_measured_is_not_about_the_tree_of_an_earlier_one(self) -> None:
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1"), wrote("d", "t2")],
            "test": [seen(failed("x"), tree="t1"), passed()],
        }
        run = Play(flow(CODE, TEST), scripts).run()
        verdict = run.s.steps["test"].verdict
        assert verdict is not None and (verdict.tree, run.outcome, run.attempts()["test"]) == ("", "verified", 2)

    def test_files_of_another_workspace_do_not_count(self) -> None:
        other = seen(out("d"), workspace="api", tree="z")
        run = Play(flow(CODE, TEST, DOCS), {"code": [wrote("c", "t1")], "docs": [other], "test": [judged("t1")]}).run()
        assert order(run) == ["code", "test", "docs"]

    def test_a_tool_that_was_not_measured_does_not_judge_again(self) -> None:
        run = Play(flow(CODE, TEST, DOCS), {"code": [wrote("c", "t1")], "docs": [wrote("d", "t2")]}).run()
        assert order(run) == ["code", "test", "docs"]

    def test_an_accepted_verdict_stays(self) -> None:
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1")],
            "docs": [wrote("d", "t2")],
            "test": [seen(failed("x"), tree="t1")],
        }
        run = Play(flow(CODE, TEST, DOCS, limits=Limits(rounds_per_loop=0)), scripts).run()
        assert run.decide("accept").run().outcome == "accepted"
        assert order(run) == ["code", "test", "docs"]


class TestReviewers:
    """A reviewer judges the files that the steps under judgement changed."""

    def scripts(self, *files: str) -> dict[str, Any]:
        return {"code": [wrote("c", "t1", "cart.py", "README.md")], "docs": [wrote("d", "t2", *files)]}

    def test_a_reviewer_judges_again_when_a_later_step_changed_a_file_it_judged(self) -> None:
        run = Play(flow(CODE, REVIEW, DOCS), self.scripts("README.md", "guide.md")).run()
        assert (run.outcome, order(run)) == ("verified", ["code", "review", "docs", "review"])
        assert run.of(e.VerdictsVoided)[0].reason == "changed since: README.md"

    def test_it_does_not_judge_again_because_of_other_files(self) -> None:
        run = Play(flow(CODE, REVIEW, DOCS), self.scripts("guide.md")).run()
        assert (run.outcome, order(run)) == ("verified", ["code", "review", "docs"])

    def test_a_new_version_of_its_own_step_is_judged_anyway(self) -> None:
        scripts = {"code": [wrote("c", "t1", "cart.py"), wrote("d", "t2", "cart.py")]}
        run = Play(flow(CODE, REVIEW), scripts).run().person_raises("code").run()
        assert order(run) == ["code", "review", "code", "review"]

    def test_a_file_that_changes_while_it_judges_is_judged_again(self) -> None:
        run = Play(flow(CODE, REVIEW, step("docs")), {})
        run.finish("code", wrote("c", "t1", "cart.py"))
        run.finish("docs", wrote("d", "t2", "cart.py"))
        run.finish("review")
        run.run()
        assert (run.outcome, run.attempts()["review"]) == ("verified", 2)

    def test_a_broken_attempt_does_not_forget_what_changed(self) -> None:
        run = Play(
            flow(CODE, REVIEW, DOCS), {**self.scripts("README.md"), "review": [passed(), Exception("x"), passed()]}
        )
        run.run()
        assert (run.outcome, run.attempts()["review"]) == ("verified", 3)

    def test_the_question_to_a_person_names_the_files(self) -> None:
        """Two reviewers judge again at the same time, and one of them changes a file of the other."""
        proof, ship = step("proof", reviews="docs"), step("ship", "docs", phase="test")
        run = Play(flow(CODE, REVIEW, DOCS, proof, ship), {**self.scripts("guide.md")})
        for name in ("code", "review", "docs", "proof"):
            run.finish(name)
        run.finish("ship", wrote("s", "t3", "guide.md", "README.md"))
        assert run.of(e.VerdictsVoided)[0].judges == ("proof", "review")
        run.finish("review")
        run.finish("proof", seen(passed(), files=("README.md",)))
        assert run.s.escalations["E-1"].reason == "the delivered files are not those that 'review' judged: README.md"

    def test_no_more_than_twenty_files_are_named(self) -> None:
        many = [f"{number:02}.py" for number in range(30)]
        scripts = {"code": [wrote("c", "t1", *many)], "docs": [wrote("d", "t2", *many)]}
        run = Play(flow(CODE, REVIEW, DOCS), scripts).run()
        assert run.of(e.VerdictsVoided)[0].reason == f"changed since: {', '.join(many[:20])}"


class TestOtherSteps:
    """Only judges run again at the end, so that the bound holds."""

    def test_a_step_that_needs_the_judge_does_not_run_again(self) -> None:
        deploy = step("deploy", "test", phase="test")
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1")],
            "deploy": [wrote("d", "t2")],
            "test": [seen(passed(), tree="t1"), seen(type(passed())(out("other").made, verdict="pass"), tree="t2")],
        }
        run = Play(flow(CODE, TEST, deploy, limits={"rounds_total": 0, "errors_in_a_row": 1}), scripts).run()
        assert (run.outcome, order(run)) == ("verified", ["code", "test", "deploy", "test"])
        assert run.s.attempts == max_attempts(run.workflow)

    def test_a_judge_that_uses_the_result_judges_again_after_it(self) -> None:
        late = Step("late", judges=("code",), needs=("test",))
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1")],
            "docs": [wrote("d", "t2")],
            "test": [judged("t1"), judged("t2")],
        }
        run = Play(flow(CODE, TEST, late, DOCS), scripts).run()
        assert run.outcome == "verified"
        assert order(run)[-2:] == ["test", "late"]
        assert run.of(e.VerdictsVoided)[0].judges == ("test", "late")

    def test_a_gate_on_its_output_is_measured_again(self) -> None:
        gate = Gate("coverage", metric="test:/coverage", threshold=80)
        values: list[Reply] = [
            seen(type(passed())(out({"coverage": number}).made, verdict="pass"), tree=tree)
            for number, tree in ((90, "t1"), (70, "t2"), (90, "t3"))
        ]
        scripts: dict[str, Any] = {
            "code": [wrote("c", "t1"), wrote("cc", "t3")],
            "docs": [wrote("d", "t2"), wrote("dd", "t3")],
            "test": values,
        }
        run = Play(flow(CODE, TEST, DOCS, gates=(gate,)), scripts).run()
        assert [event.word for event in run.of(e.VerdictGiven) if event.judge == "coverage"][:2] == ["pass", "fail"]
        assert run.outcome == "verified"


def test_a_run_that_another_process_settles_judges_again_too() -> None:
    scripts = {"code": [wrote("c", "t1")], "test": [judged("t1", after="t2"), judged("t2")]}
    run = Play(flow(CODE, TEST), scripts, slots=1)
    run.finish("code")
    run.slots = 0
    run.finish("test")
    assert (run.outcome, len(run.of(e.VerdictsVoided))) == ("running", 1)
    run.slots = 1
    run.do(c.Proceed())
    assert run.run().outcome == "verified"


def test_a_run_without_evidence_is_as_before() -> None:
    run = Play(flow(CODE, TEST, REVIEW, DOCS), {"code": grows}).run()
    assert (run.outcome, run.s.trees, run.s.protected, run.of(e.EvidenceRecorded)) == ("verified", {}, {}, [])
