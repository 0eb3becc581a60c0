/** Numbers, times and verdicts as text. */

const language = "en-US";
const counts = new Intl.NumberFormat(language);
const days = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
const times = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "short" });

/** 118,299 */
export const formatCount = (number) => counts.format(number);

/** 1 photo, 2 photos */
export const plural = (number, one) => `${formatCount(number)} ${one}${number === 1 ? "" : "s"}`;

/** 1.6 GB */
export function formatBytes(number) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(number, 1)) / 3)));
  const style = { style: "unit", unit: units[step], maximumSignificantDigits: 3 };
  return new Intl.NumberFormat(language, style).format(number / 1000 ** step);
}

/** Mar 4, 2026 */
export const formatDay = (text) => days.format(new Date(text));

/** Wednesday, March 4, 2026 at 2:05 PM */
export const formatTime = (text) => times.format(new Date(text));

/** Passive */
export const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const VERDICTS = { match: "Match", possible: "Possible match", none: "No match" };

/** Match, Possible match, No match */
export const verdictText = ({ verdict }) => VERDICTS[verdict];

/** 118,299 references, 4 of 4,096 cells */
export function formatSearch({ references, cells, probes }) {
  const probed = cells === null || probes === null ? "" : `, ${formatCount(probes)} of ${formatCount(cells)} cells`;
  return `${plural(references, "reference")}${probed}`;
}
