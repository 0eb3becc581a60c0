/** Two pictures beside each other, in turn at the same place, and what differs between them. */
import { at, heard, make, notice } from "./element.js";
import { local, served } from "./pictures.js";
import { base } from "./words.js";

const PERIOD = 600; // milliseconds: fewer than three flashes a second, which nobody's eyes or nerves should mind
const still = matchMedia("(prefers-reduced-motion: reduce)");
const { say, problem, clear } = notice("compare-notice");
let running = new AbortController();
let ticking = null;
let figures = {};

/** Make the dialog ready. */
export function startComparison() {
  const dialog = at("compare");
  at("compare-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    running.abort();
    flickerByItself(false);
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "f" && !event.ctrlKey && !event.metaKey && !event.altKey) flipByHand();
  });
  at("compare-modes").addEventListener("change", arrange);
  at("flip").addEventListener("click", flipByHand);
  at("flicker").addEventListener("click", () => flickerByItself(ticking === null));
}

/** Compare the file of a query with a match of it. */
export function openComparison(file, match) {
  running = new AbortController();
  const options = { say, signal: running.signal };
  at("compare-title").textContent = `Your picture and ${base(match.photo)}`;
  at("compare-words").textContent = "";
  const large = `${match.thumbnail}?side=1024`;
  figures = {
    first: panel(local(file, "Your picture"), "Your picture"),
    second: panel(served(large, base(match.photo), options), base(match.photo)),
  };
  at("compare-differs").hidden = true;
  choose("beside");
  clear();
  at("compare").showModal();
}

function panel(picture, caption) {
  return make("figure", {}, picture, make("figcaption", {}, caption));
}

function choose(mode) {
  document.querySelector(`input[name="compare-mode"][value="${mode}"]`).checked = true;
  arrange();
}

function arrange() {
  const mode = document.querySelector('input[name="compare-mode"]:checked').value;
  const flickers = mode === "flicker";
  flickerByItself(false);
  at("compare-stage").className = `stage ${mode}`;
  at("compare-stage").replaceChildren(...(mode === "differs" ? [figures.differs] : [figures.first, figures.second]));
  at("compare-flips").hidden = !flickers;
  at("flicker").hidden = still.matches;
  at("still").hidden = !still.matches;
  if (flickers) turn("first");
}

function turn(side) {
  at("compare-stage").dataset.side = side;
  figures.first.ariaHidden = side !== "first";
  figures.second.ariaHidden = side !== "second";
}

function flip() {
  turn(at("compare-stage").dataset.side === "first" ? "second" : "first");
}

function flipByHand() {
  if (!at("compare-stage").classList.contains("flicker")) choose("flicker");
  flickerByItself(false);
  flip();
  heard(figures[at("compare-stage").dataset.side].querySelector("figcaption").textContent, "compare-heard");
}

function flickerByItself(on) {
  clearInterval(ticking);
  ticking = on && !still.matches ? setInterval(flip, PERIOD) : null;
  at("flicker").setAttribute("aria-pressed", ticking !== null);
}
