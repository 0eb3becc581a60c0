/** Images of the service, fetched with the key, and of local files. */
import { isAborted, picture } from "./api.js";
import { image, make } from "./dom.js";

/** An image of the service; loading stops when the signal aborts. */
export function serviceImage(address, alt, { signal }) {
  if (address === null) return make("span", { class: "no-picture" }, "No picture stored");
  const img = image({ alt, class: "loading" });
  picture(address, { signal }).then(
    (url) => show(img, url),
    (error) => {
      if (!isAborted(error)) img.replaceWith(make("span", { class: "no-picture" }, error.message));
    },
  );
  return img;
}

/** An image of a local file or blob. */
export function fileImage(blob, alt) {
  const img = image({ alt, loading: "lazy" }); // only those in view
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
