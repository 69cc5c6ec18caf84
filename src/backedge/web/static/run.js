// The run page: live parts, the slider over time, the drawer of a step, and actions. It works without this, page by page.
(() => {
  "use strict";
  const page = document.getElementById("run");
  if (!page) return;
  const address = page.dataset.address;

  // Sizes of the graph.
  function size(kind) {
    const box = page.querySelector(".graph-box");
    const svg = box && box.querySelector("svg.graph");
    if (!svg) return;
    const natural = Number(svg.viewBox.baseVal.width);
    const fits = kind || page.dataset.size || (natural * 0.66 <= box.clientWidth ? "fit" : "full");
    box.classList.toggle("fit", fits === "fit" && natural > box.clientWidth);
    page.querySelector(".sizes").hidden = natural <= box.clientWidth;
    for (const each of page.querySelectorAll("[data-size]")) each.setAttribute("aria-pressed", String(each.dataset.size === fits));
  }

  // Countdowns.
  function count() {
    for (const each of page.querySelectorAll("[data-until]")) {
      if (page.dataset.past || !page.querySelector("#run-live")) continue;
      const left = Math.round(Number(each.dataset.until) - Date.now() / 1000);
      each.textContent = left <= 0 ? "tries again now" : left < 90 ? `tries again in ${left} s` : left < 5400
        ? `tries again in ${Math.round(left / 60)} min` : `tries again in ${(left / 3600).toFixed(1)} h`;
    }
  }

  // Loops light up together, wherever they are drawn.
  function light(loop, on) {
    for (const each of page.querySelectorAll(`[data-loop="${CSS.escape(loop)}"]`)) each.classList.toggle("lit", on);
  }
  for (const kind of ["mouseover", "mouseout"]) {
    page.addEventListener(kind, (event) => {
      const found = event.target.closest && event.target.closest("[data-loop]");
      if (found) light(found.dataset.loop, kind === "mouseover");
    });
  }

  const loaded = new Map(); // what each part looked like last, so that nothing is replaced for nothing
  function show(part, html) {
    if (loaded.get(part.id) === html) return false;
    loaded.set(part.id, html);
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const boxes = [...part.querySelectorAll(".graph-box, .timeline-box, .verdicts")].map((each) => [each.scrollLeft, each.scrollTop]);
    const opened = [...part.querySelectorAll("details[open]")].map((each) => [...part.querySelectorAll("details")].indexOf(each));
    part.innerHTML = html;
    part.querySelectorAll(".graph-box, .timeline-box, .verdicts").forEach((each, index) => {
      if (boxes[index]) [each.scrollLeft, each.scrollTop] = boxes[index];
    });
    const details = part.querySelectorAll("details");
    for (const index of opened) if (details[index]) details[index].open = true;
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
    if (window.htmx) window.htmx.process(part);
    size();
    count();
    return true;
  }

  // An exported file has no server, and so nothing of window.backedge.
  const fetched = address && window.backedge.part;

  // Live: htmx tells that there are events. All parts are fetched again, but not those of which an earlier page is shown.
  const refresh = address && window.backedge.atMostEvery(1000, async () => {
    const parts = [...page.querySelectorAll(".part")].filter((part) => !part.dataset.more);
    await Promise.all(parts.map(async (part) => show(part, await fetched(part.getAttribute("hx-get")))));
  });
  const live = document.getElementById("run-live");
  if (live) live.addEventListener("sse:message", refresh);

  // The slider: the whole page folds to that moment.
  let moment = 0, wanted = 0;
  async function scrub(seq, keep) {
    wanted = seq;
    const newest = Number(page.dataset.newest);
    const path = seq >= newest ? address : `${address}?at=${seq}`;
    try {
      const text = await fetched(path);
      if (wanted !== seq) return;
      const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("run");
      if (!fresh) throw new Error("no page of a run");
      if (seq >= newest) { location.assign(path); return; } // live again
      if (document.getElementById("run-live")) document.getElementById("run-live").remove();
      for (const part of fresh.querySelectorAll(".part")) {
        const here = document.getElementById(part.id);
        here.setAttribute("hx-get", part.getAttribute("hx-get"));
        if (keep && part.id === "part-scrubber") {
          here.querySelector("output").textContent = part.querySelector("output").textContent;
          continue;
        }
        show(here, part.innerHTML);
      }
      const actions = document.getElementById("actions");
      if (actions) actions.remove();
      page.dataset.past = seq;
      page.dataset.seq = seq;
      history.replaceState(null, "", path);
    } catch (error) {
      location.assign(path);
    }
  }
  page.addEventListener("input", (event) => {
    if (event.target.id !== "at") return;
    const seq = Number(event.target.value);
    event.target.closest("form").querySelector("output").textContent = `event ${seq} of ${page.dataset.newest}`;
    clearTimeout(moment);
    moment = setTimeout(() => scrub(seq, true), 160);
  });
  function jump(way) {
    const slider = document.getElementById("at");
    if (!slider) return;
    const stops = slider.dataset.stops.split(",").filter(Boolean).map(Number), here = Number(slider.value);
    const next = way < 0 ? stops.filter((each) => each < here).pop() : stops.find((each) => each > here);
    if (!next) return;
    slider.value = next;
    scrub(next, false).then(() => { const again = document.getElementById("at"); if (again) again.focus(); });
  }

  // The drawer of a step.
  let cameFrom = null;
  const drawer = document.getElementById("drawer");
  async function open(query) {
    const step = query.get("step");
    query.delete("step");
    const path = `${address}/part/step/${encodeURIComponent(step)}${query.size ? `?${query}` : ""}`;
    try {
      drawer.innerHTML = await fetched(path);
      if (drawer.hidden) cameFrom = document.activeElement;
      drawer.hidden = false;
      drawer.focus({ preventScroll: true });
      drawer.scrollTop = 0;
    } catch (error) {
      location.assign(`${address}?${new URLSearchParams([["step", step], ...query])}`);
    }
  }
  function close() {
    if (!drawer || drawer.hidden) return;
    drawer.hidden = true;
    drawer.replaceChildren();
    if (new URLSearchParams(location.search).has("step")) history.replaceState(null, "", address);
    if (cameFrom && document.contains(cameFrom)) cameFrom.focus();
  }

  page.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-size]");
    if (button) { page.dataset.size = button.dataset.size; size(button.dataset.size); return; }
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest("a");
    const step = !address && link && (link.getAttribute("href") || "").startsWith("#step-") && document.getElementById(link.getAttribute("href").slice(1));
    if (step) step.open = true; // of an exported file: the browser goes there by itself
    const send = event.target.closest("button[data-path]");
    if (send) { event.preventDefault(); act(send.dataset.method, send.dataset.path, {}); return; }
    if (!link || !address) return;
    const href = link.getAttribute("href") || "";
    if (link.dataset.close) { event.preventDefault(); close(); return; }
    if (link.dataset.scrub) { event.preventDefault(); scrub(Number(link.dataset.scrub), false); return; }
    if (link.dataset.more) {
      event.preventDefault();
      const part = link.closest(".part"), more = link.dataset.more;
      const here = page.dataset.past ? `${more.includes("?") ? "&" : "?"}at=${page.dataset.past}` : "";
      show(part, await fetched(`${address}/part/${more}${here}`));
      if (more.includes("?")) part.dataset.more = more; else delete part.dataset.more;
      return;
    }
    if (href.startsWith(`${address}?`)) {
      const query = new URLSearchParams(href.slice(address.length + 1));
      if (query.has("step")) { event.preventDefault(); open(query); }
    }
  });
  page.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.drawer) {
      event.preventDefault();
      open(new URLSearchParams(new FormData(form)));
    } else if (form.dataset.path) {
      event.preventDefault();
      let path = form.dataset.path;
      const body = {};
      for (const [name, value] of new FormData(form)) {
        const field = form.elements.namedItem(name);
        if (field.dataset && "part" in field.dataset) path = path.replace(`{${name}}`, encodeURIComponent(value));
        else if (value !== "") body[name] = field.dataset && "list" in field.dataset ? [value] : value;
      }
      act(form.dataset.method, path, body).then((done) => {
        if (done) { form.reset(); if (form.closest("details")) form.closest("details").open = false; }
      });
    }
  });
  async function act(method, path, body) {
    try {
      await window.backedge.send(method, path, body);
    } catch (error) {
      window.backedge.toast(error.message);
      return false;
    }
    if (/\/(pause|resume|cancel)$/.test(path)) location.reload(); else refresh();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drawer && !drawer.hidden) { event.preventDefault(); close(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, select, input:not([type=range])")) return;
    if (event.key === "[") jump(-1);
    if (event.key === "]") jump(1);
  });
  addEventListener("resize", () => size());
  for (const part of page.querySelectorAll(".part")) loaded.set(part.id, null);
  size();
  count();
  setInterval(count, 1000);
})();
