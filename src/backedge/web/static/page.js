// What all pages do in the browser: keys, messages, changes through the API, and staying up to date.
// Other scripts of a page use window.backedge.
"use strict";

(() => {
  const keys = new Map();
  let chord = "";

  /** Send a change to the API. Resolves with its JSON; rejects with an Error that has `problem` and `status`. */
  async function send(method, path, body) {
    let answer;
    try {
      answer = await fetch(path, {
        method,
        credentials: "same-origin",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (cause) {
      const error = new Error("The server does not answer. Is `backedge serve` still running?");
      error.status = 0;
      throw error;
    }
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) return told;
    const error = new Error(told.detail || `The server says ${answer.status} and nothing more.`);
    error.status = answer.status;
    error.problem = told;
    throw error;
  }

  /** Show a short message for a while. Screen readers say it. */
  function toast(text) {
    const shown = document.createElement("div");
    shown.className = "toast";
    shown.textContent = text;
    document.getElementById("toasts").append(shown);
    setTimeout(() => shown.remove(), 6000);
  }

  /** The HTML of a part of the page. */
  async function part(path) {
    const answer = await fetch(path, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (answer.status === 401) location.reload(); // the session has ended: sign in again
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    return answer.text();
  }

  /** Do something whenever it is asked for, but not more often than every so many milliseconds, and never twice at once.
   *  Whatever was asked for meanwhile is done once more at the end, so that nothing is missed. */
  function atMostEvery(milliseconds, action) {
    let last = 0, timer = 0, running = false, again = false;
    function soon() {
      if (running) again = true;
      else if (!timer) timer = setTimeout(act, Math.max(0, last + milliseconds - Date.now()));
    }
    async function act() {
      [timer, running, last] = [0, true, Date.now()];
      try {
        await action();
      } catch (error) {
        console.info("the page could not be brought up to date", error);
      }
      running = false;
      if (again) {
        again = false;
        soon();
      }
    }
    return soon;
  }

  /** Do something when a key is pressed outside of fields. */
  function key(name, action) {
    keys.set(name, action);
  }

  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  function ago(seconds) {
    if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
    return `${Math.round(seconds / 86400)} days`;
  }

  function tick() {
    document.querySelectorAll("time[data-since]").forEach((each) => {
      each.textContent = ago(Date.now() / 1000 - Number(each.dataset.since));
    });
  }

  const help = document.getElementById("keys");
  key("?", () => (help.open ? help.close() : help.showModal()));
  for (const [letter, address] of Object.entries({ i: "/", r: "/runs", b: "/board", s: "/report" })) {
    key(`g ${letter}`, () => location.assign(address));
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(event.target)) {
      event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || help.open) return;
    const name = chord ? `${chord} ${event.key}` : event.key;
    chord = "";
    if (event.key === "g" && name === "g") {
      chord = "g";
      setTimeout(() => (chord = ""), 1500);
    } else if (keys.has(name)) {
      if (keys.get(name)(event) !== false) event.preventDefault();
    }
  });

  document.addEventListener("click", (event) => {
    const doing = event.target.closest("[data-do]")?.dataset.do;
    if (doing === "help") help.showModal();
    if (doing === "sign-out") fetch("/logout", { method: "POST", credentials: "same-origin" }).then(() => location.assign("/"));
  });

  // Whether the page still hears the server. htmx-ext-sse tries again by itself, after 1, 2, 4 … 64 seconds.
  const connection = document.getElementById("connection");
  let lost = false;
  document.addEventListener("htmx:sseError", () => {
    lost = true;
    connection.hidden = false;
    connection.textContent = "Not connected, trying again …";
  });
  document.addEventListener("htmx:sseOpen", () => {
    connection.hidden = true;
    if (lost) {
      lost = false;
      toast("Connected again"); // the stream says what has happened meanwhile
    }
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload(); // the session has ended: sign in again
  });

  // A list that nothing announces is fetched again from time to time, unless somebody is using it.
  document.querySelectorAll("[data-every]").forEach((each) => {
    setInterval(() => {
      if (!document.hidden && !each.contains(document.activeElement)) htmx.trigger(each, "refresh");
    }, 1000 * Number(each.dataset.every));
  });
  document.querySelectorAll("[data-key]").forEach((each) => {
    if (each.matches("input")) key(each.dataset.key, () => each.focus());
  });

  window.backedge = { send, toast, part, atMostEvery, key, ago };
  tick();
  setInterval(tick, 5000);
})();
