/** The first view: whose picture is this? */
import { form, givenUp, json } from "./api.js";
import { openComparison } from "./compare.js";
import { takePictures } from "./dropping.js";
import { at, heard, make, notice } from "./element.js";
import { local, served } from "./pictures.js";
import { capital, count } from "./words.js";

const NONE = "no sign of it";
const { say, problem, clear } = notice("search-notice");
let running = new AbortController();
let query = null;

/** Take pictures to search for. */
export function startSearch() {
  takePictures("search", search);
  at("turned").addEventListener("change", () => {
    if (query !== null) search(query, 1);
  });
}

async function search(file, given) {
  running.abort();
  running = new AbortController();
  query = file;
  const options = { say, signal: running.signal };
  const answer = at("answer");
  say(given > 1 ? `One picture at a time: searching for ${file.name}.` : "Searching…");
  answer.classList.add("waiting");
  try {
    const address = `/v1/search?k=10&turned=${at("turned").checked}`;
    const found = await json(address, { ...options, method: "POST", body: form({ photo: file }) });
    answer.replaceChildren(...told(file, found, options));
    answer.hidden = false;
    at("view-search").classList.add("answered");
    clear();
    heard(answer.querySelector("h2").textContent);
  } catch (error) {
    if (givenUp(error)) return;
    answer.hidden = true;
    problem(error.message);
  }
  answer.classList.remove("waiting");
}

function* told(file, { matches, plan, milliseconds }, options) {
  const [best, ...more] = matches.filter((match) => match.verdict !== NONE);
  const others = matches.filter((match) => match.verdict === NONE);
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
  const seconds = Object.values(milliseconds).reduce((sum, each) => sum + each, 0) / 1000;
  yield make("p", { class: "soft small" }, `Searched ${plan}, in ${seconds.toFixed(2)} s.`);
}

function headline(best) {
  if (best === undefined) return make("h2", {}, "No sign of it in this collection");
  const verdict = best.verdict === "perhaps" ? "perhaps a copy" : best.verdict;
  return make("h2", { class: "verdict" }, `${capital(verdict)} of `, make("b", {}, best.photo));
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
  const sign = match.verdict === NONE ? [] : [match.verdict];
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
