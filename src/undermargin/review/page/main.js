// The page: state, keys and actions.

import { get } from "/page/api.js";
import { Decisions, words } from "/page/decisions.js";
import * as dialogs from "/page/dialogs.js";
import { byId, count, h, percent, plural } from "/page/dom.js";
import * as filters from "/page/filters.js";
import { Grid } from "/page/grid.js";
import { One } from "/page/one.js";
import { Details, Samples } from "/page/samples.js";

const main = byId("main");
const address = filters.fromAddress();
const context = { filters: address.filters, act, go, remember, ending, trouble };
const views = { one: new One(main, context), grid: new Grid(main, context) };
context.view = views[address.view];

async function start() {
  const first = new Samples(context.filters);
  const [scan, , progress] = await Promise.all([get("/api/scan"), first.page(0), get("/api/progress")]);
  context.scan = scan;
  context.details = new Details(scan.kind === "images");
  context.decisions = new Decisions(scan);
  document.title = `${scan.name} · undermargin review`;
  byId("name").textContent = scan.name;
  filters.build(byId("filters"), scan, context.filters, refilter);
  context.decisions.addEventListener("shown", ({ detail }) => context.view.update(detail));
  context.decisions.addEventListener("progress", ({ detail }) => report(detail));
  context.decisions.addEventListener("conflict", ({ detail }) => settle(detail));
  report(progress);
  await reveal(first, address.index);
}

async function reveal(samples, index) {
  context.samples = samples;
  await samples.page(0);
  const position = samples.positions.get(index) ?? 0;
  press();
  await context.view.show(position);
  performance.mark("interactive");
  main.setAttribute("aria-busy", "false");
  remember(position);
}

async function refilter(wanted) {
  context.filters = wanted;
  main.setAttribute("aria-busy", "true");
  try {
    await reveal(new Samples(wanted), null);
    main.focus();
    say(`${plural(context.samples.size, "sample")} shown`);
  } catch (error) {
    trouble(error);
  }
}

function press() {
  for (const name of Object.keys(views)) byId(`view-${name}`).setAttribute("aria-pressed", context.view === views[name]);
  document.body.dataset.view = context.view === views.grid ? "grid" : "one";
}

async function go(position, view) {
  if (view) {
    context.view = views[view];
    press();
  }
  try {
    await context.view.show(position);
  } catch (error) {
    trouble(error);
  }
  remember(position);
}

function remember(position) {
  filters.toAddress(context.filters, document.body.dataset.view, context.samples.at(position)?.index ?? null);
}

// What can be decided or done, by name: for buttons and keys alike.
function act(name) {
  const { view, scan, details } = context;
  const targets = view.targets;
  const moves = { back: -1, next: 1 };
  if (name in moves) return view.move(moves[name]);
  if (name === "undo") return undo();
  if (name === "clear") return view.clear?.();
  if (!targets.length) return undefined;
  if (name === "larger") return dialogs.larger(scan, targets[0], details.of(targets[0].index));
  if (name === "relabel") return dialogs.relabel(scan, targets, (label) => (label === null ? act("neither") : decide(targets, { action: "relabel", label })));
  if (name === "suggest") return suggest(targets);
  return decide(targets, { keep: { action: "keep" }, drop: { action: "drop" }, neither: { action: "drop", note: "neither fits" } }[name]);
}

function suggest(targets) {
  const able = targets.filter((sample) => sample.suggested !== null);
  if (!able.length) return say("There is no suggested label");
  const labels = new Set(able.map((sample) => sample.suggested));
  if (labels.size === 1) return decide(able, { action: "relabel", label: able[0].suggested });
  return decideEach(able);
}

async function decide(targets, decision) {
  const sent = context.decisions.decide(targets, decision);
  say(targets.length === 1 ? `${targets[0].id}: ${words(decision)}` : `${plural(targets.length, "sample")} ${words(decision)}`, true);
  context.view.advance();
  await confirmed(sent);
}

// Relabel each sample with its own suggestion, as one step in the undo history.
async function decideEach(targets) {
  const wanted = targets.map((sample) => ({ sample, before: sample.decision, decision: { action: "relabel", label: sample.suggested } }));
  const sent = context.decisions.send(wanted, (step) => context.decisions.remember(step));
  say(`${plural(targets.length, "sample")} relabeled as suggested`, true);
  context.view.advance();
  await confirmed(sent);
}

async function undo() {
  const { decisions, samples, view } = context;
  await decisions.last;
  const step = decisions.undo();
  if (!step) return say("Nothing to undo in this tab");
  const sent = decisions.restore(step, (index) => samples.find(index));
  say(`Undone: ${plural(step.length, "decision")}`);
  const position = samples.positions.get(step[0].index);
  if (position !== undefined && step.length === 1) go(position);
  else if (view === views.grid) view.focus();
  return confirmed(sent);
}

async function confirmed(sent) {
  try {
    await sent;
    byId("trouble").hidden = true;
  } catch (error) {
    trouble(error);
  }
}

