// Dialogs: another label, a larger view, a conflict, the keys.

import { words } from "/page/decisions.js";
import { h, percent, plural } from "/page/dom.js";
import { large } from "/page/look.js";

function open(name, title, ...children) {
  const before = document.activeElement;
  const dialog = h("dialog", { class: name, "aria-label": title }, ...children);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => event.stopPropagation()); // keys in the dialog must not act on the page below
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export const isOpen = () => document.querySelector("dialog[open]") !== null;

const plain = (text) => text.normalize("NFKD").toLowerCase();

// Classes that match the typed text: first those that start with it, then those that contain it.
export function matches(classes, typed) {
  const wanted = plain(typed.trim());
  const ranks = classes.map((name) => [plain(name).indexOf(wanted), name]).filter(([place]) => place >= 0);
  return ranks.sort((a, b) => (a[0] > 0) - (b[0] > 0)).map(([, name]) => name);
}

// Choose a label by typing; the suggestion comes first, “neither fits” last. Calls `onChoice` with a label, or null.
export function relabel(scan, targets, onChoice) {
  const only = targets.length === 1 ? targets[0] : null;
  const suggested = only?.suggested ?? null;
  const ordered = suggested === null ? scan.classes : [suggested, ...scan.classes.filter((name) => name !== suggested)];
  let options = [];
  let active = 0;

  const input = h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "labels", "aria-autocomplete": "list",
    "aria-label": "Correct label", placeholder: "Type a label", autocomplete: "off", spellcheck: "false",
  });
  const list = h("ul", { id: "labels", role: "listbox", "aria-label": "Labels" });
  const dialog = open("relabel", "Another label",
    h("h2", {}, only ? "What should the label be?" : `What should the label of ${plural(targets.length, "sample")} be?`), input, list);

  const choose = (option) => {
    dialog.close();
    onChoice(option.label);
  };
  const mark = () => {
    [...list.children].forEach((item, position) => item.setAttribute("aria-selected", position === active));
    list.children[active]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[active]?.id ?? "");
  };
  const render = () => {
    const typed = input.value;
    options = (typed.trim() ? matches(ordered, typed) : ordered).map((label) => ({ label }));
    if (!typed.trim() || plain("neither fits").startsWith(plain(typed.trim()))) options.push({ label: null });
    active = 0;
    list.replaceChildren(...options.map((option, position) =>
      h("li", { id: `label-${position}`, role: "option", onclick: () => choose(option), onmousemove: () => position !== active && ((active = position), mark()) },
        option.label === null ? h("em", {}, "Neither fits: drop it") : h("span", {}, option.label),
        option.label !== null && option.label === suggested && h("small", {}, `suggested${only.confidence === null ? "" : `, ${percent(only.confidence)}`}`),
        option.label !== null && option.label === only?.label && h("small", {}, "current"))));
    if (!options.length) list.append(h("li", { class: "muted", "aria-disabled": "true" }, `No label matches “${typed}”`));
    mark();
  };
  input.addEventListener("input", render);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && options.length) {
      active = (active + step + options.length) % options.length;
      mark();
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (options[active]) choose(options[active]);
    }
  });
  render();
  input.focus();
}

export function larger(scan, sample, entry) {
  const copy = { ...entry, image: entry.image?.cloneNode() };
  const dialog = open("larger", `Sample ${sample.id}`,
    h("div", { class: `stage ${scan.kind}` }, large(scan, sample, copy)),
    h("p", {}, h("b", {}, sample.label ?? ""), sample.suggested !== null && h("span", { class: "muted" }, ` looks like ${sample.suggested}`)));
  dialog.addEventListener("keydown", (event) => {
    if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      dialog.close();
    }
  });
}

// The sample was decided elsewhere in the meantime: nothing is overwritten without the user's consent.
export function conflict(conflicts, onMine) {
  const single = conflicts.length === 1;
  const mine = h("button", { type: "button", class: "act" }, single ? `Use mine: ${words(conflicts[0].decision)}` : "Use mine");
  const theirs = h("button", { type: "button", class: "act first", autofocus: true }, "Keep the other decision");
  const dialog = open("conflict", "Already decided elsewhere",
    h("h2", {}, single ? "Already decided elsewhere" : `${plural(conflicts.length, "sample")} already decided elsewhere`),
    h("p", {}, "Your decision was not saved, because another person or another tab decided first:"),
    h("ul", {}, conflicts.slice(0, 5).map(({ sample }) => h("li", {},
      h("b", {}, sample.id ?? `Sample ${sample.index}`), h("span", { class: `badge ${sample.decision?.action ?? "open"}` }, words(sample.decision)),
      sample.decision && h("small", {}, `by ${sample.decision.who}`)))),
    conflicts.length > 5 && h("p", { class: "muted" }, `and ${conflicts.length - 5} more`),
    h("div", { class: "choices" }, theirs, mine));
  theirs.addEventListener("click", () => dialog.close());
  mine.addEventListener("click", () => {
    dialog.close();
    onMine();
  });
  theirs.focus();
}

const KEYS = [
  ["s", "relabel as suggested"],
  ["k", "keep the label"],
  ["r", "choose another label: type, then Enter"],
  ["n", "neither fits: drop, with a note"],
  ["d", "drop"],
  ["u", "undo; can be repeated"],
  ["← →", "previous, next"],
  ["space", "enlarge"],
  ["g", "switch between grid and single view"],
  ["Enter", "in the grid: open"],
  ["x", "in the grid: select; Shift and arrows select more"],
  ["a", "in the grid: select all loaded samples"],
  ["Esc", "clear the selection"],
  ["?", "show these keys"],
];

export function help() {
  const close = h("button", { type: "button", class: "act" }, "Close");
  const dialog = open("help", "Keys", h("h2", {}, "Keys"),
    h("dl", {}, KEYS.map(([key, text]) => h("div", {}, h("dt", {}, key.split(" ").map((one) => h("kbd", {}, one))), h("dd", {}, text)))), close);
  close.addEventListener("click", () => dialog.close());
  close.focus();
}
