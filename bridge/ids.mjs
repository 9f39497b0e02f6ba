/**
 * Ids of what Hermes says. In the chat with oneself everything comes from one account, and other devices of it hear what
 * we say: the last six digits are a sum over the others, by which every Hermes knows it again, without any memory.
 */

import { createHash, randomBytes } from "node:crypto";

const SHAPE = /^(3EB0[0-9A-F]{12})([0-9A-F]{6})$/; // as WhatsApp's own web client makes them

const upper = bytes => bytes.toString("hex").toUpperCase();
const sumOf = start => upper(createHash("sha256").update(`hermes ${start}`).digest()).slice(0, 6);

export function newId() {
    const start = `3EB0${upper(randomBytes(6))}`;
    return start + sumOf(start);
}

export function isOfHermes(id) {
    const [, start, sum] = SHAPE.exec(id) ?? [];
    return start !== undefined && sumOf(start) === sum;
}
