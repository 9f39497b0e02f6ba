/** What was said lately, as it came: for quotes, for files fetched later, for receipts, and to open later edits of it. */

import { isJidGroup, proto } from "baileys";

import { kindOf } from "./log.mjs";

export class Heard {
    #records;
    #people;
    #log;

    constructor({ records, people, log }) {
        this.#records = records;
        this.#people = people;
        this.#log = log;
    }

    keep(chatId, messageId, { key, message }) {
        try {
            const raw = proto.WebMessageInfo.encode(proto.WebMessageInfo.fromObject({ key, message })).finish();
            this.#records.note(`${chatId} ${messageId}`, { raw: Buffer.from(raw).toString("base64") });
        } catch (error) {
            this.#log.warn("A message cannot be quoted or its file fetched later", kindOf(error));
        }
    }

    /** The message, under whichever of the chat's ids it came; undefined when it is too long ago. */
    recall(chatId, messageId) {
        const chats = isJidGroup(chatId) ? [chatId] : this.#people.idsOf(chatId);
        const record = chats.map(chat => this.#records.get(`${chat} ${messageId}`)).find(Boolean);
        return record && proto.WebMessageInfo.decode(Buffer.from(record.raw, "base64"));
    }
}
