/** Pictures of the service, which only the key opens, and of files that a person chose. */
import { givenUp, picture } from "./api.js";
import { image, make } from "./element.js";

/** A picture at an address of the service; it comes when it is there, unless that is given up by the signal. */
export function served(address, alt, { signal }) {
  if (address === null) return make("span", { class: "no-picture" }, "No picture of it is kept");
  const shown = image({ alt, class: "coming" });
  picture(address, { signal }).then(
    (url) => show(shown, url),
    (error) => {
      if (!givenUp(error)) shown.replaceWith(make("span", { class: "no-picture" }, error.message));
    },
  );
  return shown;
}

/** A picture in a file or blob of this page; formats that the browser does not know get a line. */
export function local(blob, alt) {
  const shown = image({ alt, loading: "lazy" }); // of many, those in sight
  show(shown, URL.createObjectURL(blob));
  return shown;
}

function show(shown, url) {
  const letGo = () => URL.revokeObjectURL(url);
  shown.addEventListener("load", letGo, { once: true });
  shown.addEventListener("error", letGo, { once: true });
  shown.src = url;
  shown.classList.remove("coming");
}
