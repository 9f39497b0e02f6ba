/** The parts of the bridge, put together, and the calls that reach them. */

import * as baileys from "baileys";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { ensureFolder } from "./files.mjs";
import { Groups } from "./groups.mjs";
import { Heard } from "./heard.mjs";
import { Inbound } from "./inbound.mjs";
import { Keeper } from "./keeper.mjs";
import { holdFolder } from "./lock.mjs";
import { libraryLog } from "./log.mjs";
import { People } from "./people.mjs";
import { agentFor, fetchThrough } from "./proxy.mjs";
import { Remembered } from "./remembered.mjs";
import { Sends } from "./sends.mjs";
import { waitOf, wholeNumber } from "./server.mjs";
import { Session } from "./session.mjs";
import { shaped } from "./shapes.mjs";
import { Spool } from "./spool.mjs";
import { ClientVersion } from "./version.mjs";

const REMEMBERED = 2000;
const REMEMBERED_CHANGES = 500;
const HERE = path.dirname(fileURLToPath(import.meta.url));

/** The sources of this bridge, as one number: whoever keeps it sees whether it is the one they mean. */
function scriptHash() {
    const names = fs.readdirSync(HERE).filter(name => name.endsWith(".mjs") || /^package(-lock)?\.json$/.test(name));
    const hash = createHash("sha256");
    for (const name of names.sort())
        hash.update(`${name}\0`)
            .update(fs.readFileSync(path.join(HERE, name)))
            .update("\0");
    return hash.digest("hex");
}

function libraryVersion() {
    return JSON.parse(fs.readFileSync(path.join(HERE, "node_modules/baileys/package.json"), "utf8")).version;
}

/** Opens the folders and builds everything; nothing connects yet. */
export async function putTogether(config, log) {
    for (const folder of [config.session, config.spool, config.media]) ensureFolder(folder);
    await holdFolder(config.spool);
    const logger = libraryLog(log);
    const session = new Session(config.session, log, logger);
    const spool = new Spool(config.spool, log);
    const sent = new Remembered(config.spool, "sent", REMEMBERED, log);
    const changes = new Remembered(config.spool, "changes", REMEMBERED_CHANGES, log);
    const people = new People(config.spool, log);
    const heard = new Heard({ records: new Remembered(config.spool, "seen", REMEMBERED, log), people, log });
    const groups = new Groups(log);
    const agent = agentFor(config.proxy);
    if (agent) globalThis.fetch = fetchThrough(agent);
    const { makeWASocket } = config.socketModule ? await import(pathToFileURL(config.socketModule)) : baileys;
    const inbound = new Inbound({
        spool,
        sent,
        heard,
        people,
        groups,
        me: () => keeper.me,
        linkedAt: () => session.linkedAt,
        log,
    });
    const version = new ClientVersion(config.version, log);
    const options = () => ({
        logger,
        version: version.current,
        agent,
        fetchAgent: agent,
        syncFullHistory: false,
        emitOwnEvents: false,
        markOnlineOnConnect: false, // or the phone would fall silent
        getMessage: key => sends.getMessage(key),
        cachedGroupMetadata: async jid => groups.fresh(jid),
    });
    const onEvent = (name, data, socket) => inbound.take(name, data, socket);
    const prepare = about => {
        if (!about.isNew) spool.belongsTo(keeper.me.id);
        return version.prepare(about);
    };
    const makeSocket = makeWASocket;
    const keeper = new Keeper({ session, makeSocket, prepare, options, backoff: config.backoff, onEvent, log });
    const sends = new Sends({ keeper, sent, changes, heard, groups, people, mediaFolder: config.media });
    return { keeper, spool, sends, sent };
}

export function routesOf({ keeper, spool, sends }) {
    const about = { scriptHash: scriptHash(), baileys: libraryVersion() };
    const health = () => ({
        status: keeper.status,
        code: keeper.code,
        since: keeper.since,
        me: keeper.me,
        waiting: spool.waiting,
        ...about,
    });
    const post =
        (shape, act) =>
        ({ body }) =>
            act(shaped(body, shape));
    return {
        "GET /health": async ({ query, signal }) => {
            await keeper.changed(query.get("not"), waitOf(query), signal);
            return health();
        },
        "GET /qr": () => ({ qr: keeper.qr, n: keeper.qrCount }),
        "POST /pair": post({ phone: "phone" }, async ({ phone }) => ({ code: await keeper.pair(phone) })),
        "POST /logout": async () => {
            await keeper.logout();
            return { success: true };
        },
        "GET /messages": async ({ query, signal }) => {
            const after = wholeNumber(query.get("after") ?? "0", "after");
            await spool.wait(after, waitOf(query), signal);
            const items = spool.after(after);
            return { items, cursor: items.at(-1)?.cursor ?? after };
        },
        "POST /ack": post({ cursor: "cursor" }, ({ cursor }) => ({ success: true, taken: spool.ack(cursor) })),
        "POST /send": post(
            { chatId: "id", message: "words", replyTo: "id?", messageId: "id?", mentions: "ids?" },
            body => sends.text(body),
        ),
        "POST /send-media": post(
            {
                chatId: "id",
                filePath: "words",
                mediaType: "id",
                caption: "text?",
                fileName: "text?",
                mime: "text?",
                voice: "flag?",
                replyTo: "id?",
                messageId: "id?",
            },
            body => sends.media(body),
        ),
        "POST /send-poll": post(
            {
                chatId: "id",
                question: "words",
                options: "options",
                selectableCount: "count?",
                replyTo: "id?",
                messageId: "id?",
            },
            body => sends.poll(body),
        ),
        "POST /send-location": post(
            {
                chatId: "id",
                latitude: "number",
                longitude: "number",
                name: "text?",
                address: "text?",
                messageId: "id?",
            },
            body => sends.location(body),
        ),
        "POST /edit": post({ chatId: "id", messageId: "id", message: "words" }, body => sends.edit(body)),
        "POST /delete": post({ chatId: "id", messageId: "id" }, body => sends.delete(body)),
        "POST /typing": post({ chatId: "id", on: "flag?" }, body => sends.typing(body)),
        "POST /read": post({ chatId: "id", messageIds: "ids" }, body => sends.read(body)),
        "POST /media": post({ chatId: "id", messageId: "id" }, body => sends.fetch(body)),
        "GET /chat/": ({ rest }) => sends.chat(rest),
    };
}
