/** The third view: what the collection holds. */
import { givenUp, json, request } from "./api.js";
import { at, figure, heard, make, notice } from "./element.js";
import { served } from "./pictures.js";
import { bytes, capital, count, day, many, time } from "./words.js";

const AT_ONCE = 30;
const PAUSE = 250; // milliseconds without a key pressed, then the name is searched for
const { say, problem, clear } = notice("collection-notice");
let running = new AbortController();
let next = null;
let coming = false;

/** Make the view ready; it is filled each time it is shown. */
export function startCollection() {
  let typing;
  at("name").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(list, PAUSE);
  });
  at("name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    list();
  });
  at("more").addEventListener("click", showMore);
}

/** Show the counts and the latest photos. */
export async function showCollection() {
  await Promise.all([counts(), list()]);
}

async function counts() {
  try {
    const info = await json("/v1/info");
    at("counts").replaceChildren(
      figure("Photos", count(info.photos), "in this collection"),
      figure("Activated", count(info.activated), "made easier to find"),
      figure("Unchanged", count(info.unchanged), "released as they were"),
      figure("Passive", count(info.passive), "not released"),
      figure("Strangers", count(info.background), "to search among"),
      figure("Storage", bytes(info.bytes_on_disk), "on the disk"),
    );
  } catch (error) {
    problem(error.message);
  }
}

async function list() {
  const name = at("name").value.trim();
  at("photos-title").textContent = name ? `Photos named “${name}”` : "Latest photos";
  const query = new URLSearchParams({ limit: AT_ONCE, ...(name && { name }) });
  running.abort();
  running = new AbortController();
  say("Looking…");
  await page(`/v1/photos?${query}`, (cards, total) => {
    at("photos").replaceChildren(...cards);
    if (total > 0) heard(many(total, "photo"));
  });
}

async function showMore() {
  if (coming) return; // whoever clicks twice wants what comes once
  coming = true;
  await page(next, (cards) => {
    at("photos").append(...cards);
    cards[0]?.querySelector("button").focus();
  });
  coming = false;
}

async function page(address, put) {
  const options = { say, signal: running.signal };
  try {
    const found = await json(address, options);
    next = found.next;
    put(
      found.photos.map((photo) => card(photo, options)),
      found.total,
    );
    at("more").hidden = next === null;
    if (found.total > 0) clear();
    else say(at("name").value.trim() ? "No photo has a name like this." : "There are no photos yet: activate one.");
  } catch (error) {
    if (!givenUp(error)) problem(error.message);
  }
}

function card(photo, options) {
  const name = photo.photo;
  const item = make(
    "li",
    {},
    make("div", { class: "thumb" }, served(photo.thumbnail, "", options)),
    make("h3", { title: photo.photo }, name),
    make("p", { class: "soft small" }, `${capital(photo.state)} · `, added(photo.added)),
    make(
      "button",
      { type: "button", class: "quiet", onclick: () => confirmRemoval(photo, item) },
      "Remove",
      make("span", { class: "hidden" }, ` ${name}`),
    ),
  );
  return item;
}

const added = (when) => make("time", { datetime: when, title: time(when) }, day(when));

function confirmRemoval(photo, item) {
  const dialog = at("remove");
  const yes = at("remove-yes");
  const told = notice("remove-notice");
  told.clear();
  at("remove-title").textContent = `Remove ${photo.photo}?`;
  yes.disabled = false;
  const remove = async () => {
    yes.disabled = true;
    try {
      await request(`/v1/photos/${photo.id}`, { method: "DELETE", say: told.say });
      if (yes.onclick === remove) dialog.close(); // else it asks about another one by now
      gone(photo, item);
    } catch (error) {
      if (yes.onclick !== remove) return problem(error.message);
      told.problem(error.message);
      yes.disabled = false;
    }
  };
  yes.onclick = remove;
  dialog.showModal();
}

function gone(photo, item) {
  const neighbour = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (neighbour?.querySelector("button") ?? at("photos-title")).focus();
  say(`Removed ${photo.photo}.`);
  counts();
}
