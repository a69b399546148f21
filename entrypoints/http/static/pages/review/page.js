// Review: what waits for one, and one of them with its diff and comments.

import { openOne } from "./one.js";
import { openQueue } from "./queue.js";

/** @import { Page, Place } from "../../page_table.js" */

/**
 * @param {Place} place
 * @returns {Page}
 */
export const open = (place) => (place.key ? openOne(place) : openQueue(place));
