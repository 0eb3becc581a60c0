/** Pictures of the service, which only the key opens, and of files that a person chose. */
import { isAborted, picture } from "./api.js";
import { image, make } from "./dom.js";

/** A picture at an address of the service; it comes when it is there, unless that is given up by the signal. */
export function serviceImage(address, alt, { signal }) {
  if (address === null) return make("span", { class: "no-picture" }, "No picture of it is kept");
  const img = image({ alt, class: "loading" });
  picture(address, { signal }).then(
    (url) => show(img, url),
    (error) => {
      if (!isAborted(error)) img.replaceWith(make("span", { class: "no-picture" }, error.message));
    },
  );
  return img;
}

/** A picture in a file or blob of this page; formats that the browser does not know get a line. */
export function fileImage(blob, alt) {
  const img = image({ alt, loading: "lazy" }); // of many, those in sight
  show(img, URL.createObjectURL(blob));
  return img;
}

function show(img, url) {
  const revoke = () => URL.revokeObjectURL(url);
  img.addEventListener("load", revoke, { once: true });
  img.addEventListener("error", revoke, { once: true });
  img.src = url;
  img.classList.remove("loading");
}
