/** The first view: whose picture is this, or whose are these? */
import { givenUp } from "./api.js";
import { openComparison } from "./compare.js";
import { takePictures } from "./dropping.js";
import { at, heard, make, notice } from "./element.js";
import { find } from "./finding.js";
import { local, served } from "./pictures.js";
import { toldOfEach } from "./several.js";
import { capital, copyOf, count, isSign } from "./words.js";

const { say, problem, clear } = notice("search-notice");
const answer = at("answer");
let running = new AbortController();
let queries = [];

/** Take pictures to search for. */
export function startSearch() {
  takePictures("search", search, problem);
  at("turned").addEventListener("change", () => {
    if (queries.length > 0) search(queries);
  });
}

async function search(files) {
  running.abort();
  running = new AbortController();
  queries = files;
  const options = { say, signal: running.signal };
  answer.classList.add("waiting");
  try {
    show(await find(files, at("turned").checked, options), options);
  } catch (error) {
    if (givenUp(error)) return;
    fail(error.message);
  }
  answer.classList.remove("waiting");
}

function show(found, options) {
  const [first, ...more] = found;
  if (more.length === 0 && first.problem) return fail(first.problem);
  answer.replaceChildren(...(more.length > 0 ? ofEach(found, options) : told(first, options)));
  answer.hidden = false;
  at("view-search").classList.add("answered");
  clear();
  heard(answer.querySelector("h2").textContent);
}

function fail(line) {
  answer.hidden = true;
  problem(line);
}

/** The list of all; who opens one sees what a search for it alone shows, and a way back. */
function ofEach(found, options) {
  const all = [...toldOfEach(found, open, options)];
  return all;

  function open(one, button) {
    const goBack = () => {
      answer.replaceChildren(...all);
      button.focus();
    };
    const back = make("button", { type: "button", onclick: goBack }, `Back to all ${count(found.length)} pictures`);
    answer.replaceChildren(make("p", { class: "back" }, back), ...told(one, options));
    const title = answer.querySelector("h2");
    title.tabIndex = -1;
    title.focus();
    answer.scrollIntoView();
  }
}

function* told({ file, matches, plan, milliseconds }, options) {
  const [best, ...more] = matches.filter(isSign);
  const others = matches.filter((match) => !isSign(match));
  const words = best ? `Chance of a false match: ${best.chance_in_words}.` : nothing(matches);
  const compares = best && best.thumbnail !== null ? compareButton(file, best, "primary") : null;
  yield make("div", { class: "head" }, make("div", {}, headline(best), make("p", { class: "lead" }, words)), compares);
  yield pair(file, best, options);
  if (more.length > 0) yield make("h3", {}, "It may also be");
  if (more.length > 0) yield list(file, more, options);
  if (others.length > 0) {
    const title = best ? `${count(others.length)} more, no nearer than unrelated photos come` : "What came nearest";
    yield make("details", {}, make("summary", {}, title), list(file, others, options));
  }
  yield make("p", { class: "soft small" }, `Searched ${plan}${milliseconds ? took(milliseconds) : ""}.`);
}

function took(milliseconds) {
  const seconds = Object.values(milliseconds).reduce((sum, each) => sum + each, 0) / 1000;
  return `, in ${seconds.toFixed(2)} s`;
}

function headline(best) {
  if (best === undefined) return make("h2", {}, "No sign of it in this collection");
  return make("h2", { class: "verdict" }, copyOf(best), make("b", {}, best.photo));
}

function nothing(matches) {
  if (matches.length === 0) return "Nothing in it lies near this picture.";
  return "What came nearest is no nearer than unrelated pictures come.";
}

function pair(file, best, options) {
  const yours = make("figure", {}, local(file, "Your picture"), make("figcaption", {}, "Your picture"));
  if (best === undefined) return make("div", { class: "pair" }, yours);
  const caption = make("figcaption", {}, make("span", { class: "path" }, best.photo), ` · ${best.state}`);
  return make(
    "div",
    { class: "pair" },
    yours,
    make("figure", {}, served(best.thumbnail && `${best.thumbnail}?side=640`, best.photo, options), caption),
  );
}

function list(file, matches, options) {
  return make("ul", { class: "matches" }, ...matches.map((match) => row(file, match, options)));
}

function row(file, match, options) {
  const stranger = match.state === "background";
  const sign = isSign(match) ? [match.verdict] : [];
  const told = [
    ...sign,
    `false match ${match.chance_in_words}`,
    stranger ? "a stranger of the background" : match.state,
  ];
  return make(
    "li",
    { class: stranger ? "stranger" : null },
    stranger ? null : make("div", { class: "thumb" }, served(match.thumbnail, "", options)),
    make(
      "div",
      {},
      make("p", { class: "name", title: match.photo }, match.photo),
      make("p", { class: "soft" }, capital(told.join(" · "))),
    ),
    match.thumbnail === null ? null : compareButton(file, match),
  );
}

function compareButton(file, match, look = null) {
  const attributes = { type: "button", class: look, onclick: () => openComparison(file, match) };
  return make("button", attributes, "Compare", make("span", { class: "hidden" }, ` with ${match.photo}`));
}
