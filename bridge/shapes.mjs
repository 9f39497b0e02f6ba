/** What a body must hold: each call says it in one line. A question mark means that it may be left out. */

import { badRequest } from "./refusal.mjs";

const MOST_TEXT = 65_536;
const MOST_OPTIONS = 12;
const isId = value => typeof value === "string" && /^[\x21-\x7e]{1,128}$/.test(value);
const isText = value => typeof value === "string" && value.length <= MOST_TEXT;

const KINDS = {
    id: { test: isId, words: "an id" },
    text: { test: isText, words: `a text of at most ${MOST_TEXT} characters` },
    words: { test: value => isText(value) && value.trim() !== "", words: `a text of 1 to ${MOST_TEXT} characters` },
    flag: { test: value => typeof value === "boolean", words: "true or false" },
    number: { test: value => typeof value === "number" && Number.isFinite(value), words: "a number" },
    count: {
        test: value => Number.isSafeInteger(value) && value >= 0 && value <= MOST_OPTIONS,
        words: `a number from 0 to ${MOST_OPTIONS}`,
    },
    cursor: { test: value => Number.isSafeInteger(value) && value >= 0, words: "a whole number" },
    phone: {
        test: value => isText(value) && /^\d{5,20}$/.test(value),
        words: "the digits of a number with its country code",
    },
    ids: { test: value => Array.isArray(value) && value.length <= 1000 && value.every(isId), words: "a list of ids" },
    options: { test: isOptions, words: `a list of 2 to ${MOST_OPTIONS} different texts` },
};

function isOptions(value) {
    const areTexts = Array.isArray(value) && value.every(KINDS.words.test);
    return areTexts && value.length >= 2 && value.length <= MOST_OPTIONS && new Set(value).size === value.length;
}

/** The fields of the shape and no others, or a refusal that names the first one that is wrong. */
export function shaped(body, shape) {
    const taken = {};
    for (const [name, wanted] of Object.entries(shape)) {
        const kind = KINDS[wanted.replace("?", "")];
        const value = body[name];
        if (wanted.endsWith("?") && (value === undefined || value === null)) continue;
        if (!Object.hasOwn(body, name) || !kind.test(value)) throw badRequest(`${name} must be ${kind.words}.`);
        taken[name] = value;
    }
    return taken;
}
