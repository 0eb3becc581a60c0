/** The first view: whose picture is this, or whose are these? */
import { isAborted } from "./api.js";
import { openComparison } from "./compare.js";
import { acceptFiles } from "./file_input.js";
import { byId, announce, make, notice } from "./dom.js";
import { searchAll } from "./batch_search.js";
import { fileImage, serviceImage } from "./images.js";
import { renderList } from "./result_list.js";
import { capitalize, formatCount, isMatch, verdictTitle } from "./format.js";

const { setStatus, setProblem, clear } = notice("search-notice");
const results = byId("results");
let running = new AbortController();
let queries = [];

/** Take pictures to search for. */
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

/** The list of all; who opens one sees what a search for it alone shows, and a way back. */
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

function* renderResult({ file, matches, plan, milliseconds }, options) {
  const [best, ...more] = matches.filter(isMatch);
  const others = matches.filter((match) => !isMatch(match));
  const words = best ? `Chance of a false match: ${best.false_match_text}.` : noMatchText(matches);
  const compares = best && best.thumbnail !== null ? compareButton(file, best, "primary") : null;
  yield make("div", { class: "head" }, make("div", {}, headline(best), make("p", { class: "lead" }, words)), compares);
  yield pair(file, best, options);
  if (more.length > 0) yield make("h3", {}, "It may also be");
  if (more.length > 0) yield list(file, more, options);
  if (others.length > 0) {
    const title = best ? `${formatCount(others.length)} more, no nearer than unrelated photos come` : "What came nearest";
    yield make("details", {}, make("summary", {}, title), list(file, others, options));
  }
  yield make("p", { class: "soft small" }, `Searched ${plan}${milliseconds ? formatTimings(milliseconds) : ""}.`);
}

function formatTimings(milliseconds) {
  const seconds = Object.values(milliseconds).reduce((sum, each) => sum + each, 0) / 1000;
  return `, in ${seconds.toFixed(2)} s`;
}

function headline(best) {
  if (best === undefined) return make("h2", {}, "No sign of it in this collection");
  return make("h2", { class: "verdict" }, verdictTitle(best), make("b", {}, best.photo));
}

function noMatchText(matches) {
  if (matches.length === 0) return "Nothing in it lies near this picture.";
  return "What came nearest is no nearer than unrelated pictures come.";
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
  const sign = isMatch(match) ? [match.verdict] : [];
  const facts = [
    ...sign,
    `false match ${match.false_match_text}`,
    isDistractor ? "a distractor" : match.state,
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
