// The single view: a sample, its label and suggested label, the possible decisions, and samples to compare with.

import { words } from "/page/decisions.js";
import { count, h, percent } from "/page/dom.js";
import { cells, large, neighbours } from "/page/look.js";

export class One {
  constructor(root, context) {
    this.root = root;
    this.context = context;
    this.position = 0;
  }

  get targets() {
    const sample = this.context.samples.at(this.position);
    return sample ? [sample] : [];
  }

  async show(position) {
    const { samples } = this.context;
    this.position = position;
    const sample = samples.at(position) ?? (await samples.load(position));
    if (this.position !== position || this.context.view !== this) return;
    if (!sample) return this.end();
    this.render(sample);
    this.prefetch(position);
  }

  render(sample) {
    const { scan, details } = this.context;
    const entry = details.of(sample.index);
    this.stage = h("div", { class: `stage ${scan.kind}` }, large(scan, sample, entry));
    this.panel = h("div", { class: "claim" });
    this.compare = h("div", { class: "compare" });
    this.root.replaceChildren(
      h("article", { class: "one", data: { index: sample.index }, "aria-label": `Sample ${sample.id}` },
        this.stage, h("div", { class: "panel" }, this.panel, this.compare)));
    this.update(sample);
    if (entry.ready) this.fill(sample, entry);
    else entry.whole.then(() => this.fill(sample, entry), (error) => this.context.trouble(error));
  }

  // Content that takes longer to load: the full text and the samples to compare with.
  fill(sample, entry) {
    if (this.targets[0] !== sample) return;
    const { scan } = this.context;
    if (scan.kind === "text" || scan.kind === "table") this.stage.replaceChildren(large(scan, sample, entry));
    const others = scan.kind !== "table" && entry.ready.cells?.length ? h("details", { class: "more" }, h("summary", {}, "Other columns"), cells(entry.ready.cells)) : null;
    this.compare.replaceChildren(...neighbours(scan, entry.ready), ...(others ? [others] : []));
  }

  update(sample) {
    if (this.targets[0] !== sample || !this.panel) return;
    const { act } = this.context;
    const button = (name, key, text, more = "") =>
      h("button", { type: "button", class: `act ${name} ${more}`, "aria-keyshortcuts": key, onclick: () => act(name) }, h("span", {}, text), h("kbd", {}, key));
    const action = sample.decision?.action;
    this.panel.replaceChildren(
      h("p", { class: "where" }, h("span", {}, `${count(this.position + 1)} of ${count(this.context.samples.size)}`), h("span", { class: "id", title: sample.id }, sample.id)),
      h("dl", { class: "labels" },
        h("div", {}, h("dt", {}, "Labeled"), h("dd", {}, sample.label ?? "nothing")),
        sample.suggested !== null && h("div", { class: "suggested" }, h("dt", {}, "Looks like"), h("dd", {}, sample.suggested, confidence(sample)))),
      h("p", { class: `standing ${action ?? "open"}`, data: { pending: sample.isPending ? "yes" : "no" } }, standing(sample)),
      h("div", { class: "acts", role: "group", "aria-label": "Decide" },
        sample.suggested !== null && button("suggest", "s", ["Relabel as ", h("b", {}, sample.suggested)], "first"),
        button("keep", "k", sample.label === null ? "Keep" : ["Keep as ", h("b", {}, sample.label)]),
        button("relabel", "r", "Another label…"),
        button("neither", "n", "Neither fits"),
        button("drop", "d", "Drop")),
      h("div", { class: "moves" },
        button("back", "←", "Back"), button("undo", "u", "Undo"), button("larger", "␣", "Enlarge"), button("next", "→", "Next")));
  }

  // Prefetch nearby samples, so that the next one is shown without delay.
  prefetch(position) {
    const { samples, details } = this.context;
    for (const step of [1, 2, 3, -1]) {
      const near = position + step;
      if (near < 0 || near >= samples.size) continue;
      const sample = samples.at(near);
      if (sample) details.of(sample.index);
      else samples.load(near).then((found) => found && details.of(found.index), () => {});
    }
  }

  move(step) {
    const next = this.position + step;
    if (next >= 0 && next <= this.context.samples.size) this.context.go(next);
  }

  advance() {
    this.move(1);
  }

  end() {
    this.panel = null;
    this.root.replaceChildren(this.context.ending());
  }
}

function confidence(sample) {
  if (sample.confidence === null) return null;
  return h("span", { class: "confidence", title: `This label had the largest logit in ${percent(sample.confidence)} of the epochs` }, percent(sample.confidence));
}

function standing(sample) {
  if (sample.isPending) return "Saving…";
  if (!sample.decision) return `${sample.verdict}, score ${sample.score === null ? "none" : sample.score.toFixed(2).replace("-", "−")}`;
  const { who, when } = sample.decision;
  const said = words(sample.decision);
  return `${said[0].toUpperCase()}${said.slice(1)}, by ${who} ${new Date(when).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}`;
}
