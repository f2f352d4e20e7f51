// Decisions: shown at once, sent one after another, confirmed by the server, and undone step by step.

import { post } from "/page/api.js";

const MOST_STEPS = 200;

export class Decisions extends EventTarget {
  constructor(scan) {
    super();
    this.key = `undo ${scan.path}`;
    this.steps = JSON.parse(sessionStorage.getItem(this.key) ?? "[]");
    this.last = Promise.resolve();
  }

  // Decide samples; `decision` is {action, label, note}, or null to remove the decision.
  decide(samples, decision) {
    const wanted = samples.map((sample) => ({ sample, before: sample.decision, decision }));
    return this.send(wanted, (step) => this.remember(step));
  }

  // Remove the last step from the history and return it, or null if there is none.
  undo() {
    const step = this.steps.pop();
    if (!step) return null;
    this.store();
    return step;
  }

  restore(step, find) {
    const wanted = step.map(({ index, version, before }) => {
      const sample = find(index) ?? { index, decision: null };
      sample.version = version;
      return { sample, before: sample.decision, decision: before };
    });
    return this.send(wanted, () => {});
  }

  // Show, queue, send. The version is read when it is this request's turn, after earlier requests have updated it.
  send(wanted, onSaved) {
    for (const { sample, decision } of wanted) this.show(sample, decision, true);
    const turn = this.last.then(() => this.deliver(wanted, onSaved));
    this.last = turn.catch(() => {});
    return turn;
  }

  async deliver(wanted, onSaved) {
    const changes = wanted.map(({ sample, decision }) => ({
      index: sample.index,
      action: decision?.action ?? null,
      label: decision?.label ?? null,
      note: decision?.note ?? "",
      seen: sample.version,
    }));
    let answer;
    try {
      answer = await post("/api/decisions", { changes });
    } catch (error) {
      for (const { sample, before } of wanted) this.show(sample, before, false);
      throw error;
    }
    const step = [];
    const conflicts = [];
    for (const one of wanted) {
      const saved = answer.saved[one.sample.index];
      const standing = saved ?? answer.conflicts[one.sample.index];
      if (saved) step.push({ index: one.sample.index, version: saved.version, before: one.before });
      else conflicts.push(one);
      one.sample.version = standing.version;
      this.show(one.sample, standing.decision, false);
    }
    if (step.length) onSaved(step);
    this.dispatchEvent(new CustomEvent("progress", { detail: answer.progress }));
    if (conflicts.length) this.dispatchEvent(new CustomEvent("conflict", { detail: conflicts }));
  }

  show(sample, decision, isPending) {
    sample.decision = decision;
    sample.isPending = isPending;
    this.dispatchEvent(new CustomEvent("shown", { detail: sample }));
  }

  remember(step) {
    this.steps.push(step);
    this.steps.splice(0, this.steps.length - MOST_STEPS);
    this.store();
  }

  store() {
    try {
      sessionStorage.setItem(this.key, JSON.stringify(this.steps));
    } catch {
      this.steps.splice(0, this.steps.length / 2); // storage is full: drop the older half
    }
  }
}

// A decision in words.
export function words(decision) {
  if (!decision) return "not decided";
  if (decision.action === "relabel") return `relabeled as ${decision.label}`;
  if (decision.action === "keep") return "kept";
  return decision.note ? `dropped: ${decision.note}` : "dropped";
}
