/** Two pictures beside each other, in turn at the same place, and what differs between them. */
import { form, givenUp, json, request } from "./api.js";
import { at, heard, image, make, notice } from "./element.js";
import { local, served } from "./pictures.js";

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

/** Compare the file of a query with a match of it: at once as they are, then laid over each other. */
export async function openComparison(file, match) {
  running = new AbortController();
  const options = { say, signal: running.signal };
  at("compare-title").textContent = `Your picture and ${match.photo}`;
  const large = `${match.thumbnail}?side=1024`;
  const beside = () => [
    panel(local(file, "Your picture"), "Your picture"),
    panel(served(large, match.photo, options), match.photo),
  ];
  figures = { beside: beside(), turns: beside() };
  at("compare-differs").hidden = true;
  choose("beside");
  say("Laying the two over each other…");
  at("compare").showModal();
  try {
    const second = await (await request(large, options)).blob();
    const body = form({ first: file, second: new File([second], "match.jpg") }); // its own name may be none to upload
    lay(await json("/v1/compare", { ...options, method: "POST", body }), match.photo);
  } catch (error) {
    if (!givenUp(error)) problem(error.message);
  }
}

function lay({ aligned, pictures }, name) {
  clear();
  if (!aligned) {
    say("Too little of the two agrees for them to be laid over each other.");
    return;
  }
  const drawn = (picture, caption) => panel(image({ src: picture, alt: caption }), caption);
  figures.turns = [drawn(pictures.first, "Your picture"), drawn(pictures.overlay, `The same part of ${name}`)];
  figures.differs = [
    drawn(pictures.framed, `Where your picture lies in ${name}`),
    drawn(pictures.difference, "What differs; mid-grey is the same"),
  ];
  at("compare-differs").hidden = false;
  if (mode() !== "flicker") return;
  at("compare-stage").replaceChildren(...figures.turns); // whoever flips already goes on
  turn(Number(at("compare-stage").dataset.side));
}

function panel(picture, caption) {
  return make("figure", {}, picture, make("figcaption", {}, caption));
}

function choose(mode) {
  document.querySelector(`input[name="compare-mode"][value="${mode}"]`).checked = true;
  arrange();
}

const mode = () => document.querySelector('input[name="compare-mode"]:checked').value;

function arrange() {
  const flickers = mode() === "flicker";
  flickerByItself(false);
  at("compare-stage").className = `stage ${mode()}`;
  at("compare-stage").replaceChildren(...figures[flickers ? "turns" : mode()]);
  at("compare-flips").hidden = !flickers;
  at("flicker").hidden = still.matches;
  at("still").hidden = !still.matches;
  if (flickers) turn(0);
}

function turn(side) {
  at("compare-stage").dataset.side = side;
  figures.turns.forEach((each, rank) => (each.ariaHidden = rank !== side));
}

const flip = () => turn(1 - Number(at("compare-stage").dataset.side));

function flipByHand() {
  if (mode() !== "flicker") choose("flicker");
  flickerByItself(false);
  flip();
  const seen = figures.turns[at("compare-stage").dataset.side];
  heard(seen.querySelector("figcaption").textContent, "compare-heard");
}

function flickerByItself(on) {
  clearInterval(ticking);
  ticking = on && !still.matches ? setInterval(flip, PERIOD) : null;
  at("flicker").setAttribute("aria-pressed", ticking !== null);
}
