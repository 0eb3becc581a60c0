/** Results of several pictures: the best match of each, and a button that opens its details. */
import { make } from "./dom.js";
import { fileImage, serviceImage } from "./images.js";
import { capitalize, formatCount, plural, verdictText } from "./format.js";

/** A heading and a list, smallest false-match probability first; `open` gets a result and the button that opens it. */
export function* renderList(found, open, options) {
  const number = (which) => found.filter(which).length;
  const matched = number((each) => each.verdict === "match");
  const possible = number((each) => each.verdict === "possible"); // up to 30 of 100 unrelated pictures
  const failed = number((each) => each.problem);
  const verb = matched > 1 ? "have" : "has";
  yield make("h2", {}, `${matched ? formatCount(matched) : "None"} of ${formatCount(found.length)} pictures ${verb} a match`);
  const more = [
    possible > 0 ? `${formatCount(possible)} possible match${possible > 1 ? "es" : ""}.` : "",
    failed > 0 ? `${plural(failed, "picture")} could not be searched for.` : "",
  ];
  yield make("p", { class: "lead" }, more.join(" ").trim());
  const rows = [...found].sort((one, other) => rank(one) - rank(other)).map((each) => row(each, open, options));
  yield make("ul", { class: "matches each" }, ...rows);
}

const best = ({ matches }) => matches?.find((match) => match.verdict !== "none") ?? null;

/** Sort key: the false-match probability of the best match, then pictures that failed, then pictures without a match. */
function rank(found) {
  if (found.problem) return 2;
  return best(found)?.false_match_probability ?? 3;
}

function row(found, open, options) {
  const { file, problem } = found;
  const match = best(found);
  const button = make("button", { type: "button", onclick: () => open(found, button) }, "Details");
  button.append(make("span", { class: "hidden" }, ` of ${file.name}`));
  return make(
    "li",
    {},
    make("div", { class: "thumb" }, fileImage(file, "")),
    make("div", {}, make("p", { class: "name" }, file.name), ...words(problem?.replace(`${file.name}: `, ""), match)),
    match && make("div", { class: "thumb match" }, serviceImage(match.thumbnail, "", options)),
    problem ? null : button,
  );
}

function words(problem, match) {
  if (problem) return [make("p", { class: "problem" }, capitalize(problem))];
  if (match === null) return [make("p", { class: "soft" }, "No match in this collection")];
  return [
    make("p", { class: "verdict" }, `${verdictText(match)}: `, make("b", {}, match.photo)),
    make("p", { class: "soft" }, `False-match probability: ${match.false_match_text}`),
  ];
}
