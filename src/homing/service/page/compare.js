/** The comparison dialog: two pictures side by side, flipped, and their difference. */
import { form, isAborted, json, request } from "./api.js";
import { byId, announce, image, make, notice } from "./dom.js";
import { fileImage, serviceImage } from "./images.js";

const FLIP_INTERVAL = 600; // milliseconds: fewer than three flashes per second, as WCAG requires
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const { setStatus, setProblem, clear } = notice("compare-notice");
let running = new AbortController();
let flipTimer = null;
let figures = {};

/** Set up the dialog. */
export function startComparison() {
  const dialog = byId("compare");
  byId("compare-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    running.abort();
    setAutoFlip(false);
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "f" && !event.ctrlKey && !event.metaKey && !event.altKey) flipManually();
  });
  byId("compare-modes").addEventListener("change", arrange);
  byId("flip").addEventListener("click", flipManually);
  byId("flicker").addEventListener("click", () => setAutoFlip(flipTimer === null));
}

/** Compare the file of a query with a match: side by side at once, then aligned. */
export async function openComparison(file, match) {
  running = new AbortController();
  const options = { setStatus, signal: running.signal };
  byId("compare-title").textContent = `Your picture and ${match.photo}`;
  const largeAddress = `${match.thumbnail}?side=1024`;
  const beside = () => [
    panel(fileImage(file, "Your picture"), "Your picture"),
    panel(serviceImage(largeAddress, match.photo, options), match.photo),
  ];
  figures = { beside: beside(), flip: beside() };
  byId("compare-difference").hidden = true;
  choose("beside");
  setStatus("Aligning the pictures…");
  byId("compare").showModal();
  try {
    const second = await (await request(largeAddress, options)).blob();
    const body = form({ first: file, second: new File([second], "match.jpg") }); // the name of the match may not be allowed for uploads
    showAligned(await json("/v1/compare", { ...options, method: "POST", body }), match.photo);
  } catch (error) {
    if (!isAborted(error)) setProblem(error.message);
  }
}

function showAligned({ aligned, pictures }, name) {
  clear();
  if (!aligned) {
    setStatus("The two pictures cannot be aligned: too little of them agrees.");
    return;
  }
  const captioned = (picture, caption) => panel(image({ src: picture, alt: caption }), caption);
  figures.flip = [captioned(pictures.first, "Your picture"), captioned(pictures.overlay, `The same part of ${name}`)];
  figures.difference = [
    captioned(pictures.framed, `Your picture in ${name}`),
    captioned(pictures.difference, "Difference; mid-gray means equal"),
  ];
  byId("compare-difference").hidden = false;
  if (mode() !== "flicker") return;
  byId("compare-stage").replaceChildren(...figures.flip); // continue flipping if already started
  showSide(Number(byId("compare-stage").dataset.side));
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
  setAutoFlip(false);
  byId("compare-stage").className = `stage ${mode()}`;
  byId("compare-stage").replaceChildren(...figures[flickers ? "flip" : mode()]);
  byId("compare-flips").hidden = !flickers;
  byId("flicker").hidden = reducedMotion.matches;
  byId("reduced-motion").hidden = !reducedMotion.matches;
  if (flickers) showSide(0);
}

function showSide(side) {
  byId("compare-stage").dataset.side = side;
  figures.flip.forEach((each, rank) => (each.ariaHidden = rank !== side));
}

const flip = () => showSide(1 - Number(byId("compare-stage").dataset.side));

function flipManually() {
  if (mode() !== "flicker") choose("flicker");
  setAutoFlip(false);
  flip();
  const visible = figures.flip[byId("compare-stage").dataset.side];
  announce(visible.querySelector("figcaption").textContent, "compare-announcer");
}

function setAutoFlip(on) {
  clearInterval(flipTimer);
  flipTimer = on && !reducedMotion.matches ? setInterval(flip, FLIP_INTERVAL) : null;
  byId("flicker").setAttribute("aria-pressed", flipTimer !== null);
}
