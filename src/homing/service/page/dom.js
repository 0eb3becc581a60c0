/** Elements made of text and of other elements. Text is never read as HTML, whatever a photo is called. */

/** An element by its id. */
export const byId = (id) => document.getElementById(id);

/** A new element; attributes that are `on…` are listeners, children that are null are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** What is said in one place of the page: a status, politely, or a problem, at once. */
export function notice(id) {
  const [status, problem] = byId(id).children;
  const show = (said, wrong) => {
    status.textContent = said;
    problem.textContent = wrong;
  };
  return { setStatus: (text) => show(text, ""), setProblem: (text) => show("", text), clear: () => show("", "") };
}

/** Tell those who listen what others see: on the page or, as it hides the page from them, in a dialog. */
export function announce(text, id = "announcer") {
  byId(id).textContent = text;
}

/** A picture that says so if the browser cannot show it, as is the case with TIFF. */
export function image(attributes) {
  const picture = make("img", attributes);
  picture.addEventListener("error", () => {
    picture.replaceWith(make("span", { class: "no-picture" }, "No preview of this file"));
  });
  return picture;
}

/** A figure with its name and what it means, for a list of such. */
export function figure(name, value, meaning) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value), make("dd", { class: "soft small" }, meaning));
}
