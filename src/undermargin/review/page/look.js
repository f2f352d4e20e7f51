// How samples are displayed: images, texts, rows of a table.

import { picture } from "/page/api.js";
import { h } from "/page/dom.js";
import { SMALL } from "/page/samples.js";

const ABREAST = 3; // kept rows per class to compare a row with

export function small(scan, sample, label) {
  if (scan.kind === "images") return thumbnail(sample.index, label);
  if (scan.kind === "text") return h("p", { class: "excerpt", dir: "auto" }, sample.text + (sample.is_cut ? " …" : ""));
  if (scan.kind === "table") return cells(sample.cells.slice(0, 7));
  return h("p", { class: "excerpt muted" }, "Embeddings cannot be displayed.");
}

export function thumbnail(index, label) {
  const image = h("img", { src: picture(index, SMALL), alt: label, loading: "lazy", decoding: "async", draggable: "false" });
  image.addEventListener("error", () => image.replaceWith(broken()), { once: true });
  return image;
}

const broken = () => h("p", { class: "broken" }, "This image cannot be displayed.");

export function large(scan, sample, entry) {
  if (scan.kind === "images") {
    const image = entry.image;
    image.alt = `Sample ${sample.id}`;
    image.draggable = false;
    if (image.complete && !image.naturalWidth) return broken();
    image.addEventListener("error", () => image.replaceWith(broken()), { once: true });
    return image;
  }
  if (scan.kind === "text") {
    const text = entry.ready ? entry.ready.text : sample.text;
    return h("div", { class: `prose${text.length > 600 ? " long" : ""}`, dir: "auto", tabindex: text.length > 600 && "0" }, text || "(empty)");
  }
  if (scan.kind === "table") return comparison(sample, entry.ready);
  return h("p", { class: "muted" }, "Embeddings cannot be displayed; use the id to look up the sample.");
}

export function cells(pairs) {
  return h("dl", { class: "cells" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, shown(value)))));
}

const shown = (value) => (value === null ? h("span", { class: "muted" }, "missing") : value);

// A row next to kept rows of both classes; cells that are equal to the row's are marked.
function comparison(sample, whole) {
  const groups = (whole?.neighbours ?? []).map((group) => ({ ...group, samples: group.samples.slice(0, ABREAST) }));
  const others = groups.flatMap((group) => group.samples);
  const starts = new Set(groups.map((group) => group.samples[0]?.index));
  const edge = (other) => (starts.has(other.index) ? "edge" : "");
  const head = h("thead", {},
    h("tr", {}, h("td", {}), h("th", { scope: "col", class: "this", rowspan: "2" }, "This sample"),
      groups.filter((group) => group.samples.length).map((group) => h("th", { scope: "colgroup", colspan: group.samples.length, class: "edge" }, "Kept as ", h("b", {}, group.label)))),
  );
  const rows = sample.cells.map(([name, value], row) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "this" }, shown(value)),
      others.map((other) => {
        const theirs = other.cells[row]?.[1] ?? null;
        return h("td", { class: `${edge(other)}${theirs === value ? " same" : ""}` }, shown(theirs));
      })));
  return h("div", { class: "comparison", tabindex: "0", role: "region", "aria-label": "Comparison with kept rows" }, h("table", {}, head, h("tbody", {}, rows)));
}

export function neighbours(scan, whole) {
  if (scan.kind === "table") return [];
  return whole.neighbours.map((group) =>
    h("section", { class: "neighbours", "aria-label": `Kept as ${group.label}` },
      h("h3", {}, "Kept as ", h("b", {}, group.label)),
      group.samples.length
        ? h("ul", { class: scan.kind }, group.samples.map((one) => h("li", {}, small(scan, one, `A kept sample labeled ${group.label}`))))
        : h("p", { class: "muted" }, "No kept samples.")));
}
