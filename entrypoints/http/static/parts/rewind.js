// Rewind: a banner that says which moment is shown, and a bar with a slider over the journal. A step
// is a transaction, as nobody ever saw half of one.

import { draw, h } from "./dom.js";
import { clockTime, exact, many } from "./format.js";
import { isPast, setMoment, shownMoment } from "./moment.js";
import { notify } from "./notices.js";
import { callNow } from "./rpc.js";

/**
 * @typedef {import("./moment.js").Moment} Moment
 * @typedef {{ first: Moment, last: Moment, moments: Moment[], not_known: string[] }} Answer
 * @typedef {{ until?: number | string, after?: number }} Target
 */

const SPEEDS = [1, 5, 20];
/** How long a silence lasts at most when changes are played, in milliseconds. */
const SILENCE = 2000;
const CHUNK = 200;

/**
 * The slider and what it does. `changed` shows the page as of the moment; `move` keeps the moment in
 * the address, in place of the address before if `isStep`; `focus` gives the focus to what begins it.
 * @param {{ banner: Element, bar: Element, changed: () => Promise<void>, move: (isStep: boolean) => void, focus: () => void }} options
 */
export function createRewind({ banner, bar, changed, move, focus }) {
  /** @type {Moment} */
  let first = { seq: 0, time: "" };
  /** @type {Moment} */
  let last = { seq: 0, time: "" };
  /** @type {string[]} */
  let notKnown = [];
  let seen = 0;
  let speed = SPEEDS[0];
  let isPlaying = false;
  let run = 0;
  /** @type {Target | null} */
  let wanted = null;
  /** @type {Promise<void> | null} */
  let moving = null;
  /** Grows with each moment of an address and each return to now: what is still looked for then is not shown. */
  let turn = 0;
  /** Grows with each question about the journal: only the last one tells how far that reaches. */
  let asked = 0;

  /** @param {Target} target */
  async function find(target) {
    const own = ++asked;
    /** @type {Answer} */
    const answer = await callNow("journal.moments", { ...target, limit: 1 });
    if (own === asked) {
      first = answer.first;
      last = answer.last;
      notKnown = answer.not_known;
    }
    return answer.moments[0] ?? null;
  }

  /**
   * Take the moment that an address names; null is now.
   * @param {string | null} at
   */
  async function take(at) {
    if (at === null) return end();
    const own = ++turn;
    wanted = null;
    if (shownMoment()?.seq === Number(at)) return;
    pause();
    show();
    const found = await find({ until: /^\d+$/.test(at) ? Number(at) : at });
    if (own !== turn) return;
    setMoment(found ?? first);
    seen = last.seq;
    show();
  }

  /**
   * Show another moment; while one is being shown, only the last one that was asked for.
   * @param {Target} target
   * @returns {Promise<void>}
   */
  function go(target) {
    wanted = target;
    moving ??= goOn().finally(() => (moving = null));
    return moving;
  }

  async function goOn() {
    while (wanted) {
      const target = wanted;
      wanted = null;
      const wasPast = isPast();
      const own = turn;
      try {
        const found = await find(target);
        if (own !== turn) continue;
        if (!found && target.after !== undefined) {
          await leave();
          continue;
        }
        if (!last.seq) {
          notify("Nothing has happened yet.");
          return;
        }
        if (!wasPast) seen = last.seq;
        setMoment(found ?? first);
      } catch (error) {
        notify(/** @type {Error} */ (error).message, { isRefusal: true });
        return;
      }
      move(wasPast);
      show();
      await changed();
    }
  }

  /** Show the newest change, from where to slide back. */
  async function enter() {
    if (isPast()) return leave();
    await go({});
    /** @type {HTMLElement | null} */ (bar.querySelector("input"))?.focus();
  }

  /** Go back to now. */
  async function leave() {
    end();
    move(false);
    await changed();
  }

  function end() {
    const isHeld = [banner, bar].some((each) => each.contains(document.activeElement));
    pause();
    turn++;
    wanted = null;
    setMoment(null);
    show();
    if (isHeld) focus();
  }

  /** @param {unknown} error */
  function refuse(error) {
    pause();
    show();
    notify(/** @type {Error} */ (error).message, { isRefusal: true });
  }

  /** @param {number} way */
  async function step(way) {
    pause();
    const at = shownMoment()?.seq;
    if (at === undefined) {
      if (way > 0) return;
      try {
        await find({});
      } catch (error) {
        return refuse(error);
      }
      await go(last.seq ? { until: last.seq - 1 } : {});
    } else if (way > 0) await go({ after: at });
    else if (at > first.seq) await go({ until: at - 1 });
  }

  function pause() {
    run++;
    isPlaying = false;
  }

  /** Show one change after the other, each for as long as it lasted, until now. */
  async function play() {
    if (isPlaying || !isPast()) {
      pause();
      show();
      return;
    }
    isPlaying = true;
    const own = ++run;
    show();
    while (own === run) {
      const from = shownMoment();
      if (!from) break;
      /** @type {Answer | void} */
      const answer = await callNow("journal.moments", { after: from.seq, limit: CHUNK }).catch((error) => {
        if (own === run) refuse(error);
      });
      if (!answer || own !== run) break;
      const { moments } = answer;
      if (!moments.length) {
        await leave();
        break;
      }
      await playChunk([from, ...moments], () => own === run);
    }
  }

  /**
   * @param {Moment[]} moments
   * @param {() => boolean} goesOn
   */
  async function playChunk(moments, goesOn) {
    let at = 0;
    while (goesOn() && at < moments.length - 1) {
      await pauseFor(gap(moments[at], moments[at + 1]) / speed);
      if (!goesOn()) return;
      const begun = performance.now();
      at++;
      await go({ until: moments[at].seq });
      // What the server took is not waited for again: fast playing leaves out what lies in between.
      let spent = (performance.now() - begun) * speed;
      while (at < moments.length - 2 && spent > gap(moments[at], moments[at + 1])) {
        spent -= gap(moments[at], moments[at + 1]);
        at++;
      }
    }
  }

  /** Note that the journal may have grown; if that is not to be learned now, the next change says it. */
  async function noteChange() {
    if (!isPast()) return;
    try {
      await find({});
    } catch {
      return;
    }
    show();
  }

  function show() {
    const moment = shownMoment();
    document.documentElement.toggleAttribute("data-past", moment !== null);
    draw(banner, moment ? [drawBanner(moment)] : []);
    draw(bar, moment ? [drawBar(moment)] : []);
  }

  /** @param {Moment} moment */
  function drawBanner(moment) {
    const back = last.seq - moment.seq;
    return h(
      "p",
      null,
      h("span", null, "As it was ", h("time", { datetime: moment.time, title: exact(moment.time) }, clockTime(moment.time)), ", ", back ? `${many(back, "change")} ago` : "after the last change"),
      h("button", { onclick: leave }, "Back to now"),
      h("span", { class: "mute wide" }, `Not known of then: ${notKnown.join(", ")}.`),
    );
  }

  /** @param {Moment} moment */
  function drawBar(moment) {
    const news = last.seq - seen;
    const words = `${clockTime(moment.time, true)}, #${moment.seq.toLocaleString("en")}`;
    return h(
      "div",
      { class: "slider" },
      h("button", { class: "quiet", "aria-label": "One change back", title: "[", onclick: () => step(-1) }, "‹"),
      h("button", { class: "quiet play", "aria-label": isPlaying ? "Pause" : "Play", title: "space", onclick: play }, isPlaying ? "❚❚" : "▶"),
      h("button", { class: "quiet", "aria-label": "One change on", title: "]", onclick: () => step(1) }, "›"),
      h(
        "select",
        { "aria-label": "Speed", onchange: (/** @type {Event} */ event) => (speed = Number(/** @type {HTMLSelectElement} */ (event.currentTarget).value)) },
        SPEEDS.map((each) => h("option", { key: each, value: each, selected: each === speed }, `×${each}`)),
      ),
      h("input", {
        type: "range",
        min: first.seq,
        max: last.seq,
        step: 1,
        value: moment.seq,
        "aria-label": "Moment",
        "aria-valuetext": words,
        oninput: (/** @type {Event} */ event) => {
          pause();
          go({ until: Number(/** @type {HTMLInputElement} */ (event.currentTarget).value) });
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const found = keys[event.key] ?? ARROWS[event.key];
          if (!found) return;
          event.preventDefault();
          event.stopPropagation(); // to the page it may mean something else
          found();
        },
      }),
      h("span", { class: "when wide" }, words),
      news > 0 && h("span", { class: "mute" }, many(news, "new change")),
    );
  }

  /** @type {Record<string, () => void>} */
  const keys = { "[": () => void step(-1), "]": () => void step(1), " ": () => void play() };
  /** @type {Record<string, () => void>} */
  const ARROWS = {
    ArrowLeft: keys["["],
    ArrowDown: keys["["],
    ArrowRight: keys["]"],
    ArrowUp: keys["]"],
    Home: () => void go({ until: first.seq }),
    End: () => void go({ until: last.seq }),
  };
  return {
    take,
    enter,
    leave,
    noteChange,
    /** What keys do now: space plays only at an earlier moment, as else it scrolls. */
    keys: () => (isPast() ? keys : { "[": keys["["] }),
  };
}

/**
 * How long one change lasted until the next, at most a short silence.
 * @param {Moment} from
 * @param {Moment} to
 */
const gap = (from, to) => Math.max(0, Math.min(SILENCE, Date.parse(to.time) - Date.parse(from.time)));

/** @param {number} milliseconds */
const pauseFor = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
