/** The search view: one picture, or many at once. */
import { isAborted } from "./api.js";
import { openComparison } from "./compare.js";
import { acceptFiles } from "./file_input.js";
import { byId, announce, make, notice } from "./dom.js";
import { searchAll } from "./batch_search.js";
import { fileImage, serviceImage } from "./images.js";
import { renderList } from "./result_list.js";
import { capitalize, formatCount, formatSearch, verdictText } from "./format.js";

const { setStatus, setProblem, clear } = notice("search-notice");
const results = byId("results");
let running = new AbortController();
let queries = [];

/** Set up the view. */
export function startSearch() {
  acceptFiles("search", search, setProblem);
  byId("variants").addEventListener("change", () => {
    if (queries.length > 0) search(queries);
  });
}

async function search(files) {
  running.abort();
  running = new AbortController();
  queries = files;
  const options = { setStatus, signal: running.signal };
  results.classList.add("waiting");
  try {
    show(await searchAll(files, byId("variants").checked, options), options);
  } catch (error) {
    if (isAborted(error)) return;
    fail(error.message);
  }
  results.classList.remove("waiting");
}

function show(found, options) {
  const [first, ...more] = found;
  if (more.length === 0 && first.problem) return fail(first.problem);
  results.replaceChildren(...(more.length > 0 ? showList(found, options) : renderResult(first, options)));
  results.hidden = false;
  byId("view-search").classList.add("has-results");
  clear();
  announce(results.querySelector("h2").textContent);
}

function fail(line) {
  results.hidden = true;
  setProblem(line);
}

/** The list of all results; each opens in detail, with a button back to the list. */
function showList(found, options) {
  const all = [...renderList(found, open, options)];
  return all;

  function open(one, button) {
    const goBack = () => {
      results.replaceChildren(...all);
      button.focus();
    };
    const back = make("button", { type: "button", onclick: goBack }, `Back to all ${formatCount(found.length)} pictures`);
    results.replaceChildren(make("p", { class: "back" }, back), ...renderResult(one, options));
    const title = results.querySelector("h2");
    title.tabIndex = -1;
    title.focus();
    results.scrollIntoView();
  }
}

const isCandidate = (match) => match.verdict !== "none";

function* renderResult({ file, matches, search, milliseconds }, options) {
  const [best, ...more] = matches.filter(isCandidate);
  const others = matches.filter((match) => !isCandidate(match));
  const words = best ? `False-match probability: ${best.false_match_text}.` : noMatchText(matches);
  const compares = best && best.thumbnail !== null ? compareButton(file, best, "primary") : null;
  yield make("div", { class: "head" }, make("div", {}, headline(best), make("p", { class: "lead" }, words)), compares);
  yield pair(file, best, options);
  if (more.length > 0) yield make("h3", {}, "Other candidates");
  if (more.length > 0) yield list(file, more, options);
  if (others.length > 0) {
    const title = best ? `${formatCount(others.length)} more, as far away as unrelated photos` : "Nearest references";
    yield make("details", {}, make("summary", {}, title), list(file, others, options));
  }
  yield make("p", { class: "soft small" }, `Searched ${formatSearch(search)}${milliseconds ? formatTimings(milliseconds) : ""}.`);
}

function formatTimings(milliseconds) {
  const seconds = Object.values(milliseconds).reduce((sum, each) => sum + each, 0) / 1000;
  return `, in ${seconds.toFixed(2)} s`;
}

function headline(best) {
  if (best === undefined) return make("h2", {}, "No match in this collection");
  return make("h2", { class: "verdict" }, `${verdictText(best)}: `, make("b", {}, best.photo));
}

function noMatchText(matches) {
  if (matches.length === 0) return "The collection has no reference near this picture.";
  return "The nearest references are as far away as those of unrelated pictures.";
}

function pair(file, best, options) {
  const yours = make("figure", {}, fileImage(file, "Your picture"), make("figcaption", {}, "Your picture"));
  if (best === undefined) return make("div", { class: "pair" }, yours);
  const caption = make("figcaption", {}, make("span", { class: "path" }, best.photo), ` · ${best.state}`);
  return make(
    "div",
    { class: "pair" },
    yours,
    make("figure", {}, serviceImage(best.thumbnail && `${best.thumbnail}?side=640`, best.photo, options), caption),
  );
}

function list(file, matches, options) {
  return make("ul", { class: "matches" }, ...matches.map((match) => row(file, match, options)));
}

function row(file, match, options) {
  const isDistractor = match.state === "distractor";
  const verdict = isCandidate(match) ? [verdictText(match)] : [];
  const facts = [
    ...verdict,
    `false match ${match.false_match_text}`,
    match.state,
  ];
  return make(
    "li",
    { class: isDistractor ? "distractor" : null },
    isDistractor ? null : make("div", { class: "thumb" }, serviceImage(match.thumbnail, "", options)),
    make(
      "div",
      {},
      make("p", { class: "name", title: match.photo }, match.photo),
      make("p", { class: "soft" }, capitalize(facts.join(" · "))),
    ),
    match.thumbnail === null ? null : compareButton(file, match),
  );
}

function compareButton(file, match, look = null) {
  const attributes = { type: "button", class: look, onclick: () => openComparison(file, match) };
  return make("button", attributes, "Compare", make("span", { class: "hidden" }, ` with ${match.photo}`));
}
