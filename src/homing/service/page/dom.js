/** Helpers to create elements. Text is never parsed as HTML, so file names are safe. */

/** An element by its id. */
export const byId = (id) => document.getElementById(id);

/** Create an element; `on…` attributes are listeners, null children are omitted. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A notice area: shows a status (polite live region) or a problem (alert). */
export function notice(id) {
  const [status, problem] = byId(id).children;
  const show = (said, wrong) => {
    status.textContent = said;
    problem.textContent = wrong;
  };
  return { setStatus: (text) => show(text, ""), setProblem: (text) => show("", text), clear: () => show("", "") };
}

/** Announce a change to screen readers: on the page or, while one is open, in a dialog. */
export function announce(text, id = "announcer") {
  byId(id).textContent = text;
}

/** An image, replaced by a line of text if the browser cannot show it, as with TIFF. */
export function image(attributes) {
  const picture = make("img", attributes);
  picture.addEventListener("error", () => {
    picture.replaceWith(make("span", { class: "no-picture" }, "No preview of this file"));
  });
  return picture;
}

/** One figure of a description list: name, value and meaning. */
export function figure(name, value, meaning) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value), make("dd", { class: "soft small" }, meaning));
}
