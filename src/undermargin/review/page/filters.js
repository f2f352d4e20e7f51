// Filters. They are part of the address, so that a reload restores them.

import { count, h } from "/page/dom.js";

export const STANDARD = { verdict: "flagged", label: "", suggested: "", standing: "open", order: "suspicion" };

export function build(form, scan, filters, onChange) {
  const verdicts = ["flagged", "kept", "unjudged"].map((name) => [name, `${name} (${count(scan.verdicts[name])})`]);
  const classes = (counts) => scan.classes.map((name, number) => [name, counts[number] ? `${name} (${count(counts[number])})` : name]);
  const choices = {
    verdict: ["Verdict", [...verdicts, ["", "any verdict"]]],
    label: ["Labeled", [["", "any label"], ...classes(scan.num_flagged_labelled)]],
    suggested: ["Looks like", [["", "any label"], ...classes(scan.num_flagged_suggested)]],
    standing: ["Decision", [["open", "not decided"], ["any", "any"], ["decided", "decided"], ["keep", "kept"], ["relabel", "relabeled"], ["drop", "dropped"]]],
    order: ["Order", [["suspicion", "most suspicious first"], ["random", "random"]]],
  };
  form.replaceChildren(...Object.entries(choices).map(([name, [title, options]]) =>
    h("label", {}, h("span", {}, title),
      h("select", { name, autocomplete: "off" }, options.map(([value, text]) => h("option", { value, selected: value === filters[name] }, text))))));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => onChange(Object.fromEntries(new FormData(form))));
}

export function set(form, filters) {
  for (const [name, value] of Object.entries(filters)) form.elements[name].value = value;
}

export function fromAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  const filters = Object.fromEntries(Object.entries(STANDARD).map(([name, value]) => [name, found.get(name) ?? value]));
  return { filters, view: found.get("view") === "grid" ? "grid" : "one", index: found.has("index") ? Number(found.get("index")) : null };
}

export function toAddress(filters, view, index) {
  const changed = Object.entries(filters).filter(([name, value]) => value !== STANDARD[name]);
  const words = new URLSearchParams([...changed, ...(view === "grid" ? [["view", view]] : []), ...(index === null ? [] : [["index", index]])]);
  history.replaceState(null, "", words.size ? `/#${words}` : "/"); // also removes the token from the address bar
}
