// The grid: cards that can be navigated, selected, and decided together.

import { words } from "/page/decisions.js";
import { h, percent, plural } from "/page/dom.js";
import { small } from "/page/look.js";

const STEP = 60;

export class Grid {
  constructor(root, context) {
    this.root = root;
    this.context = context;
    this.position = 0;
    this.chosen = new Set(); // positions
    this.anchor = null;
  }

  get targets() {
    const { samples } = this.context;
    if (this.chosen.size) return [...this.chosen].sort((a, b) => a - b).map((position) => samples.at(position));
    const sample = samples.at(this.position);
    return sample ? [sample] : [];
  }

  async show(position) {
    const { samples } = this.context;
    if (!samples.size) {
      this.root.replaceChildren(this.context.ending());
      return;
    }
    this.position = Math.min(position, samples.size - 1);
    if (this.list?.isConnected && this.of === samples) {
      await this.fill(this.position + 1);
      this.focus();
      return;
    }
    this.of = samples;
    this.chosen.clear();
    this.cards = [];
    this.list = h("ul", { id: "grid", class: `grid ${this.context.scan.kind}`, role: "listbox", "aria-multiselectable": "true", "aria-label": "Samples, most suspicious first" });
    this.bulk = h("div", { class: "bulk", role: "toolbar", "aria-label": "Decide the selected samples", hidden: true });
    this.foot = h("p", { class: "foot muted" });
    this.root.replaceChildren(this.list, this.foot, this.bulk);
    this.watcher?.disconnect();
    this.watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.fill(this.cards.length + STEP), { rootMargin: "800px" });
    await this.fill(this.position + STEP);
    this.watcher.observe(this.foot);
    this.focus();
  }

  async fill(wanted) {
    const { samples, trouble } = this.context;
    const end = Math.min(wanted, samples.size);
    try {
      while (this.cards.length < end) {
        const start = this.cards.length;
        await samples.load(start);
        if (this.of !== samples || this.cards.length !== start) return; // the filter changed, or another call was faster
        for (let position = start; position < samples.size && samples.at(position); position++) this.add(position);
      }
    } catch (error) {
      trouble(error);
    }
    this.foot.textContent = this.cards.length < samples.size ? `${this.cards.length} of ${samples.size} loaded; scroll for more` : `All ${plural(samples.size, "sample")} that match the filters`;
  }

  add(position) {
    const { samples, scan, go } = this.context;
    const sample = samples.at(position);
    const card = h("li", {
      class: "card", role: "option", tabindex: "-1", "aria-selected": "false", data: { index: sample.index },
      onclick: (event) => this.click(position, event),
      ondblclick: () => go(position, "one"),
      onfocus: () => this.reach(position),
    });
    card.append(h("div", { class: "look" }, small(scan, sample, `Sample ${sample.id}`)), h("div", { class: "caption" }));
    this.cards.push(card);
    this.caption(position);
    this.list.append(card);
  }

  caption(position) {
    const sample = this.context.samples.at(position);
    const card = this.cards[position];
    card.dataset.action = sample.decision?.action ?? "open";
    card.dataset.pending = sample.isPending ? "yes" : "no";
    card.setAttribute("aria-label", `${sample.id}, labeled ${sample.label}${sample.suggested ? `, looks like ${sample.suggested}` : ""}, ${words(sample.decision)}`);
    card.querySelector(".caption").replaceChildren(
      h("span", { class: "given" }, sample.label ?? ""),
      sample.suggested !== null && h("span", { class: "rival" }, "→ ", sample.suggested, sample.confidence !== null && h("small", {}, percent(sample.confidence))) || "",
      sample.decision ? h("span", { class: `badge ${sample.decision.action}` }, words(sample.decision)) : "");
  }

  update(sample) {
    const position = this.context.samples.positions.get(sample.index);
    if (this.cards?.[position]) this.caption(position);
  }

  reach(position) {
    this.cards[this.position]?.setAttribute("tabindex", "-1");
    this.position = position;
    this.cards[position].setAttribute("tabindex", "0");
    this.context.remember(position);
  }

  focus() {
    this.cards[this.position]?.focus();
  }

  click(position, event) {
    if (event.shiftKey) this.extend(position);
    else if (event.ctrlKey || event.metaKey || this.chosen.size) this.toggle(position);
    this.cards[position].focus();
  }

  toggle(position = this.position) {
    if (!this.chosen.delete(position)) this.chosen.add(position);
    this.anchor = position;
    this.mark();
  }

  extend(position) {
    const from = this.anchor ?? this.position;
    this.anchor = from;
    for (let one = Math.min(from, position); one <= Math.max(from, position); one++) this.chosen.add(one);
    this.mark();
  }

  chooseAll() {
    this.cards.forEach((_, position) => this.chosen.add(position));
    this.mark();
  }

  clear() {
    const had = this.chosen.size > 0;
    this.chosen.clear();
    this.anchor = null;
    this.mark();
    return had;
  }

  mark() {
    this.cards.forEach((card, position) => card.setAttribute("aria-selected", this.chosen.has(position)));
    this.bulk.hidden = !this.chosen.size;
    const { act } = this.context;
    const button = (name, key, text) => h("button", { type: "button", class: `act ${name}`, "aria-keyshortcuts": key, onclick: () => act(name) }, h("span", {}, text), h("kbd", {}, key));
    this.bulk.replaceChildren(
      h("span", { class: "how-many" }, `${plural(this.chosen.size, "sample")} selected`),
      button("suggest", "s", "As suggested"), button("keep", "k", "Keep"), button("relabel", "r", "Relabel…"), button("drop", "d", "Drop"), button("clear", "Esc", "Clear"));
  }

  get columns() {
    const top = this.cards[0]?.offsetTop;
    const second = this.cards.findIndex((card) => card.offsetTop !== top);
    return second > 0 ? second : Math.max(this.cards.length, 1);
  }

  async move(step, isRow, isExtending) {
    const from = this.position;
    const next = from + step * (isRow ? this.columns : 1);
    if (next < 0 || next >= this.context.samples.size) return;
    await this.fill(next + 1);
    if (isExtending) {
      this.anchor ??= from;
      this.extend(next);
    }
    this.cards[next].focus();
  }

  advance() {
    if (this.chosen.size) this.clear();
    else this.move(1, false, false);
  }
}
