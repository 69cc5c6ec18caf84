// A reporter for `node --test` that writes JUnit XML with the file of every test, which that of Node does only since version 24.
// Use: node --test --test-reporter=/path/to/node_junit.mjs --test-reporter-destination=report.xml
import { resolve } from "node:path";
import { inspect } from "node:util";

const LONGEST = 20_000; // characters of what a file printed on stderr

const plain = (text) =>
  String(text).replace(
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]/gu,
    (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
const escaped = (text) => plain(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const attribute = (text) =>
  `"${escaped(text).replaceAll('"', "&quot;").replaceAll("\n", "&#10;").replaceAll("\r", "&#13;").replaceAll("\t", "&#9;")}"`;

function failure(data, printed) {
  const error = data.details?.error;
  const cause = error?.cause ?? error;
  const reason = printed?.match(/^\w*Error\b.*/m)?.[0];
  const message = cause?.message ?? reason ?? cause ?? "failed";
  const text = [cause?.stack ?? inspect(cause), printed ?? ""].filter(Boolean).join("\n");
  return `<failure message=${attribute(message)}>${escaped(text)}</failure>`;
}

function testcase(data, suites, printed) {
  const file = data.file ? ` file=${attribute(data.file)}` : "";
  let inside = "";
  if (data.todo) inside = '<skipped type="todo"/>';
  else if (data.skip) inside = "<skipped/>";
  else if (data.failed) inside = failure(data, printed);
  const test = `<testcase classname="test" name=${attribute(data.name)}${file}>${inside}</testcase>`;
  return suites.reduceRight((made, name) => `<testsuite name=${attribute(name)}>${made}</testsuite>`, test);
}

export default async function* junit(source) {
  const names = []; // the names of the tests and suites that are open, by depth
  const parents = new Set(); // the depths at which something has tests inside
  const printed = new Map(); // what each file printed on stderr
  yield "<testsuites>\n";
  for await (const { type, data } of source) {
    if (type === "test:start") {
      names.length = data.nesting;
      names.push(data.name);
      if (data.nesting > 0) parents.add(data.nesting - 1);
    } else if (type === "test:stderr") {
      const file = data.file && resolve(data.file);
      const before = printed.get(file) ?? "";
      if (before.length < LONGEST) printed.set(file, (before + data.message).slice(0, LONGEST));
    } else if (type === "test:pass" || type === "test:fail") {
      const isParent = parents.delete(data.nesting) || data.details?.type === "suite";
      const failed = type === "test:fail";
      // What has tests inside is not a test. It counts only if it failed by itself, as with a hook.
      if (isParent && !(failed && data.details?.error?.failureType !== "subtestsFailed")) continue;
      // A file that cannot be loaded says why only on stderr.
      const isFile = data.file && resolve(data.name) === resolve(data.file);
      const about = isFile ? printed.get(resolve(data.file)) : undefined;
      yield `${testcase({ ...data, failed }, names.slice(0, data.nesting), about)}\n`;
    }
  }
  yield "</testsuites>\n";
}
