/** The second view: a picture is moved, verified and made ready to be released. */
import { form, givenUp, json, request } from "./api.js";
import { takePictures } from "./dropping.js";
import { at, figure, heard, make, notice } from "./element.js";
import { local, served } from "./pictures.js";

const { say, problem, clear } = notice("activate-notice");
let running = new AbortController();
let chosen = null;

/** Take pictures to activate. */
export function startActivation() {
  takePictures("activate", choose, problem);
  at("activate-form").addEventListener("submit", (event) => {
    event.preventDefault();
    activate(chosen);
  });
}

/** Offer the recipes that the service knows. */
export async function showActivation() {
  if (at("recipe").options.length > 0) return;
  try {
    const { recipes } = await json("/v1/info");
    at("recipe").replaceChildren(...recipes.map((name) => make("option", { selected: name === "homing" }, name)));
  } catch (error) {
    problem(error.message);
  }
}

function choose([file, ...more]) {
  running.abort();
  chosen = file;
  at("activate-preview").replaceChildren(local(file, ""));
  at("activate-name").textContent = file.name;
  at("activate-form").hidden = false;
  at("release").hidden = true;
  at("view-activate").classList.add("answered");
  say(more.length > 0 ? `One picture at a time: ${file.name}.` : "");
}

async function activate(file) {
  running.abort();
  running = new AbortController();
  const options = { say, signal: running.signal };
  const button = at("activate-form").querySelector("button");
  button.disabled = true;
  say("Activating: pixels are moved, the file is written, read again and measured. This takes some seconds…");
  try {
    const body = form({ photo: file });
    body.append("recipe", at("recipe").value);
    const report = await json("/v1/activate?report=true", { ...options, method: "POST", body });
    at("release").replaceChildren(...told(file, report, options));
    at("release").hidden = false;
    at("activate-form").hidden = true;
    clear();
    heard(at("release").querySelector("h2").textContent);
  } catch (error) {
    if (!givenUp(error)) problem(error.message);
  }
  button.disabled = false;
}

function* told(file, report, options) {
  const moved = report.state === "activated";
  const title = moved ? "Ready to be released: " : "Released as it was: ";
  const head = make("h2", { class: "verdict" }, title, make("b", {}, file.name));
  const words = make("p", { class: "lead" }, moved ? survival(report.survives) : report.reason);
  const download = { type: "button", class: "primary", onclick: () => save(file.name, report.released) };
  yield make("div", { class: "head" }, make("div", {}, head, words), make("button", download, "Download"));
  yield make(
    "div",
    { class: "release" },
    views(report.pictures, options),
    make("div", {}, quality(report.quality), edits(report.survives)),
  );
}

function survival(survives) {
  const found = (when) => survives.filter((each) => each[when]).length;
  const [before, now] = [found("before"), found("after")];
  return `Of ${survives.length} edited copies the quickest search found ${before} before, and finds ${now} now.`;
}

function views(pictures, options) {
  const stage = make("div", { class: "stage" });
  const modes = {
    "Before, after": () => slider(pictures, options),
    "Difference ×20": () => one(pictures.difference, "What changed, twenty times as strong, around mid-grey", options),
    "JND map": () => one(pictures.jnd, "Where the eye would notice least: the brighter, the more room", options),
  };
  const pick = (name) => stage.replaceChildren(modes[name]());
  const choices = Object.keys(modes).map((name, rank) =>
    make(
      "label",
      {},
      make("input", { type: "radio", name: "release-mode", checked: rank === 0, onchange: () => pick(name) }),
      make("span", {}, name),
    ),
  );
  pick("Before, after");
  return make(
    "div",
    {},
    make("fieldset", { class: "modes" }, make("legend", { class: "hidden" }, "What to see"), ...choices),
    stage,
  );
}

function one(address, caption, options) {
  return make("figure", {}, served(address, "", options), make("figcaption", {}, caption));
}

function slider(pictures, options) {
  const after = make("div", { class: "over" }, served(pictures.after, "", options));
  const both = make("div", { class: "slider" }, served(pictures.before, "The picture as it was", options), after);
  const place = (event) => both.style.setProperty("--cut", `${event.target.value}%`);
  const range = make("input", {
    type: "range",
    min: 0,
    max: 100,
    value: 50,
    oninput: place,
    "aria-label": "How much is shown as it was",
  });
  both.append(range);
  return make(
    "figure",
    {},
    both,
    make("figcaption", { class: "ends" }, make("span", {}, "As it was"), make("span", {}, "As released")),
  );
}

function quality({ psnr, ssim, linf }) {
  return make(
    "dl",
    { class: "figures" },
    figure("PSNR", psnr === null ? "∞" : `${psnr.toFixed(1)} dB`, "the higher, the closer"),
    figure("SSIM", ssim.toFixed(4), "1 is the same picture"),
    figure("L∞", `${linf.toFixed(0)} of 255`, "the largest change"),
  );
}

const inWords = (edit) => (edit === "identity" ? "not edited" : edit.replace("-", " "));

function edits(survives) {
  const cell = (found) => make("td", { class: found ? "home" : "lost" }, found ? "found" : "lost");
  const rows = survives.map((each) =>
    make("tr", {}, make("th", { scope: "row" }, inWords(each.edit)), cell(each.before), cell(each.after)),
  );
  const heads = ["Edited copy", "before", "now"].map((name) => make("th", { scope: "col" }, name));
  const caption = make("caption", {}, "Edited copies found");
  return make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
}

async function save(name, address) {
  try {
    const url = URL.createObjectURL(await (await request(address, { say })).blob());
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it after the click
    clear();
  } catch (error) {
    problem(error.message);
  }
}
