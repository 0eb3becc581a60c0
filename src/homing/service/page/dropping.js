/** Pictures that are chosen, dropped anywhere on the page, or pasted. */
import { at } from "./element.js";

const KINDS = "image/jpeg,image/png,image/webp,image/tiff,image/avif,image/bmp";

/**
 * Pictures for one view: `take` gets those that came together, whichever way, while the view is shown.
 * `say` is told where what was dropped is no file, as what is dragged off some pages.
 */
export function takePictures(view, take, say) {
  const input = at(`${view}-file`);
  const drop = at(`${view}-drop`);
  const shown = () => !at(`view-${view}`).hidden && !document.querySelector("dialog[open]");
  const some = (files) => {
    if (files.length > 0) take(files);
  };

  input.accept = KINDS;
  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = ""; // the same file may be chosen again
    some(files);
  });
  document.addEventListener("paste", (event) => {
    if (shown()) some([...event.clipboardData.files]);
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault(); // else the browser would leave for the picture
    if (shown()) drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (shown() && files.length === 0) say("That is no file. Save the picture first, or copy it and paste it here.");
    if (shown()) some(files);
  });
}
