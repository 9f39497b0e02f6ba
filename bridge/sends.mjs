/** What goes out. The same message under the same id goes out once, however often it is asked for. */

import { isJidGroup, isLidUser, isPnUser, proto } from "baileys";
import { randomBytes } from "node:crypto";

import { newId } from "./ids.mjs";
import { isMe } from "./items.mjs";
import { contentOf, download } from "./media.mjs";
import { Refusal, badRequest } from "./refusal.mjs";

const EDIT_WINDOW_MS = 15 * 60_000;
const ACK_MS = 20_000;
const SLOW_DOWN_SECONDS = 60; // WhatsApp does not say how long
const CLOSED = 428;
const TOO_MANY = 429;
const RESTRICTED = 463;

export class Sends {
    #keeper;
    #sent;
    #changes;
    #heard;
    #groups;
    #people;
    #mediaFolder;
    #underway = new Map();

    constructor({ keeper, sent, changes, heard, groups, people, mediaFolder }) {
        this.#keeper = keeper;
        this.#sent = sent;
        this.#changes = changes;
        this.#heard = heard;
        this.#groups = groups;
        this.#people = people;
        this.#mediaFolder = mediaFolder;
    }

    /** What the library sends again to a phone that could not decrypt it. */
    async getMessage(key) {
        const raw = (this.#sent.get(key?.id) ?? this.#changes.get(key?.id))?.raw;
        return raw ? proto.Message.decode(Buffer.from(raw, "base64")) : undefined;
    }

    text({ chatId, message, replyTo, mentions, messageId }) {
        return this.#once(messageId, id =>
            this.#deliver(id, chatId, { text: message, linkPreview: null, ...mentioning(mentions) }, { replyTo }),
        );
    }

    media({ chatId, replyTo, messageId, ...file }) {
        return this.#once(messageId, async id => this.#deliver(id, chatId, await contentOf(file), { replyTo }));
    }

    location({ chatId, latitude, longitude, name, address, messageId }) {
        const location = { degreesLatitude: latitude, degreesLongitude: longitude, name, address };
        return this.#once(messageId, id => this.#deliver(id, chatId, { location }));
    }

