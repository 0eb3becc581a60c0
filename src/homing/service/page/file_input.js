/** File input: pictures are chosen, dropped anywhere on the page, or pasted. */
import { byId } from "./dom.js";

const KINDS = "image/jpeg,image/png,image/webp,image/tiff,image/avif,image/heic,image/heif,.heic,.heif,.hif,image/bmp";

/**
 * Call `take` with the files that are chosen, dropped or pasted while the view is shown.
 * `setProblem` is called if something other than a file is dropped, such as a picture of another page.
 */
export function acceptFiles(view, take, setProblem) {
  const input = byId(`${view}-file`);
  const drop = byId(`${view}-drop`);
  const isActive = () => !byId(`view-${view}`).hidden && !document.querySelector("dialog[open]");
  const acceptAny = (files) => {
    if (files.length > 0) take(files);
  };

  input.accept = KINDS;
  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = ""; // so that the same file can be chosen again
    acceptAny(files);
  });
  document.addEventListener("paste", (event) => {
    if (isActive()) acceptAny([...event.clipboardData.files]);
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault(); // otherwise the browser would open the picture
    if (isActive()) drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (isActive() && files.length === 0) setProblem("This is not a file. Save the picture first, or copy it and paste it here.");
    if (isActive()) acceptAny(files);
  });
}
