// The head of a review: what it is about, how it ends, and its files.

import { h } from "../../parts/dom.js";
import { ago, exact, many } from "../../parts/format.js";
import { windowed } from "../../parts/windowed.js";
import { reveal, revealText } from "./names.js";

export const FILE_HEIGHT = 32;
const CHANGES = /** @type {Record<string, string>} */ ({
  added: "A",
  removed: "D",
  modified: "M",
  renamed: "R",
  copied: "C",
  retyped: "T",
});

/** @param {number | null} bytes */
function size(bytes) {
  if (bytes === null) return "nothing";
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1048576 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

/**
 * Why a file has no lines to show; empty if it has.
 * @param {any} file
 */
export function whyNoLines(file) {
  if (file.form === "binary") return `A binary file: ${size(file.old_size)} before, ${size(file.new_size)} now.`;
  if (file.form === "large") return `Too large to be compared by lines: ${size(file.old_size)} before, ${size(file.new_size)} now.`;
  if (file.hunks?.length) return "";
  if (file.change === "renamed") return `Renamed from ${revealText(file.old_path ?? "")}; its contents are the same.`;
  if (file.old_mode !== file.new_mode && file.change === "modified") return `Its mode was ${file.old_mode} and is ${file.new_mode}; its contents are the same.`;
  return file.hunks ? "It is empty." : "";
}

/**
 * @param {any} answer
 * @param {{ previous: any, next: any, refusal: string, isPast: boolean, drafts: number, choose: (source: string) => void,
 *   end: (step: any) => void }} options
 */
export function drawHead(answer, { previous, next, refusal, isPast, drafts, choose, end }) {
  const { subject, source, total } = answer;
  const facts = [subject.kind, subject.initiative !== subject.name && subject.initiative, subject.status.replaceAll("_", " "), subject.agents.join(", ")];
  return h(
    "section",
    { key: "head", class: "review-head", "aria-labelledby": "review-title" },
    h(
      "div",
      { class: "top" },
      h("h1", { id: "review-title" }, subject.name),
      !isPast &&
        subject.steps.length > 0 &&
        h(
          "div",
          { class: "buttons" },
          subject.steps.map((/** @type {any} */ each, /** @type {number} */ at) => h("button", { key: each.label, class: at === 0 ? "strong" : null, onclick: () => end(each) }, each.label)),
          drafts > 0 && h("span", { class: "mute" }, `${many(drafts, "comment")} not sent yet`),
        ),
      h(
        "nav",
        { "aria-label": "Reviews" },
        h("a", { href: "/review" }, "All reviews"),
        previous && h("a", { href: `/review/${previous.id}`, title: previous.name }, "‹ Previous"),
        next && h("a", { href: `/review/${next.id}`, title: next.name }, "Next ›"),
      ),
    ),
    h(
      "p",
      { class: "mute facts-line" },
      h("span", null, facts.filter(Boolean).join(" · ")),
      h("time", { datetime: subject.since, title: exact(subject.since) }, `${ago(subject.since)} ago`),
      source && compared(answer, choose),
      total.files > 0 && h("span", { key: "total" }, `${many(total.files, "file")}, +${total.added.toLocaleString("en")} −${total.removed.toLocaleString("en")}`),
    ),
    answer.problem && h("p", { class: "calm" }, `There is no diff: ${answer.problem}.`),
    answer.cut.map((/** @type {string} */ each) => h("p", { key: each, class: "mute" }, reveal(each))),
    refusal && h("p", { class: "trouble", role: "alert" }, refusal),
  );
}

/**
 * Which commits are compared.
 * @param {any} answer
 * @param {(source: string) => void} choose
 */
function compared({ source, sources }, choose) {
  const branches = () =>
    h(
      "select",
      { "aria-label": "Branch", onchange: (/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.currentTarget).value) },
      sources.map((/** @type {string} */ each) => h("option", { key: each, value: each, selected: each === source.name }, revealText(each))),
    );
  return h(
    "span",
    { key: "compared" },
    sources.length > 1 ? branches() : h("code", null, reveal(source.name)),
    source.base && [` since ${source.base_name} at `, h("code", { title: source.base }, source.base.slice(0, 10))],
    source.uncommitted > 0 && `, ${many(source.uncommitted, "file")} of its worktree not committed`,
  );
}

/**
 * @param {any[]} files
 * @param {{ current: string | null, isViewed: (file: any) => boolean, drafts: Map<string, number>,
 *   open: (path: string) => void, redraw: () => void }} options
 */
export function drawFiles(files, { current, isViewed, drafts, open, redraw }) {
  const viewed = files.filter(isViewed).length;
  const list = windowed({
    name: "review-files",
    label: "Files",
    items: files,
    rowHeight: FILE_HEIGHT,
    redraw,
    row: (file) => {
      const at = file.path.lastIndexOf("/") + 1;
      const notes = file.open_threads + (drafts.get(file.path) ?? 0);
      const isSeen = isViewed(file);
      const counts = file.added === null ? file.form : `+${file.added} −${file.removed}`;
      return h(
        "li",
        { key: file.path, class: `file${file.path === current ? " chosen" : ""}${isSeen ? " seen" : ""}` },
        h(
          "button",
          {
            class: "quiet",
            "aria-current": file.path === current ? "true" : null,
            title: revealText(file.old_path ? `${file.old_path} → ${file.path}` : file.path),
            onclick: () => open(file.path),
          },
          h("span", { class: `change ${file.change}`, title: file.change }, CHANGES[file.change] ?? "M"),
          h("bdi", { class: "path" }, h("span", { class: "name" }, reveal(file.path.slice(at))), at > 0 && h("span", { class: "mute folder" }, ` ${revealText(file.path.slice(0, at))}`)),
          notes > 0 && h("span", { class: "notes", title: `${many(notes, "comment")}` }, `${notes} ✎`),
          h("span", { class: "mute counts" }, isSeen ? "viewed" : counts),
        ),
      );
    },
  });
  return h("div", { key: "files", class: "files" }, h("h2", null, "Files ", h("span", { class: "mute" }, `${viewed} of ${files.length} viewed`)), list);
}
