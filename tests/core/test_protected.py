"""Changed tests and changed configuration of judges: somebody answers for what is in question, or the run is not verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed
from backedge.core.escalation.packet import packet as packet_of
from backedge.core.evidence.values import Approval, Baseline, Evidence, ProtectedChange, ProtectedQuestion, TestCounts
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Status
from backedge.core.workflow.definition import PassRule
from tests.core.play import (
    Finding,
    Kind,
    Limits,
    Outcome,
    Play,
    Reply,
    Script,
    Seen,
    failed,
    flow,
    grows,
    made,
    out,
    passed,
    planned,
    seen,
    step,
    texts,
)

FILE = "tests/test_cart.py"
CODE = step("code", phase="code")
TEST = step("test", tests="code", tool=True)
REVIEW = step("review", reviews="code")


def changes(*digests: str, file: str = FILE, **more: Any) -> list[Reply]:
    """Attempts of a producer that leave the test with these digests; an empty one is the version of the start."""
    return [
        seen(
            out(f"{file} {number}"),
            tree=f"tree {digest}",
            files=(file, "cart.py"),
            changes=(ProtectedChange(file, "changed", digest, lines="+1 -2", **more),) if digest else (),
        )
        for number, digest in enumerate(digests)
    ]


def asks(
    digest: str = "a",
    *,
    file: str = FILE,
    reason: str = "test_total no longer runs",
    reply: Outcome | None = None,
    red: bool = False,
) -> Seen:
    question = ProtectedQuestion(file, digest, reason, ("test_total",), red)
    return seen(reply or passed(), tree=f"tree {digest}", questions=(question,))


def judged(digest: str = "") -> Seen:
    """A pass of a tool judge that asks nothing."""
    return seen(passed(), tree=f"tree {digest}")


def answers(reply: Outcome, **by_id: Any) -> Outcome:
    approvals = tuple(Approval(id.replace("_", "-"), *said) for id, said in by_id.items())
    return Outcome(reply.made, verdict=reply.verdict, findings=reply.findings, approvals=approvals)


def play(
    *steps: Any, code: Script | Sequence[Reply], test: Sequence[Reply], review: Sequence[Reply] = (), **more: Any
) -> Play:
    scripts: dict[str, Any] = {"code": code, "test": test, "review": review, **more.pop("scripts", {})}
    return Play(flow(*(steps or (CODE, TEST)), **more), scripts).run()


def file_of(run: Play, file: str = FILE) -> Any:
    return run.s.protected[file]


class TestAPerson:
    """Without a reviewer, a person answers once, when everything else is done."""

    def test_is_asked_once_about_all_changes_in_question(self) -> None:
        both = (
            ProtectedChange(FILE, "changed", "a"),
            ProtectedChange("pytest.ini", "added", "b"),
            ProtectedChange("tests/test_new.py", "added", "c"),
        )
        questions = (
            ProtectedQuestion(FILE, "a", "test_total no longer runs"),
            ProtectedQuestion("pytest.ini", "b", "it is new"),
        )
        run = play(
            code=[seen(out("c"), tree="t", files=(FILE,), changes=both)],
            test=[seen(passed(), tree="t", questions=questions)],
        )
        assert (run.outcome, run.asked()) == ("waiting", ["E-1"])
        packet = run.s.escalations["E-1"]
        assert (packet.options, packet.protected, packet.loop, packet.step) == (
            ("approve", "reject", "cancel"),
            (1, 2),
            None,
            None,
        )
        assert packet.reason == (
            "protected files were changed: code changed tests/test_cart.py (test_total no longer runs); code added "
            "pytest.ini (it is new); approve counts the change, reject sends it back"
        )
        assert [
            (each.id, each.file, each.change, each.step, each.question) for each in packet_of(run.s, "E-1").changes
        ] == [
            ("P-1", FILE, "changed", "code", "test_total no longer runs"),
            ("P-2", "pytest.ini", "added", "code", "it is new"),
        ]

    def test_is_not_told_more_than_five_by_name(self) -> None:
        many = [f"tests/test_{number}.py" for number in range(7)]
        run = play(
            code=[seen(out("c"), tree="t", changes=tuple(ProtectedChange(each, "removed") for each in many))],
            test=[seen(passed(), tree="t", questions=tuple(ProtectedQuestion(each, "", "gone") for each in many))],
        )
        reason = run.s.escalations["E-1"].reason
        assert "code removed tests/test_4.py (gone) and 2 more; approve" in reason and "test_5" not in reason

    def test_who_approves_ends_the_run_verified(self) -> None:
        run = play(code=changes("a"), test=[asks()])
        run.decide("approve", by="ann", note="the rule changed").run()
        assert (run.outcome, file_of(run).approved) == ("verified", "ann")
        assert run.of(e.ProtectedAnswered) == [
            e.ProtectedAnswered(run.now, (1,), "approved", "ann", "the rule changed", person=True)
        ]
        assert run.attempts() == {"code": 1, "test": 1}

    def test_who_rejects_sends_a_finding_to_the_step_that_changed_the_file(self) -> None:
        run = play(code=changes("a", ""), test=[asks(), judged()])
        run.decide("reject").run()
        finding = run.finding().finding
        assert finding.description == f"the change of {FILE} is rejected: test_total no longer runs"
        assert (finding.severity, finding.category, finding.file, finding.evidence) == (
            "high",
            "evidence",
            FILE,
            "test_total",
        )
        assert (run.loop().routed_by, run.loop().targets, run.loop().state) == (
            "evidence",
            ("code",),
            LoopState.RESOLVED,
        )
        assert (run.outcome, run.s.protected, run.finding().status) == ("verified", {}, Status.FIXED)

    def test_the_note_of_a_rejection_is_the_finding(self) -> None:
        run = play(code=changes("a"), test=[asks()]).decide("reject", note="keep the total")
        assert run.finding().finding.description == f"the change of {FILE} is rejected: keep the total"

    def test_a_rejected_change_that_is_still_there_is_a_finding_whatever_the_judge_says(self) -> None:
        run = play(code=changes(*"aaaaaaa"), test=[asks(), asks(), judged("a")])
        run.decide("reject", by="ann").run()
        words = [event.word for event in run.of(e.VerdictGiven)]
        assert (words[:4], run.breach()) == (["pass", "fail", "fail", "fail"], "rounds_per_loop")
        assert file_of(run).rejected == "ann"
        assert [each.finding.description for each in run.s.findings.values()][1] == f"{FILE}: test_total no longer runs"

    def test_a_person_who_accepts_it_in_the_end_is_not_asked_again(self) -> None:
        run = play(code=changes("a"), test=[asks()], limits=Limits(rounds_per_loop=1))
        run.decide("reject").run().decide("accept").run()
        assert run.outcome == "accepted"

    def test_a_new_version_of_a_rejected_file_is_a_new_question(self) -> None:
        run = play(code=changes("a", "b"), test=[asks("a"), asks("b")])
        run.decide("reject").run()
        assert (run.outcome, run.s.escalations["E-2"].protected) == ("waiting", (2,))
        assert run.decide("approve").run().outcome == "verified"

    def test_the_question_is_withdrawn_when_the_files_change(self) -> None:
        run = play(code=changes("a", "b", ""), test=[asks("a"), asks("b"), judged()])
        run.person_raises("code").run()
        assert run.of(e.EscalationDecided)[0].note == "the files have changed since"
        with pytest.raises(AlreadyClosed, match="E-1 was withdrawn: the files have changed since"):
            run.decide("approve", "E-1")
        assert run.asked() == ["E-2"]

    def test_an_answer_while_the_step_works_counts_for_the_version_it_was_about(self) -> None:
        run = play(code=changes("a", "a"), test=[asks()])
        run.person_raises("code").decide("approve").run()
        assert run.outcome == "verified"

    def test_a_rejection_while_the_judge_is_due_is_reported_when_it_judges(self) -> None:
        run = play(code=changes("a", "a", ""), test=[asks(), judged("a"), judged()])
        run.person_raises("code")
        run.finish("code")
        run.decide("reject")
        assert not run.s.findings
        run.run()
        assert [event.word for event in run.of(e.VerdictGiven)] == ["pass", "fail", "pass"]
        assert run.outcome == "verified"


class TestAReviewer:
    """A reviewer is told what changed, and its verdict answers for it."""

    STEPS = (CODE, TEST, REVIEW)

    def test_is_told_every_change_with_its_question(self) -> None:
        run = play(
            CODE,
            TEST,
            step("review", "test", reviews="code"),
            code=changes("a"),
            test=[asks()],
            review=[passed()],
        )
        told = run.briefings["review"][0].changes
        assert [
            (each.id, each.file, each.change, each.step, each.lines, each.question, each.tests)
            for each in told.protected
        ] == [("P-1", FILE, "changed", "code", "+1 -2", "test_total no longer runs", ("test_total",))]
        assert told.files == (FILE, "cart.py")
        assert run.of(e.AttemptStarted)[-1].told == (1,)

    def test_approves_by_passing(self) -> None:
        run = play(*self.STEPS, code=changes("a"), test=[asks()], review=[passed()])
        assert (run.outcome, file_of(run).approved, run.opened()) == ("verified", "review", 0)

    @pytest.mark.parametrize("after", [(), ("test",)])
    def test_does_not_approve_what_hides_a_failure_of_the_start_by_passing(self, after: tuple[str, ...]) -> None:
        review = step("review", *after, reviews="code")
        run = play(CODE, TEST, review, code=changes("a"), test=[asks(red=True)], review=[passed()])
        assert (run.outcome, file_of(run).approved, run.s.escalations["E-1"].protected) == ("waiting", "", (1,))
        assert packet_of(run.s, "E-1").changes[0].passed_by == ("review",)
        run.decide("approve", by="ann")
        assert (run.run().outcome, file_of(run).approved) == ("verified", "ann")

    def test_is_named_only_if_its_pass_was_not_enough(self) -> None:
        run = play(CODE, TEST, code=changes("a"), test=[asks(red=True)])
        assert packet_of(run.s, "E-1").changes[0].passed_by == ()
        run = play(*self.STEPS, on_protected="ask", code=changes("a"), test=[asks()], review=[passed()])
        assert packet_of(run.s, "E-1").changes[0].passed_by == ()

    def test_that_passed_before_the_judge_asked_has_not_approved_it(self) -> None:
        test = step("test", "review", tests="code", tool=True)
        run = play(CODE, test, REVIEW, code=changes("a"), test=[asks(red=True)], review=[passed()])
        assert [each.status for each in run.of(e.ProtectedAnswered)] == ["approved"]
        assert (run.outcome, file_of(run).approved) == ("waiting", "")

    @pytest.mark.parametrize("trusted", [False, True])
    @pytest.mark.parametrize("reply", [passed(), answers(passed(), P_1=("approved",))])
    def test_that_a_planner_added_approves_only_if_planners_may_choose_judges(
        self, reply: Outcome, trusted: bool
    ) -> None:
        plan = step("plan", phase="planning", plans=True, plans_judges=trusted)
        run = play(
            *(plan, step("code", "plan", phase="code"), TEST),
            code=changes("a"),
            test=[asks()],
            review=[reply],
            scripts={"plan": [planned("p", step("review", "test", reviews="code"))]},
        )
        assert run.briefings["review"][0].changes.protected[0].id == "P-1"
        found = run.outcome, file_of(run).approved
        assert found == (("verified", "review") if trusted else ("waiting", ""))

    @pytest.mark.parametrize("first", [("test", "review"), ("review", "test")])
    def test_approves_what_hides_a_failure_by_its_id(self, first: tuple[str, str]) -> None:
        test = step("test", *(("review",) if first[0] == "review" else ()), tests="code", tool=True)
        review = step("review", *(("test",) if first[0] == "test" else ()), reviews="code")
        reply = answers(passed(), P_1=("approved",))
        run = play(CODE, test, review, code=changes("a"), test=[asks(red=True)], review=[reply])
        assert (run.outcome, file_of(run).approved, run.opened()) == ("verified", "review", 0)

    def test_approves_by_needs_improvement_too(self) -> None:
        reply = Outcome(made("r"), verdict="needs_improvement", summary="fine")
        assert file_of(play(*self.STEPS, code=changes("a"), test=[asks()], review=[reply])).approved == "review"

    def test_does_not_approve_by_failing(self) -> None:
        run = play(*self.STEPS, code=changes("a", "a"), test=[asks()], review=[failed("slow"), passed()])
        first, second = run.of(e.VerdictGiven)[:3], run.of(e.ProtectedAnswered)
        assert "fail" in [event.word for event in first]
        assert (len(second), second[0].by, run.outcome) == (1, "review", "verified")

    def test_answers_one_by_one_and_what_it_leaves_out_is_asked(self) -> None:
        both = (ProtectedChange(FILE, "changed", "a"), ProtectedChange("pytest.ini", "added", "a"))
        questions = tuple(ProtectedQuestion(each.file, "a", "it changed") for each in both)
        run = play(
            *self.STEPS,
            code=[seen(out("c"), tree="t", changes=both)],
            test=[seen(passed(), tree="t", questions=questions)],
            review=[answers(passed(), P_1=("approved",))],
        )
        assert (file_of(run).approved, file_of(run, "pytest.ini").approved) == ("review", "")
        assert run.s.escalations["E-1"].protected == (2,)

    def test_rejects_and_the_step_that_made_the_change_gets_the_finding(self) -> None:
        run = play(
            *self.STEPS,
            code=changes("a", ""),
            test=[asks(), judged()],
            review=[answers(failed(), P_1=("rejected", "the total is gone")), passed()],
        )
        assert texts(run.briefings["code"][1].feedback.findings) == [
            f"the change of {FILE} is rejected: the total is gone"
        ]
        assert (run.loop().routed_by, run.outcome) == ("evidence", "verified")

    def test_rejects_with_a_rule_and_without_a_verdict(self) -> None:
        rule = step("review", reviews="code", passes_if=PassRule("asp-code"))
        reject = Outcome(made("r"), approvals=(Approval("P-1", "rejected"),))
        run = play(CODE, TEST, rule, code=changes("a", ""), test=[asks(), judged()], review=[reject, passed()])
        assert [each.word for each in run.of(e.VerdictGiven) if each.judge == "review"] == ["fail", "pass"]

    def test_may_approve_later_what_it_rejected(self) -> None:
        run = play(
            *self.STEPS,
            code=changes("a", "a"),
            test=[judged("a")],
            review=[answers(failed(), P_1=("rejected",)), passed()],
        )
        assert (run.outcome, file_of(run).approved, file_of(run).rejected) == ("verified", "review", "")

    def test_who_forgets_what_it_rejected_leaves_it_to_a_person(self) -> None:
        both = (ProtectedChange(FILE, "changed", "a"), ProtectedChange("pytest.ini", "added", "a"))
        run = play(
            *self.STEPS,
            code=[seen(out(n), tree="t", changes=both) for n in range(3)],
            test=[seen(passed(), tree="t")],
            review=[answers(failed(), P_1=("rejected",)), answers(passed(), P_2=("approved",)), passed()],
        )
        assert run.s.escalations["E-1"].reason.startswith(
            f"protected files were changed: code changed {FILE} (rejected by review)"
        )
        run.decide("reject", by="ann")
        assert (run.loop("L-2").source, run.loop("L-2").targets) == ("review", ("code",))
        run.run()
        # What a person rejected is not for reviewers.
        assert run.briefings["review"][2].changes.protected == ()
        assert (run.outcome, run.s.escalations["E-2"].protected) == ("waiting", (1,))

    @pytest.mark.parametrize(
        ("reply", "problem"),
        [
            (
                answers(passed(), P_9=("approved",)),
                "approvals name 'P-9', which is not among the changes to review (P-1)",
            ),
            (answers(passed(), P_1=("rejected",)), "the verdict is pass, but P-1 is rejected: say fail"),
            (
                Outcome(made("r"), verdict="needs_improvement", approvals=(Approval("P-1", "rejected"),)),
                "the verdict is needs_improvement, but P-1 is rejected",
            ),
        ],
    )
    def test_who_contradicts_itself_is_asked_again(self, reply: Outcome, problem: str) -> None:
        run = play(*self.STEPS, code=changes("a"), test=[asks()], review=[reply, passed()])
        assert problem in run.of(e.AttemptFailed)[0].error
        assert run.outcome == "verified"

    def test_only_a_judge_that_was_told_may_answer(self) -> None:
        run = play(code=[answers(out("c"), P_1=("approved",)), out("c")], test=[judged()])
        assert (
            "approvals name 'P-1', which is not among the changes to review (none)" in run.of(e.AttemptFailed)[0].error
        )

    def test_approvals_in_an_answer_are_ignored_and_that_is_told(self) -> None:
        reply = Outcome(made(None), answer="so", approvals=(Approval("P-1", "approved"),))
        run = play(code=[*changes("a"), reply], test=[asks()]).person_raises("code", kind=Kind.CONTEXT_REQUEST).run()
        assert run.of(e.AttemptSucceeded)[-1].warning == "approvals: ignored, because mode answer does not ask for it"
        assert file_of(run).approved == ""

    def test_is_told_only_what_steps_before_it_changed(self) -> None:
        other = step("docs", phase="code")
        run = play(
            *self.STEPS,
            other,
            code=[seen(out("c"), tree="t", files=("cart.py",))],
            test=[seen(passed(), tree="u")],
            review=[passed()],
            scripts={"docs": changes("a")},
        )
        assert run.briefings["review"][0].changes.protected == ()
        assert run.briefings["review"][0].changes.files == ("cart.py",)

    def test_a_tool_is_not_told(self) -> None:
        run = play(code=changes("a"), test=[judged("a")])
        assert run.of(e.AttemptStarted)[-1].told == ()
        assert run.outcome == "verified"

    def test_a_judge_is_told_how_many_tests_there_are_and_what_was_noticed(self) -> None:
        counts = TestCounts(5, before=8)
        late = step("review", "test", reviews="code")
        noticed = Evidence(tree="t", notes=("a process was ended",))
        run = play(
            CODE,
            TEST,
            late,
            code=[Seen(out("c"), noticed)],
            test=[seen(passed(), tree="t", tests=counts)],
            review=[passed()],
        )
        told = run.briefings["review"][0].changes
        assert (told.tests, told.notes) == ({"test": counts}, ("a process was ended",))
        assert told and not run.briefings["code"][0].changes


class TestThePolicy:
    """`on_protected` says who may approve."""

    STEPS = (CODE, TEST, REVIEW)

    def test_ask_leaves_the_approval_to_people(self) -> None:
        run = play(*self.STEPS, code=changes("a"), test=[asks()], review=[passed()], on_protected="ask")
        assert (run.outcome, file_of(run).approved) == ("waiting", "")
        assert run.decide("approve").run().outcome == "verified"

    def test_ask_lets_a_reviewer_reject(self) -> None:
        reject = answers(failed(), P_1=("rejected",))
        run = play(
            *self.STEPS,
            code=changes("a", ""),
            test=[asks(), judged()],
            review=[reject, passed()],
            on_protected="ask",
        )
        assert (run.finding().status, run.outcome) == (Status.FIXED, "verified")

    def test_refuse_makes_a_finding_of_every_question(self) -> None:
        run = play(
            *self.STEPS, code=changes("a", ""), test=[asks(), judged()], review=[passed()], on_protected="refuse"
        )
        assert run.finding().finding.description == f"{FILE}: test_total no longer runs"
        assert (run.loop().routed_by, run.outcome, run.asked()) == ("evidence", "verified", [])

    def test_refuse_does_not_make_a_finding_of_what_a_step_owns(self) -> None:
        run = play(code=changes("a", owned=True), test=[asks()], on_protected="refuse")
        assert (run.outcome, run.opened()) == ("verified", 0)

    def test_a_finding_about_something_that_no_step_changed_goes_to_the_step_under_judgement(self) -> None:
        environment = asks("e", file=".venv", reason="it is not that of the start")
        run = play(code=[out("c"), out("d")], test=[environment, judged("e")], on_protected="refuse")
        assert (run.loop().routed_by, run.loop().targets, run.outcome) == ("subject", ("code",), "verified")


class TestWhatNeedsNoAnswer:
    def test_a_change_that_no_judge_asks_about_is_only_shown(self) -> None:
        run = play(code=changes("a"), test=[judged("a")])
        assert (run.outcome, file_of(run).approved) == ("verified", "")

    def test_a_change_by_the_step_that_owns_the_file(self) -> None:
        run = play(code=changes("a", owned=True), test=[asks()])
        assert (run.outcome, file_of(run).approved) == ("verified", "code")

    def test_a_file_that_is_again_as_it_was(self) -> None:
        run = play(code=changes("a", ""), test=[asks(reply=failed("slow")), judged()])
        assert (run.outcome, run.s.protected) == ("verified", {})

    def test_a_question_that_its_judge_takes_back(self) -> None:
        run = play(code=changes("a", "a"), test=[asks(reply=failed("slow")), judged("a")])
        assert (run.outcome, file_of(run).question) == ("verified", "")

    def test_an_approved_version_that_comes_back_unchanged(self) -> None:
        run = play(code=changes("a", "a"), test=[asks()])
        run.decide("approve").run().person_raises("code").run()
        assert (run.outcome, file_of(run).name) == ("verified", "P-1")

    def test_a_change_that_was_not_measured_leaves_what_is_known(self) -> None:
        run = play(code=[*changes("a"), out("c")], test=[asks(reply=failed("slow")), asks()])
        assert (run.outcome, file_of(run).question) == ("waiting", "test_total no longer runs")


class TestTwoJudges:
    def test_both_may_ask_about_one_file_and_each_takes_back_its_own_question(self) -> None:
        lint = step("lint", reviews="code", tool=True)
        run = play(
            CODE,
            TEST,
            lint,
            code=changes("a", "a"),
            test=[asks(reply=failed("slow")), asks()],
            scripts={"lint": [asks(reason="a rule is gone"), judged("a")]},
        )
        assert run.s.escalations["E-1"].reason.startswith(
            f"protected files were changed: code changed {FILE} (test_total no longer runs);"
        )

    def test_their_reasons_are_told_together(self) -> None:
        lint = step("lint", reviews="code", tool=True)
        run = play(
            CODE, TEST, lint, code=changes("a"), test=[asks()], scripts={"lint": [asks(reason="a rule is gone")]}
        )
        assert set(file_of(run).question.split("; ")) == {"test_total no longer runs", "a rule is gone"}
        assert file_of(run).tests == ("test_total",)

    def test_the_same_path_in_two_workspaces_is_two_files(self) -> None:
        other = step("api", phase="code")
        there = (ProtectedChange(FILE, "changed", "z"),)
        run = play(
            CODE,
            TEST,
            other,
            code=changes("a"),
            test=[asks()],
            scripts={"api": [seen(out("a"), workspace="api", tree="t", changes=there)]},
        )
        assert sorted(run.s.protected) == [f"api/{FILE}", FILE]
        assert run.s.escalations["E-1"].protected == (file_of(run).id,)


class TestTheEnvironment:
    """What a judge runs with is a file too: its digest is a fingerprint, and only judges notice its change."""

    @staticmethod
    def moved(digest: str = "e") -> Seen:
        question = ProtectedQuestion(".venv", digest, "it is not that of the start")
        return seen(passed(), tree="tree a", environment="changed", questions=(question,))

    def test_it_needs_an_answer_like_a_file(self) -> None:
        run = play(code=changes("a"), test=[self.moved()])
        assert run.s.escalations["E-1"].reason.startswith(
            "protected files were changed: .venv (it is not that of the start)"
        )
        assert run.decide("approve").run().outcome == "verified"

    def test_a_later_step_does_not_answer_for_it(self) -> None:
        docs = step("docs", "test", phase="test")
        run = play(
            CODE, TEST, docs, code=changes("a"), test=[self.moved()], scripts={"docs": [seen(out("d"), tree="tree a")]}
        )
        assert (run.outcome, run.s.escalations["E-1"].protected) == ("waiting", (2,))

    def test_it_is_gone_when_the_judge_no_longer_asks(self) -> None:
        run = play(code=[out("c"), out("d")], test=[self.moved(), judged("a")]).decide("reject").run()
        assert (run.outcome, run.s.protected) == ("verified", {})

    def test_a_rejected_one_that_is_still_there_is_a_finding(self) -> None:
        run = play(code=grows, test=[self.moved()]).decide("reject").run()
        assert [event.word for event in run.of(e.VerdictGiven)][:3] == ["pass", "fail", "fail"]
        assert run.breach() == "rounds_per_loop"

    def test_an_approved_one_stays_approved(self) -> None:
        run = play(code=grows, test=[self.moved(), judged("a"), self.moved()]).decide("approve").run()
        run.person_raises("code").run().person_raises("code").run()
        assert run.outcome == "verified"
        assert file_of(run, ".venv").approved == "a person"

    def test_a_file_that_differs_from_what_the_step_left_is_a_change_that_a_judge_noticed(self) -> None:
        run = play(code=changes("a"), test=[asks("b")])
        assert (file_of(run).digest, file_of(run).step, file_of(run).attempt) == ("b", "code", 0)
        assert run.s.escalations["E-1"].protected == (2,)


class TestNoJudgeIsLeft:
    PLAN = step("plan", phase="planning", plans=True, plans_judges=True)

    def rejected(self, *remove: str) -> Play:
        """A judge asks, is removed, and a person rejects the change then."""
        code = step("code", "plan", phase="code")
        scripts: dict[str, Any] = {
            "plan": [out("p"), planned("q", remove=remove)],
            "code": changes("a", "a", ""),
            "test": [asks()],
        }
        run = Play(flow(self.PLAN, code, TEST), scripts).run()
        return run.person_raises("plan").run().decide("resolve", "E-2", note="yes").run().decide("reject", "E-1").run()

    def test_a_person_asks_the_step_to_undo_it(self) -> None:
        run = self.rejected("test")
        request = run.briefings["code"][-1].feedback.requests[0]
        assert request.message == (
            f"the change of {FILE} is rejected: test_total no longer runs; restore {FILE} as it was, and fix the code instead"
        )
        assert run.s.protected == {}

    def test_a_change_by_a_step_that_is_gone_stays_a_question(self) -> None:
        run = self.rejected("test", "code")
        assert (run.outcome, [each.protected for each in run.s.escalations.values()]) == ("waiting", [(1,)])


def test_a_broken_attempt_of_a_judge_asks_nothing() -> None:
    question = ProtectedQuestion(FILE, "a", "gone")
    run = play(code=changes("a"), test=[seen(Exception("broke"), tree="tree a", questions=(question,)), judged("a")])
    assert (run.outcome, file_of(run).question) == ("verified", "")


def test_a_broken_attempt_of_a_producer_leaves_its_changes() -> None:
    broken = seen(Exception("broke"), tree="tree a", changes=(ProtectedChange(FILE, "removed"),), files=(FILE,))
    run = play(code=[broken, out("c")], test=[judged("a")])
    assert (file_of(run).step, file_of(run).attempt, file_of(run).change) == ("code", 1, "removed")


def test_a_finding_that_blames_a_step_goes_there_before_every_other_rule() -> None:
    docs = step("docs", phase="planning")
    blamed = Finding("test_total is gone", blames="docs", affected_phase=("code",))
    run = play(docs, step("code", "docs", phase="code"), TEST, code=grows, test=[failed(blamed), passed()])
    assert (run.loop().targets, run.loop().routed_by) == (("docs",), "evidence")


@pytest.mark.parametrize("blames", ["nobody", "test"])
def test_a_finding_that_blames_a_judge_or_nobody_goes_where_the_other_rules_say(blames: str) -> None:
    run = play(code=grows, test=[failed(Finding("gone", blames=blames)), passed()])
    assert run.loop().routed_by == "subject"


def test_the_base_of_the_tests_is_recorded_with_the_start() -> None:
    run = Play(flow(CODE, TEST), {"code": [out("a")], "test": [passed()]}, start=False)
    baseline = Baseline("test", TestCounts(8), start="digest")
    run.do(c.StartRun("r", run.workflow, baselines=(baseline,)))
    assert run.s.baselines == {"test": baseline}
    run.run()
    assert [run.briefings[name][0].start for name in ("code", "test")] == ["", "digest"]


def test_an_approval_in_one_workspace_is_none_for_the_same_file_of_another() -> None:
    """Two branches with a workspace each: every tool judge is told paths that say which file is meant."""
    change = (ProtectedChange(FILE, "changed", "a"),)
    run = play(
        step("code", phase="code"),
        step("other", "code", phase="code"),
        step("test", tests="other", tool=True),
        code=[seen(out("c"), workspace="one", tree="t", changes=(ProtectedChange(FILE, "changed", "a", owned=True),))],
        test=[seen(passed(), workspace="two", tree="u")],
        scripts={"other": [seen(out("o"), workspace="two", tree="u", changes=change)]},
    )
    assert run.s.protected["one/" + FILE].approved == "code"
    assert run.s.protected["two/" + FILE].approved == ""
    assert run.briefings["test"][0].approved == (("one/" + FILE, "a"),)
