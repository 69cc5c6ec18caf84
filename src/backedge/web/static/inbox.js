// The inbox in the browser: one key for each choice, five seconds to undo, and new questions without losing what was typed.
//
// A choice is sent five seconds after it was made, or at once with `s`. Leaving the page before that cancels it:
// nothing is sent.
"use strict";

(() => {
  const UNDO_SECONDS = 5;
  const { send, toast, key } = window.backedge;
  const inbox = document.getElementById("inbox");
  const pending = new Map(); // the question's key → {timer, form, left}
  let current = null;

  const cards = () => [...inbox.querySelectorAll(".question")];
  const cardOf = (name) => cards().find((each) => each.dataset.key === name);
  const fieldsOf = (form) => form.querySelector(".fields");

  // Where one is.

  function select(card, focus = true) {
    if (!card) return;
    current = card.dataset.key;
    cards().forEach((each) => each.classList.toggle("now", each === card));
    inbox.querySelectorAll(".queue li").forEach((each) => {
      const now = each.dataset.key === current;
      each.classList.toggle("now", now);
      each.querySelector("a").toggleAttribute("aria-current", now);
      if (now) showInList(each);
    });
    if (focus) {
      card.focus({ preventScroll: true });
      card.scrollIntoView({ block: "start" });
    }
  }

  // Not scrollIntoView: that could also move the page, under the mouse.
  function showInList(row) {
    const list = row.parentElement;
    if (row.offsetTop < list.scrollTop) list.scrollTop = row.offsetTop;
    const below = row.offsetTop + row.offsetHeight - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  }

  // The choices as a row of buttons at the lower edge, until one sees them in full.
  const inView = new IntersectionObserver((seen) =>
    seen.forEach((each) => each.target.closest(".question").classList.toggle("choosing", each.isIntersecting)), { rootMargin: "0px 0px -120px" });
  function watchChoices() {
    inView.disconnect();
    cards().forEach((card) => inView.observe(card.querySelector(".choices")));
  }

  function move(by) {
    const all = cards();
    const at = all.findIndex((each) => each.dataset.key === current);
    select(all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))]);
  }

  const here = () => cardOf(current) || cards()[0];

  // Choosing.

  function choose(form) {
    const card = form.closest(".question");
    if (card.dataset.state !== "open" || form.querySelector("button").disabled) return;
    select(card, false);
    const need = form.dataset.required;
    const field = need && form.elements[need];
    if (field && !field.value.trim()) {
      field.focus();
      field.setAttribute("aria-invalid", "true");
      return;
    }
    if (form.dataset.asks && !form.dataset.asked && !form.elements.note.value.trim()) {
      form.dataset.asked = "yes"; // a second press sends it without a note
      open(form);
      form.elements.note.focus();
      return;
    }
    hold(card, form);
  }

  function open(form, wanted = true) {
    const fields = fieldsOf(form);
    if (!fields) return;
    fields.hidden = !wanted;
    form.querySelector("[data-do=fields]")?.setAttribute("aria-expanded", String(wanted));
  }

  function answerOf(form) {
    const body = { choice: form.dataset.choice };
    if (form.dataset.option) body.option = form.dataset.option;
    for (const field of form.elements) {
      const value = field.name && field.value.trim();
      if (!value) continue;
      body[field.name] = field.type === "number" ? Number(field.value) : value;
    }
    return body;
  }

  function hold(card, form) {
    const name = card.dataset.key;
    card.dataset.state = "pending";
    const label = form.querySelector("button").textContent.trim();
    const wait = { form, left: UNDO_SECONDS, body: answerOf(form) };
    pending.set(name, wait);
    const bar = told(card, "");
    bar.removeAttribute("role"); // a screen reader is told once, by the toast, and not every second
    const text = element("span", "");
    const progress = element("progress");
    progress.max = UNDO_SECONDS;
    progress.setAttribute("aria-hidden", "true");
    bar.append(text, progress, button("Undo", "u", () => undo(card)), button("Send now", "s", () => deliver(card)));
    const show = () => {
      text.replaceChildren(element("b", label), ` is sent in ${wait.left} s. Leaving the page cancels it.`);
      progress.value = wait.left;
    };
    show();
    wait.timer = setInterval(() => {
      wait.left -= 1;
      if (wait.left <= 0) deliver(card);
      else show();
    }, 1000);
    bar.scrollIntoView({ block: "nearest" });
    card.focus({ preventScroll: true });
    toast(`${label}: press u to undo`);
  }

  function undo(card) {
    const wait = pending.get(card?.dataset.key);
    if (!wait) return;
    clearInterval(wait.timer);
    pending.delete(card.dataset.key);
    card.dataset.state = "open";
    told(card, "").hidden = true;
    toast("Nothing was sent");
    if (card.dataset.stale) refetch();
  }

  async function deliver(card) {
    const wait = pending.get(card?.dataset.key);
    if (!wait) return;
    clearInterval(wait.timer);
    pending.delete(card.dataset.key);
    card.dataset.state = "sending";
    told(card, "").append("Sending …");
    try {
      const decided = await send("POST", card.dataset.address, wait.body);
      await settled(card, "right", `Decided: ${decided.choice}.`);
    } catch (error) {
      await refused(card, error, wait.body);
    }
    if (card.dataset.state === "decided") {
      const next = cards().find((each) => each.dataset.state === "open");
      if (next && card.dataset.key === current) select(next, false);
    }
  }

  async function refused(card, error, body) {
    const first = error.problem?.decision;
    if (error.status === 409 && first) {
      const who = first.by || "somebody";
      const word = first.option || first.choice;
      const note = first.note ? ` “${first.note}”` : "";
      const same = first.choice === body.choice ? "" : ` Your choice, ${body.choice}, was not recorded.`;
      await settled(card, "wrong", `${who} was first and chose ${word}.${note}${same}`);
      return;
    }
    card.dataset.state = "open";
    const bar = told(card, "wrong");
    bar.append(`Not recorded. ${error.message}`);
    bar.focus();
  }

  /** Show what was decided, and what it led to, as long as the page is open. */
  async function settled(card, kind, text) {
    card.dataset.state = "decided";
    const bar = told(card, kind);
    bar.append(element("b", text));
    const events = element("div", "");
    bar.append(events);
    const look = async () => {
      const html = await window.backedge.part(card.dataset.followed).catch(() => null);
      if (html) htmx.swap(events, html, { swapStyle: "innerHTML" });
    };
    card.addEventListener("look", look);
    await look();
    count();
  }

  function told(card, kind) {
    const bar = card.querySelector(".asking");
    bar.className = `asking ${kind}`;
    bar.hidden = false;
    bar.tabIndex = -1;
    bar.setAttribute("role", "status");
    bar.replaceChildren();
    return bar;
  }

  function element(name, text) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    return made;
  }

  function button(text, shortcut, action) {
    const made = element("button", text);
    made.type = "button";
    made.append(" ", element("kbd", shortcut));
    made.addEventListener("click", action);
    return made;
  }

  // Staying up to date: cards that did not change stay as they are, with what was typed into them.

  const live = document.getElementById("inbox-live");
  const refetch = window.backedge.atMostEvery(300, async () => merge(await window.backedge.part(live.dataset.part)));

  const touched = (card) =>
    card.dataset.state !== "open" ||
    card.contains(document.activeElement?.closest("input, textarea, select")) ||
    [...card.querySelectorAll("textarea, select")].some((each) => each.value);

  function merge(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const arrived = new Map([...fresh.content.querySelectorAll(".question")].map((each) => [each.dataset.key, each]));
    const held = cards().filter((each) => arrived.has(each.dataset.key) || touched(each));
    cards().forEach((card) => {
      card.dispatchEvent(new Event("look"));
      if (!arrived.has(card.dataset.key) && card.dataset.state === "pending") undoFor(card);
      if (!arrived.has(card.dataset.key) && card.dataset.state === "open" && touched(card)) gone(card);
    });
    if (!arrived.size && !held.length) {
      inbox.replaceChildren(fresh.content);
      count();
      return;
    }
    const layout = fresh.content.querySelector(".inbox");
    if (!inbox.querySelector(".inbox")) {
      inbox.replaceChildren(fresh.content);
      count();
      if (cards()[0]) select(cards()[0], false);
      return;
    }
    if (layout) {
      inbox.querySelector(".queue").replaceChildren(...layout.querySelector(".queue").children);
      inbox.querySelector(".inbox").dataset.count = layout.dataset.count;
    } else {
      inbox.querySelector(".queue").replaceChildren();
      inbox.querySelector(".inbox").dataset.count = "0";
    }
    const place = inbox.querySelector(".questions");
    const before = new Map(cards().map((each) => [each.dataset.key, each]));
    const kept = [...before.values()].filter((each) => !arrived.has(each.dataset.key) && touched(each));
    const focused = document.activeElement;
    let news = 0;
    const order = [...arrived].map(([name, card]) => {
      const old = before.get(name);
      if (old && old.dataset.mark === card.dataset.mark) return old;
      if (old && touched(old)) {
        old.dataset.stale = "yes";
        if (old.dataset.state === "open" && !old.querySelector(".asking.changed")) changed(old);
        return old;
      }
      if (old) {
        old.querySelectorAll("details").forEach((each, at) => {
          const same = card.querySelectorAll("details")[at];
          if (same) same.open = each.open;
        });
      } else {
        card.classList.add("new");
        news += 1;
      }
      return card;
    });
    const rest = [...place.children].filter((each) => !each.matches(".question"));
    rest.forEach((each) => each.remove());
    const wanted = [...kept, ...order];
    cards().filter((each) => !wanted.includes(each)).forEach((each) => each.remove());
    wanted.forEach((card, at) => {
      if (place.children[at] !== card) place.insertBefore(card, place.children[at] || null); // one that has the focus is rarely moved
    });
    place.append(...(layout?.querySelectorAll(".questions > :not(.question)") || []));
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
    if (news) toast(news === 1 ? "A new question" : `${news} new questions`);
    if (!cardOf(current) && cards()[0]) current = cards()[0].dataset.key;
    select(cardOf(current), false);
    count();
  }

  function changed(card) {
    const bar = told(card, "changed");
    bar.append("This question has changed since you began to answer it. ", button("Show the new one", "", () => {
      card.querySelectorAll("textarea, select").forEach((each) => (each.value = ""));
      document.activeElement?.blur();
      delete card.dataset.mark;
      refetch();
    }));
  }

  function undoFor(card) {
    clearInterval(pending.get(card.dataset.key).timer);
    pending.delete(card.dataset.key);
    gone(card);
  }

  /** Somebody else decided a question that one was answering. */
  async function gone(card) {
    await settled(card, "wrong", "This question was decided while you were answering it. Nothing of yours was sent.");
  }

  function count() {
    watchChoices();
    const layout = inbox.querySelector("[data-count]");
    const open = Number(layout?.dataset.count || 0);
    document.title = `${open ? `(${open}) ` : ""}Inbox · backedge`;
    const words = document.getElementById("waiting");
    const oldest = Math.min(...[...inbox.querySelectorAll(".queue time")].map((each) => Number(each.dataset.since)));
    words.textContent = open
      ? `${open} ${open === 1 ? "question waits" : "questions wait"}, the oldest for ${window.backedge.ago(Date.now() / 1000 - oldest)}`
      : "nothing waits";
  }

  // Events.

  inbox.addEventListener("submit", (event) => {
    event.preventDefault();
    choose(event.target);
  });
  inbox.addEventListener("click", (event) => {
    const more = event.target.closest("[data-do=fields]");
    if (more) {
      const form = more.closest("form");
      const wanted = fieldsOf(form).hidden;
      open(form, wanted);
      if (wanted) fieldsOf(form).querySelector("textarea, input, select")?.focus();
    }
    const pick = event.target.closest("[data-do=pick]");
    if (pick) {
      const at = [...pick.parentElement.children].indexOf(pick);
      choose(pick.closest(".question").querySelectorAll(".choice")[at]);
    }
    const link = event.target.closest(".queue a");
    if (link) {
      event.preventDefault();
      select(cardOf(link.closest("li").dataset.key));
    }
  });
  inbox.addEventListener("focusin", (event) => {
    const card = event.target.closest(".question");
    if (card && card.dataset.key !== current) select(card, false);
  });
  inbox.addEventListener("input", (event) => event.target.removeAttribute("aria-invalid"));
  inbox.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest("form.choice")?.requestSubmit();
  });
  live.addEventListener("sse:message", refetch);
  window.addEventListener("pagehide", () => {
    // Leaving cancels. This also holds when the browser shows the page again from its memory.
    [...pending.keys()].forEach((name) => undo(cardOf(name)));
  });

  key("j", () => move(1));
  key("k", () => move(-1));
  key("ArrowDown", (event) => (event.target === document.body ? move(1) : false));
  key("u", () => undo(pending.has(current) ? here() : cardOf([...pending.keys()].at(-1))));
  key("s", () => deliver(pending.has(current) ? here() : cardOf([...pending.keys()].at(-1))));
  key("h", () => toggle(".history"));
  key("d", () => toggle(".last-change"));
  key("Enter", (event) => {
    if (event.target.closest("a, button, summary")) return false;
    const card = here();
    (card?.querySelector(".choice.best button") || card?.querySelector(".choice button"))?.focus();
    card?.querySelector(".choices").scrollIntoView({ block: "nearest" });
    return true;
  });
  for (const letter of "cvtpbraxqynfi123456789") {
    key(letter, () => {
      const form = here()?.querySelector(`.choice[data-key="${letter}"]`);
      if (!form) return false;
      choose(form);
      return true;
    });
  }

  function toggle(what) {
    const found = here()?.querySelector(what);
    if (!found) return false;
    found.open = !found.open;
    if (found.open) found.scrollIntoView({ block: "nearest" });
    return true;
  }

  const wanted = location.hash && cardOf(location.hash.slice(1));
  if (cards().length) select(wanted || cards()[0], Boolean(wanted));
  count();
  setInterval(count, 30000);
})();
