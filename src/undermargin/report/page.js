"use strict";

// Light or dark theme: follows the system until the button is pressed.
const theme = document.getElementById("theme");
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
const nameTheme = () => {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colors`);
};
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
systemIsDark.addEventListener("change", nameTheme);
theme.hidden = false;
nameTheme();

// Pages of samples. All samples are in the document; without this script all of them are shown.
const paged = document.querySelector("[data-paged]");
const pager = document.querySelector(".pager");
if (paged && paged.children.length > Number(pager.dataset.size)) {
  const size = Number(pager.dataset.size);
  const samples = [...paged.children];
  const numPages = Math.ceil(samples.length / size);
  const [previous, next] = pager.querySelectorAll("button");
  let page = 0;
  const turn = (step) => {
    page = Math.min(Math.max(page + step, 0), numPages - 1);
    const first = page * size;
    samples.forEach((sample, number) => { sample.hidden = number < first || number >= first + size; });
    pager.querySelector("span").textContent =
      `${first + 1} to ${Math.min(first + size, samples.length)} of ${samples.length}`;
    previous.disabled = page === 0;
    next.disabled = page === numPages - 1;
  };
  for (const button of [previous, next]) {
    button.addEventListener("click", () => turn(Number(button.dataset.step)));
  }
  document.getElementById("samples").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && !event.target.closest(".scroll")) { // these keys scroll a wide table
      event.preventDefault();
      turn(step);
    }
  });
  pager.hidden = false;
  turn(0);
}

// Long tables of groups show their first rows and a button for the rest.
for (const body of document.querySelectorAll("[data-folded]")) {
  const rest = [...body.rows].slice(Number(body.dataset.folded));
  const button = document.createElement("button");
  const fold = (isFolded) => {
    rest.forEach((row) => { row.hidden = isFolded; });
    button.textContent = isFolded ? `Show all ${body.rows.length}` : `Show the first ${body.dataset.folded}`;
    button.setAttribute("aria-expanded", String(!isFolded));
  };
  button.type = "button";
  button.className = "quiet unfold";
  button.addEventListener("click", () => fold(button.getAttribute("aria-expanded") === "true"));
  body.parentElement.after(button);
  fold(true);
}
