/** Navigation between the views. */
import { startActivation, showActivation } from "./activate.js";
import { showCollection, startCollection } from "./collection.js";
import { startComparison } from "./compare.js";
import { byId } from "./dom.js";
import { startSearch } from "./search.js";

const VIEWS = { search: () => {}, activate: showActivation, collection: showCollection };
const links = [...document.querySelectorAll("nav a")];

function currentView() {
  const name = location.hash.slice(1) || "search";
  return name in VIEWS ? name : null;
}

function show(name) {
  for (const view of Object.keys(VIEWS)) byId(`view-${view}`).hidden = view !== name;
  for (const link of links) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${links.find((link) => link.hash === `#${name}`).textContent} · homing`;
  VIEWS[name]();
}

addEventListener("hashchange", () => {
  const name = currentView();
  if (name === null) return; // the skip link
  show(name);
  scrollTo(0, 0);
  byId(`${name}-title`).focus();
});

startSearch();
startActivation();
startCollection();
startComparison();
show(currentView() ?? "search");