    poll({ chatId, question, options, selectableCount = 1, replyTo, messageId }) {
        return this.#once(messageId, id => {
            const secret = this.#sent.get(id)?.poll?.secret ?? randomBytes(32).toString("base64");
            const poll = {
                name: question,
                values: options,
                selectableCount,
                messageSecret: Buffer.from(secret, "base64"),
            };
            return this.#deliver(id, chatId, { poll }, { replyTo, memory: { poll: { options, secret } } });
        });
    }

    /** Who repeats an id while it is being sent waits for the same answer; afterwards it is remembered. */
    #once(messageId, send) {
        const id = messageId || newId();
        if (this.#sent.get(id)?.state === "sent") return Promise.resolve({ success: true, messageId: id });
        const underway =
            this.#underway.get(id) ??
            Promise.resolve(id)
                .then(send)
                .finally(() => this.#underway.delete(id));
        this.#underway.set(id, underway);
        return underway;
    }

    async #deliver(id, chatId, content, { replyTo, memory = {} } = {}) {
        const socket = this.#keeper.socket();
        const jid = await this.#reach(chatId, socket);
        const quoted = replyTo ? this.#quoted(jid, replyTo) : undefined;
        // A repeat after a crash goes out under the same id, and phones show one message for an id.
        await this.#write(id, { chatId: jid, at: this.#sent.get(id)?.at ?? Date.now(), state: "sending", ...memory });
        await this.#hand(socket, id, jid, content, { quoted, memory: this.#sent });
        this.#sent.note(id, { state: "sent" });
        return { success: true, messageId: id };
    }

    /** Nothing goes out that could not be remembered: it might go out a second time. */
    async #write(id, record) {
        try {
            await this.#sent.put(id, record);
        } catch {
            throw new Refusal(502, "not_sent", "Nothing was sent: the disk takes no more.");
        }
    }

    /** Returns once WhatsApp has it; a lost connection leaves that open. */
    async #hand(socket, id, jid, content, { quoted, memory }) {
        const ack = ackOf(socket, id);
        try {
            const full = await this.#keeper
                .whileOpen(socket, socket.sendMessage(jid, content, { messageId: id, quoted }), unknownOutcome)
                .catch(refuse);
            const raw = Buffer.from(proto.Message.encode(full.message).finish()).toString("base64");
            memory.note(id, { raw }); // a phone may ask for it before WhatsApp has told us
            ack.begin();
            await this.#keeper.whileOpen(socket, ack.promise, unknownOutcome);
        } finally {
            ack.stop();
        }
    }

    #quoted(jid, replyTo) {
        const seen = this.#heard.recall(jid, replyTo);
        if (seen) return seen;
        const sent = this.#sent.get(replyTo);
        if (!sent?.raw) return undefined; // too old to be quoted: it is said without
        const message = proto.Message.decode(Buffer.from(sent.raw, "base64"));
        return { key: { id: replyTo, remoteJid: sent.chatId, fromMe: true }, message };
    }

    async #reach(chatId, socket) {
        const jid = jidOf(chatId);
        if (!isPnUser(jid) || isMe(jid, this.#keeper.me) || this.#people.isKnown(jid)) return jid;
        const answers = await socket.onWhatsApp(jid).catch(refuse);
        if (!answers) return jid; // WhatsApp did not say
        if (!answers.some(({ exists }) => exists))
            throw new Refusal(404, "no_such_chat", "Nobody with this number is on WhatsApp.");
        this.#people.learnReachable(jid);
        return jid;
    }

    async edit({ chatId, messageId, message }) {
        const jid = jidOf(chatId);
        const sent = this.#sent.get(messageId);
        if (!sent || Date.now() - sent.at > EDIT_WINDOW_MS) {
            throw new Refusal(409, "too_old", "A message can be edited for 15 minutes after it was sent.");
        }
        const socket = this.#keeper.socket();
        const key = { remoteJid: jid, fromMe: true, id: messageId };
        await this.#send(socket, jid, { text: message, linkPreview: null, edit: key });
        return { success: true, messageId };
    }

    async delete({ chatId, messageId }) {
        const jid = jidOf(chatId);
        const socket = this.#keeper.socket();
        const seen = this.#heard.recall(jid, messageId);
        await this.#send(socket, jid, { delete: seen?.key ?? { remoteJid: jid, fromMe: true, id: messageId } });
        return { success: true, messageId };
    }

    /** A change to an earlier message is a message too: it has an id, and a phone may ask for it again. */
    async #send(socket, jid, content) {
        const id = newId();
        await this.#hand(socket, id, jid, content, { memory: this.#changes });
    }

    async typing({ chatId, on = true }) {
        await this.#keeper
            .socket()
            .sendPresenceUpdate(on ? "composing" : "paused", jidOf(chatId))
            .catch(refuse);
        return { success: true };
    }

    async read({ chatId, messageIds }) {
        const jid = jidOf(chatId);
        const keys = messageIds.map(id => this.#heard.recall(jid, id)?.key ?? { remoteJid: jid, id, fromMe: false });
        await this.#keeper.socket().readMessages(keys).catch(refuse);
        return { success: true };
    }

    async fetch({ chatId, messageId }) {
        const message = this.#heard.recall(jidOf(chatId), messageId);
        if (!message)
            throw new Refusal(410, "media_gone", "The message is too old: how to open its file is no longer known.");
        return download(message, this.#keeper.socket(), this.#mediaFolder);
    }

    async chat(chatId) {
        const jid = jidOf(chatId);
        if (!isJidGroup(jid)) return { name: this.#people.nameOf(jid), isGroup: false, participants: [] };
        const socket = this.#keeper.socket();
        const group = this.#groups.fresh(jid) ?? (await this.#groups.fetch(jid, socket).catch(refuse));
        return { name: group.subject ?? "", isGroup: true, participants: group.participants.map(({ id }) => id) };
    }
}

export function jidOf(chatId) {
    const jid = /^\+?\d{5,20}$/.test(chatId) ? `${chatId.replace("+", "")}@s.whatsapp.net` : chatId;
    if (isPnUser(jid) || isLidUser(jid) || isJidGroup(jid)) return jid;
    throw badRequest("chatId must be a number, or end in @s.whatsapp.net, @lid or @g.us.");
}

const mentioning = mentions => (mentions?.length ? { mentions } : {});

/** WhatsApp's word on one message: it came, or the number of a refusal. The library waits for neither. */
function ackOf(socket, id) {
    let timer;
    let hear;
    let fail;
    const promise = new Promise((resolve, reject) => {
        fail = reject;
        hear = ({ attrs }) => {
            if (attrs?.id !== id) return;
            if (attrs.error) reject(refusalOf(Number(attrs.error)));
            else resolve();
        };
    });
    promise.catch(() => {}); // heard by whoever waits; nobody does when the send itself failed
    socket.ws.on("CB:ack,class:message", hear);
    return {
        promise,
        /** It has left: from now on the answer is due. A large file takes its time before that. */
        begin: () => {
            timer = setTimeout(() => fail(unknownOutcome()), ACK_MS);
        },
        stop: () => {
            clearTimeout(timer);
            socket.ws.off("CB:ack,class:message", hear);
        },
    };
}

const unknownOutcome = () =>
    new Refusal(504, "outcome_unknown", "The message left, but WhatsApp did not say whether it came.");

/** An error of the library, as the contract tells it. */
function refuse(error) {
    if (error instanceof Refusal) throw error;
    const code =
        error?.output?.statusCode === 500 && typeof error.data === "number" ? error.data : error?.output?.statusCode;
    throw refusalOf(code, /rate-overlimit/.test(error?.message) ? TOO_MANY : code);
}

function refusalOf(code, kind = code) {
    switch (kind) {
        case CLOSED:
            return new Refusal(503, "not_connected", "The connection ended before anything was sent.");
        case TOO_MANY:
            return new Refusal(429, "slow_down", "WhatsApp takes no more for now.", { retryAfter: SLOW_DOWN_SECONDS });
        case 408:
            return unknownOutcome();
        case 404:
        case 406:
            return new Refusal(404, "no_such_chat", "WhatsApp knows no such chat.");
        case 401:
        case 403:
            return new Refusal(403, "not_allowed", "WhatsApp does not let this account do that here.");
        case RESTRICTED:
            return new Refusal(
                403,
                "restricted",
                "WhatsApp keeps this account from writing to people it has no chat with.",
            );
        default:
            return new Refusal(502, "not_sent", `WhatsApp did not take it (${code ?? "no code"}).`);
    }
}
