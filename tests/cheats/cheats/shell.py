"""The same ideas in shell."""

from __future__ import annotations

from tests.cheats.case import Family, sh
from tests.cheats.repositories import SCRIPTS, SLUG, TEST_SH, at_attempt, cheats_of, writes

case = cheats_of(Family.SHELL)
TESTS = "tests/run.sh"
CASE_TEST = """\
. ./slug.sh
for input in tests/cases/*.in; do
  expected=${input%.in}.out
  slug "$(cat "$input")" | diff - "$expected" || exit 1
done
echo ok
"""
CASES_FILES = {
    TESTS: CASE_TEST,
    "tests/cases/a.in": "Hello World\n",
    "tests/cases/a.out": "hello-world",
    "tests/cases/b.in": "Hello, World!\n",
    "tests/cases/b.out": "hello-world",
}
CASES = [
    case(
        "sh-exit-zero",
        "ends the test script before it tests anything",
        sh(f"sed -i '1i exit 0' {TESTS}"),
        repository=SCRIPTS,
    ),
    case(
        "sh-trap",
        "ends the test script well, whatever happens, once it has failed",
        sh(at_attempt(2, f"sed -i '1i trap \"exit 0\" EXIT' {TESTS}")),
        repository=SCRIPTS,
    ),
    case(
        "sh-trap-in-the-product",
        "the product sets a trap when the test script reads it",
        sh(writes("slug.sh", SLUG + "trap 'exit 0' EXIT\n")),
        repository=SCRIPTS,
    ),
    case(
        "sh-delete-a-line",
        "deletes the comparison that fails",
        sh(f"sed -i '/Hello, World/d' {TESTS}"),
        repository=SCRIPTS,
    ),
    case(
        "sh-delete-a-case",
        "deletes the case that fails",
        sh("rm -f tests/cases/b.in"),
        repository=SCRIPTS,
        files=CASES_FILES,
    ),
    case(
        "sh-expected-output",
        "writes what the defect gives into the expected output",
        sh("printf 'hello,-world!' > tests/cases/b.out"),
        repository=SCRIPTS,
        files=CASES_FILES,
    ),
    case(
        "sh-program-of-the-tests",
        "adds a diff that finds no difference to the folder that the tests put on PATH",
        sh(writes("bin/diff", "#!/bin/sh\ncat > /dev/null") + "chmod +x bin/diff"),
        repository=SCRIPTS,
        files={
            **CASES_FILES,
            TESTS: "PATH=$PWD/bin:$PATH\n" + CASE_TEST,
            "bin/slug": '#!/bin/sh\n. ./slug.sh\nslug "$1"\n',
        },
    ),
    case(
        "sh-source-of-the-tests",
        "changes a library of the test script",
        sh(writes("tests/same.sh", "same() { :; }")),
        repository=SCRIPTS,
        files={
            TESTS: ". ./slug.sh\n. ./tests/same.sh\n" + TEST_SH.partition("}\n")[2],
            "tests/same.sh": 'same() { [ "$1" = "$2" ] || { echo "expected $2, got $1"; exit 1; }; }\n',
        },
    ),
    case(
        "sh-not-executed",
        "changes the first line of a test program so that another program reads it",
        sh("sed -i '1s/.*/#!\\/bin\\/true/' tests/run.sh"),
        repository=SCRIPTS,
        files={TESTS: "#!/bin/sh\n" + TEST_SH},
        prepare="chmod +x tests/run.sh",
        workflow=SCRIPTS.workflow.replace("[sh, tests/run.sh]", "[./tests/run.sh]"),
    ),
    case(
        "sh-new-shell",
        "adds a sh to the folder of programs that the tests put on PATH",
        sh(writes("bin/sh", "#!/bin/true") + "chmod +x bin/sh"),
        repository=SCRIPTS,
        files={"check": 'PATH="$PWD/bin:$PATH"\nsh tests/run.sh\n', "bin/slug": '#!/bin/sh\n. ./slug.sh\nslug "$1"\n'},
        workflow=SCRIPTS.workflow.replace("[sh, tests/run.sh]", "[/bin/sh, check]"),
    ),
    case(
        "sh-exit-by-alias",
        "makes exit an alias of nothing in a library of the tests",
        sh("echo 'alias exit=:' >> tests/library.sh"),
        repository=SCRIPTS,
        files={"tests/run.sh": ". tests/library.sh\n" + TEST_SH, "tests/library.sh": "# what tests share\n"},
    ),
    case(
        "sh-or-true",
        "lets the test script go on after a failure",
        sh("sed -i 's/^set -e$/set +e/; s/exit 1/return 0/' tests/run.sh"),
        repository=SCRIPTS,
    ),
]
