/** The collection view: counts and references. */
import { isAborted, json, request } from "./api.js";
import { byId, figure, announce, make, notice } from "./dom.js";
import { serviceImage } from "./images.js";
import { capitalize, formatBytes, formatCount, formatDay, formatTime, plural } from "./format.js";

const PAGE_SIZE = 30;
const DEBOUNCE = 250; // milliseconds after the last key press
const { setStatus, setProblem, clear } = notice("collection-notice");
let running = new AbortController();
let next = null;
let loading = false;

/** Set up the view; it is filled each time it is shown. */
export function startCollection() {
  let typing;
  byId("name").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(list, DEBOUNCE);
  });
  byId("name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    list();
  });
  byId("more").addEventListener("click", showMore);
}

/** Load the counts and the latest photos. */
export async function showCollection() {
  await Promise.all([counts(), list()]);
}

async function counts() {
  try {
    const info = await json("/v1/info");
    byId("counts").replaceChildren(
      figure("Photos", formatCount(info.photos), "in this collection"),
      figure("Activated", formatCount(info.activated), "easier to find"),
      figure("Unchanged", formatCount(info.unchanged), "released unchanged"),
      figure("Passive", formatCount(info.passive), "not released"),
      figure("Distractors", formatCount(info.distractors), "other photos in the index"),
      figure("Storage", formatBytes(info.bytes_on_disk), "on disk"),
    );
  } catch (error) {
    setProblem(error.message);
  }
}

async function list() {
  const name = byId("name").value.trim();
  byId("photos-title").textContent = name ? `Photos named “${name}”` : "Latest photos";
  const query = new URLSearchParams({ limit: PAGE_SIZE, ...(name && { name }) });
  running.abort();
  running = new AbortController();
  setStatus("Loading…");
  await page(`/v1/photos?${query}`, (cards, total) => {
    byId("photos").replaceChildren(...cards);
    if (total > 0) announce(plural(total, "photo"));
  });
}

async function showMore() {
  if (loading) return; // ignore double clicks
  loading = true;
  await page(next, (cards) => {
    byId("photos").append(...cards);
    cards[0]?.querySelector("button").focus();
  });
  loading = false;
}

async function page(address, render) {
  const options = { setStatus, signal: running.signal };
  try {
    const found = await json(address, options);
    next = found.next;
    render(
      found.photos.map((photo) => card(photo, options)),
      found.total,
    );
    byId("more").hidden = next === null;
    if (found.total > 0) clear();
    else setStatus(byId("name").value.trim() ? "No photo has this name." : "There are no photos yet.");
  } catch (error) {
    if (!isAborted(error)) setProblem(error.message);
  }
}

function card(photo, options) {
  const name = photo.photo;
  const item = make(
    "li",
    {},
    make("div", { class: "thumb" }, serviceImage(photo.thumbnail, "", options)),
    make("h3", { title: photo.photo }, name),
    make("p", { class: "soft small" }, `${capitalize(photo.state)} · `, added(photo.added)),
    make(
      "button",
      { type: "button", class: "quiet", onclick: () => confirmRemoval(photo, item) },
      "Remove",
      make("span", { class: "hidden" }, ` ${name}`),
    ),
  );
  return item;
}

const added = (when) => make("time", { datetime: when, title: formatTime(when) }, formatDay(when));

function confirmRemoval(photo, item) {
  const dialog = byId("remove");
  const yes = byId("remove-confirm");
  const dialogNotice = notice("remove-notice");
  dialogNotice.clear();
  byId("remove-title").textContent = `Remove ${photo.photo}?`;
  yes.disabled = false;
  const remove = async () => {
    yes.disabled = true;
    try {
      await request(`/v1/photos/${photo.id}`, { method: "DELETE", setStatus: dialogNotice.setStatus });
      if (yes.onclick === remove) dialog.close(); // otherwise the dialog is open for another photo
      removeCard(photo, item);
    } catch (error) {
      if (yes.onclick !== remove) return setProblem(error.message);
      dialogNotice.setProblem(error.message);
      yes.disabled = false;
    }
  };
  yes.onclick = remove;
  dialog.showModal();
}

function removeCard(photo, item) {
  const neighbor = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (neighbor?.querySelector("button") ?? byId("photos-title")).focus();
  setStatus(`Removed ${photo.photo}.`);
  counts();
}