function settle(conflicts) {
  dialogs.conflict(conflicts, () => {
    const again = conflicts.map(({ sample, decision }) => ({ sample, before: sample.decision, decision }));
    confirmed(context.decisions.send(again, (step) => context.decisions.remember(step)));
  });
}

function report(progress) {
  context.progress = progress;
  const { num_flagged: all, num_decided: decided, precision, interval, per_minute: pace } = progress;
  byId("bar").value = all ? decided / all : 1;
  const parts = [h("span", {}, h("b", {}, count(decided)), ` of ${count(all)} decided`)];
  if (precision !== null) {
    const range = decided < all ? ` (${Math.round(100 * interval[0])}–${Math.round(100 * interval[1])} %)` : "";
    parts.push(h("span", { title: "Share of the decided samples that were relabeled or dropped, with a 95 % interval. It is an estimate for all flagged samples only if you review them in random order: the most suspicious samples are wrong more often." }, h("b", {}, percent(precision)), ` were wrong${range}`));
  }
  if (pace !== null) parts.push(h("span", { class: "pace" }, `${Math.round(pace)} per minute`));
  byId("progress-text").replaceChildren(...parts);
}

// Shown after the last sample of a filter, or if no sample matches.
function ending() {
  const { progress, scan, samples } = context;
  const isDone = progress.num_decided >= progress.num_flagged;
  const command = h("code", { tabindex: "0" }, `undermargin clean ${scan.path} --to CLEANED`);
  const button = (text, wanted) => h("button", { type: "button", class: "act", onclick: () => {
    filters.set(byId("filters"), wanted);
    refilter(wanted);
  } }, text);
  if (isDone) {
    return h("section", { class: "ending" }, h("h2", {}, progress.num_flagged ? "All flagged samples are decided" : "No sample was flagged"),
      h("p", {}, "Next, in the terminal:"), command,
      button("Review them again", { ...filters.STANDARD, standing: "decided" }));
  }
  const left = progress.num_flagged - progress.num_decided;
  const here = { ...context.filters };
  return h("section", { class: "ending" },
    h("h2", {}, samples.size ? "This was the last sample" : "No sample matches these filters"),
    h("p", {}, `${plural(left, "flagged sample")} ${left === 1 ? "is" : "are"} not decided yet.`),
    samples.size && here.standing === "open" && !isStandard(here) ? button("Repeat with these filters", here) : null,
    button("Show the remaining samples", filters.STANDARD));
}

const isStandard = (wanted) => Object.entries(filters.STANDARD).every(([name, value]) => wanted[name] === value);

let hush;
function say(text, canUndo = false) {
  clearTimeout(hush);
  byId("said").replaceChildren(h("span", {}, text), canUndo ? h("kbd", { title: "undo" }, "u") : "");
  byId("said").dataset.shown = "yes";
  hush = setTimeout(() => (byId("said").dataset.shown = "no"), 4000);
}

function trouble(error) {
  byId("trouble").textContent = error.message;
  byId("trouble").hidden = false;
  main.setAttribute("aria-busy", "false");
}

const KEYS = { k: "keep", r: "relabel", d: "drop", n: "neither", s: "suggest", u: "undo", " ": "larger" };

function press_key(event) {
  if (dialogs.isOpen() || !context.samples) return;
  const isUndo = (event.ctrlKey || event.metaKey) && event.key === "z";
  if (isUndo) {
    event.preventDefault();
    act("undo");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input, textarea")) return;
  const isGrid = context.view === views.grid;
  const onButton = event.target.matches("button, summary, [tabindex='0']:not(.card)") && event.target !== main;
  if ((event.key === " " || event.key === "Enter") && onButton) return; // the key belongs to the button
  const own = isGrid ? gridKey(event) : oneKey(event);
  const general = KEYS[event.key] ? () => act(KEYS[event.key]) : { g: toggle, "?": dialogs.help }[event.key];
  const doing = own ?? general;
  if (!doing || (event.repeat && doing !== own)) return; // holding a key down moves but does not decide
  event.preventDefault();
  doing();
}

const oneKey = (event) => ({ ArrowLeft: () => context.view.move(-1), ArrowRight: () => context.view.move(1) })[event.key];

function gridKey(event) {
  const { view } = context;
  const step = { ArrowLeft: [-1, false], ArrowRight: [1, false], ArrowUp: [-1, true], ArrowDown: [1, true] }[event.key];
  if (step) return () => view.move(...step, event.shiftKey);
  return { Enter: () => go(view.position, "one"), x: () => view.toggle(), a: () => view.chooseAll(), Escape: () => view.clear() }[event.key];
}

const toggle = () => go(context.view.position, context.view === views.grid ? "one" : "grid");

document.addEventListener("keydown", press_key);
document.addEventListener("visibilitychange", () => document.hidden || get("/api/progress").then(report, trouble));
byId("view-one").addEventListener("click", () => go(context.view.position, "one"));
byId("view-grid").addEventListener("click", () => go(context.view.position, "grid"));
byId("help").addEventListener("click", dialogs.help);
start().catch(trouble);
