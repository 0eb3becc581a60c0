/** What was found for several pictures: of each the best match in words, and a way to all that is known of it. */
import { make } from "./dom.js";
import { fileImage, serviceImage } from "./images.js";
import { capitalize, formatCount, isMatch, plural, verdictTitle } from "./format.js";

/** A heading and a list, the likeliest first; `open` gets what was found for one, and the button for it. */
export function* renderList(found, open, options) {
  const number = (which) => found.filter(which).length;
  const perhaps = number((each) => best(each)?.verdict === "perhaps");
  const matched = number(best) - perhaps; // which up to 30 of 100 unrelated pictures are by chance
  const failed = number((each) => each.problem);
  const verb = matched > 1 ? "have" : "has";
  yield make("h2", {}, `${matched ? formatCount(matched) : "None"} of ${formatCount(found.length)} pictures ${verb} a match`);
  const more = [
    perhaps > 0 ? `${formatCount(perhaps)}${matched > 0 ? " more" : ""}, perhaps.` : "",
    failed > 0 ? `${plural(failed, "picture")} could not be searched for.` : "",
  ];
  yield make("p", { class: "lead" }, more.join(" ").trim());
  const rows = [...found].sort((one, other) => rank(one) - rank(other)).map((each) => row(each, open, options));
  yield make("ul", { class: "matches each" }, ...rows);
}

const best = ({ matches }) => matches?.find(isMatch) ?? null;

/** By the chance of the best match, then what could not be searched for, then those of which there is no sign. */
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
  if (match === null) return [make("p", { class: "soft" }, "No sign of it in this collection")];
  return [
    make("p", { class: "verdict" }, verdictTitle(match), make("b", {}, match.photo)),
    make("p", { class: "soft" }, `Chance of a false match: ${match.false_match_text}`),
  ];
}
