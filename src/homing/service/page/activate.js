/** The activation view: activate a picture, and show what changed. */
import { form, isAborted, json, request } from "./api.js";
import { acceptFiles } from "./file_input.js";
import { byId, figure, announce, make, notice } from "./dom.js";
import { formatBytes } from "./format.js";
import { fileImage, serviceImage } from "./images.js";

const { setStatus, setProblem, clear } = notice("activate-notice");
let running = new AbortController();
let chosen = null;

/** Set up the view. */
export function startActivation() {
  acceptFiles("activate", choose, setProblem);
  byId("activate-form").addEventListener("submit", (event) => {
    event.preventDefault();
    activate(chosen);
  });
}

/** Fill the list of recipes. */
export async function showActivation() {
  if (byId("recipe").options.length > 0) return;
  try {
    const { recipes } = await json("/v1/info");
    byId("recipe").replaceChildren(...recipes.map((name) => make("option", { selected: name === "homing" }, name)));
  } catch (error) {
    setProblem(error.message);
  }
}

function choose([file, ...more]) {
  running.abort();
  chosen = file;
  byId("activate-preview").replaceChildren(fileImage(file, ""));
  byId("activate-name").textContent = file.name;
  byId("activate-form").hidden = false;
  byId("release").hidden = true;
  byId("view-activate").classList.add("has-results");
  setStatus(more.length > 0 ? `Only one picture can be activated at a time: ${file.name}.` : "");
}

async function activate(file) {
  running.abort();
  running = new AbortController();
  const options = { setStatus, signal: running.signal };
  const button = byId("activate-form").querySelector("button");
  button.disabled = true;
  setStatus("Activating. This takes a few seconds…");
  try {
    const body = form({ photo: file });
    body.append("recipe", byId("recipe").value);
    body.append("graphics", byId("graphics").checked);
    const report = await json("/v1/activate?report=true", { ...options, method: "POST", body });
    byId("release").replaceChildren(...renderReport(file, report, options));
    byId("release").hidden = false;
    byId("activate-form").hidden = true;
    clear();
    announce(byId("release").querySelector("h2").textContent);
  } catch (error) {
    if (!isAborted(error)) setProblem(error.message);
  }
  button.disabled = false;
}

function* renderReport(file, report, options) {
  const activated = report.state === "activated";
  const title = activated ? "Ready to release: " : "Released unchanged: ";
  const head = make("h2", { class: "verdict" }, title, make("b", {}, file.name));
  const lead = make("p", { class: "lead" }, activated ? copiesSummary(report.edited_copies) : report.reason);
  const download = { type: "button", class: "primary", onclick: () => save(file.name, report.released) };
  yield make("div", { class: "head" }, make("div", {}, head, lead), make("button", download, "Download"));
  yield make(
    "div",
    { class: "release" },
    pictureViews(report.pictures, options),
    make("div", {}, quality(report), notes(report.notes), edits(report.edited_copies)),
  );
}

function copiesSummary(copies) {
  const found = (when) => copies.filter((each) => each[when]).length;
  const [before, now] = [found("found_before"), found("found_after")];
  return `Edited copies found with one probe: ${before} of ${copies.length} before activation, ${now} of ${copies.length} now.`;
}

function pictureViews(pictures, options) {
  const stage = make("div", { class: "stage" });
  const modes = {
    "Before, after": () => slider(pictures, options),
    "Difference ×20": () => singlePicture(pictures.difference, "The change, magnified 20 times, around mid-gray", options),
    "JND map": () => singlePicture(pictures.jnd, "Just-noticeable differences: brighter areas may change more", options),
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
    make("fieldset", { class: "modes" }, make("legend", { class: "hidden" }, "Picture"), ...choices),
    stage,
  );
}

function singlePicture(address, caption, options) {
  return make("figure", {}, serviceImage(address, "", options), make("figcaption", {}, caption));
}

function slider(pictures, options) {
  const after = make("div", { class: "over" }, serviceImage(pictures.after, "", options));
  const both = make("div", { class: "slider" }, serviceImage(pictures.before, "The original picture", options), after);
  const moveSlider = (event) => both.style.setProperty("--cut", `${event.target.value}%`);
  const range = make("input", {
    type: "range",
    min: 0,
    max: 100,
    value: 50,
    oninput: moveSlider,
    "aria-label": "Share of the original that is shown",
  });
  both.append(range);
  return make(
    "figure",
    {},
    both,
    make("figcaption", { class: "ends" }, make("span", {}, "Original"), make("span", {}, "Released")),
  );
}

function notes(lines) {
  if (lines.length === 0) return null;
  return make("div", { class: "notes" }, make("h3", {}, "Written differently"), make("ul", {}, ...lines.map((line) => make("li", {}, line))));
}

function quality({ quality: { psnr, ssim, linf }, bytes_before, bytes_after }) {
  return make(
    "dl",
    { class: "figures" },
    figure("PSNR", psnr === null ? "∞" : `${psnr.toFixed(1)} dB`, "higher is closer"),
    figure("SSIM", ssim.toFixed(4), "1 means identical"),
    figure("L∞", `${linf.toFixed(0)} of 255`, "largest change"),
    figure("File size", formatBytes(bytes_after), `${formatBytes(bytes_before)} before`),
  );
}

const editLabel = (edit) => (edit === "identity" ? "not edited" : edit.replace("-", " "));

function edits(copies) {
  const cell = (found) => make("td", { class: found ? "found" : "lost" }, found ? "found" : "not found");
  const rows = copies.map((each) =>
    make("tr", {}, make("th", { scope: "row" }, editLabel(each.edit)), cell(each.found_before), cell(each.found_after)),
  );
  const heads = ["Edited copy", "Before", "Now"].map((name) => make("th", { scope: "col" }, name));
  const caption = make("caption", {}, "Edited copies found");
  return make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
}

async function save(name, address) {
  try {
    const url = URL.createObjectURL(await (await request(address, { setStatus })).blob());
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads the URL after the click
    clear();
  } catch (error) {
    setProblem(error.message);
  }
}
