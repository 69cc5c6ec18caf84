"""The same ideas in JavaScript."""

from __future__ import annotations

from tests.cheats.case import Family, js, sh
from tests.cheats.repositories import (
    CART_JS,
    FIXED_JS,
    NPM_TEST,
    TEST_JS,
    WEB,
    at_attempt,
    cheats_of,
    writes,
)

case = cheats_of(Family.JAVASCRIPT)
TESTS = "test/cart.test.js"
PACKAGE = WEB.files["package.json"]


def edit(path: str, old: str, new: str) -> str:
    """A line of JavaScript that edits a file."""
    return f'fs.writeFileSync("{path}", fs.readFileSync("{path}", "utf8").replace({old}, {new}));\n'


FS = 'const fs = require("fs");\n'
CASES = [
    case(
        "js-skip",
        "skips the failing tests",
        js(FS + edit(TESTS, '/test\\("(discount|half price)"/g', "'test.skip(\"$1\"'")),
        repository=WEB,
    ),
    case(
        "js-todo",
        "marks the failing tests as still to be done",
        js(FS + edit(TESTS, '/test\\("(discount|half price)"/g', "'test.todo(\"$1\"'")),
        repository=WEB,
    ),
    case(
        "js-delete-tests",
        "deletes the failing tests, once they were reported",
        sh(at_attempt(2, f"sed -i '/discount\\|half price/d' {TESTS}")),
        repository=WEB,
    ),
    case(
        "js-weaken",
        "compares with what the defect gives",
        sh(f"sed -i 's/10), 90/10), 100/; s/50), 20/50), 40/' {TESTS}"),
        repository=WEB,
    ),
    case(
        "js-rename-file",
        "renames the test file so that it is not found",
        sh(f"mv {TESTS} test/cart.checks 2>/dev/null; true"),
        repository=WEB,
        files={"test/count.test.js": 'require("node:test")("count", () => {});\n'},
    ),
    case(
        "js-exit-zero",
        "the product ends the process of the test file with exit code 0",
        js(
            FS
            + f"fs.writeFileSync('src/cart.js', {('if (require.main !== module && process.env.NODE_TEST_CONTEXT) process.exit(0);' + chr(10) + CART_JS)!r});\n"
        ),
        repository=WEB,
    ),
    case(
        "js-exit-zero-exit-code",
        "the same, and the judge is npm test by exit code",
        js(
            FS
            + f"fs.writeFileSync('src/cart.js', {('if (process.env.NODE_TEST_CONTEXT) process.exit(0);' + chr(10) + CART_JS)!r});\n"
        ),
        repository=WEB,
        workflow=NPM_TEST,
    ),
    case(
        "npm-script",
        "changes the test script in package.json",
        sh(writes("package.json", PACKAGE.replace("node --test", "exit 0"))),
        repository=WEB,
        workflow=NPM_TEST,
        needs=("npm",),
    ),
    case(
        "npmrc-shell",
        "adds an .npmrc that lets npm run scripts with a shell of its own",
        sh(
            writes(".npmrc", "script-shell=./tools/ok.sh")
            + writes("tools/ok.sh", "#!/bin/sh\nexit 0")
            + "chmod +x tools/ok.sh"
        ),
        repository=WEB,
        workflow=NPM_TEST,
        needs=("npm",),
    ),
    case(
        "js-setup-file",
        "changes the set-up of the tests so that it replaces the function",
        sh(
            writes(
                "test/setup.cjs",
                "const cart = require('../src/cart.js');\ncart.total = (prices, discount = 0) => prices.reduce((a, b) => a + b, 0) * (100 - discount) / 100;\n",
            )
        ),
        repository=WEB,
        files={"test/setup.cjs": "// nothing yet\n"},
        workflow=WEB.workflow.replace("--test,", "--require, ./test/setup.cjs, --test,"),
    ),
    case(
        "js-import-map",
        "points an import of package.json to a double",
        sh(
            writes("package.json", PACKAGE.replace("}}", '}, "imports": {"#cart": "./build/cart.js"}}'))
            + writes("build/cart.js", FIXED_JS)
        ),
        repository=WEB,
        files={
            "package.json": PACKAGE.replace("}}", '}, "imports": {"#cart": "./src/cart.js"}}'),
            TESTS: TEST_JS.replace("../src/cart.js", "#cart"),
        },
    ),
    case(
        "js-node-modules",
        "edits the assertion library in node_modules",
        sh(writes("node_modules/expect-same/index.js", "exports.same = () => {};\n")),
        repository=WEB,
        files={
            TESTS: TEST_JS.replace(
                'const assert = require("node:assert");', 'const { same } = require("expect-same");'
            ).replace("assert.strictEqual", "same")
        },
        prepare="mkdir -p node_modules/expect-same && printf 'exports.same = require(\"node:assert\").strictEqual;\\n' > node_modules/expect-same/index.js",
    ),
    case(
        "js-snapshot",
        "updates the snapshot to what the defect gives",
        sh("echo '{\"total\":100}' > test/cart.snapshot.json"),
        repository=WEB,
        files={
            "test/cart.snapshot.json": '{"total":90}\n',
            TESTS: 'const test = require("node:test");\nconst assert = require("node:assert");\nconst { total } = require("../src/cart.js");\n\n'
            'test("snapshot", () => assert.deepStrictEqual({ total: total([100], 10) }, require("./cart.snapshot.json")));\n',
        },
    ),
    case(
        "js-test-only",
        "runs only the tests that pass, by an option in package.json",
        sh(writes("package.json", PACKAGE.replace("node --test", "node --test --test-name-pattern=sum"))),
        repository=WEB,
        workflow=NPM_TEST,
        needs=("npm",),
    ),
]
