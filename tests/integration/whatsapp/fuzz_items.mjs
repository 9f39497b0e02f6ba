/** Ten thousand mutated messages through the bridge's pure parts, in one process. Prints what came of them as JSON. */

import path from "node:path";
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";

const program = process.argv[2];
const load = name => import(pathToFileURL(path.join(program, name)));
const { itemOf, unreadableItem } = await load("items.mjs");
const { afterClose, pauseAfter } = await load("keeper.mjs");
const { openVote } = await load("sealed.mjs");
const baileys = await import(pathToFileURL(createRequire(path.join(program, "main.mjs")).resolve("baileys")));

const ANA = "4915550000007@s.whatsapp.net";
const KINDS = new Set(["message", "edit", "delete", "vote"]);
const me = { id: "4915550000001@s.whatsapp.net", lid: "100000000000001@lid", name: "Hermes" };
const secret = Buffer.alloc(32, 7);
const context = {
    me,
    phoneOf: () => "",
    nameOf: () => "",
    openVote: ({ pollCreationMessageKey, vote }, { senderId }) =>
        openVote(vote, {
            pollId: pollCreationMessageKey.id,
            secret,
            options: ["Yes", "No"],
            creators: [me.id],
            voters: [senderId],
        }),
};

const key = more => ({ remoteJid: ANA, fromMe: false, id: "3A01", ...more });
const quote = {
    stanzaId: "3EB0",
    participant: me.id,
    quotedMessage: { conversation: "before" },
    mentionedJid: [me.id],
};
const media = {
    url: "https://mmg.whatsapp.net/x",
    directPath: "/x",
    mediaKey: Buffer.alloc(32),
    mimetype: "image/png",
    fileLength: 7,
    caption: "look",
};
const contents = [
    { conversation: "hello" },
    { extendedTextMessage: { text: "hello", contextInfo: quote } },
    { imageMessage: { ...media, contextInfo: quote } },
    { audioMessage: { ...media, ptt: true, seconds: 3 } },
    { documentWithCaptionMessage: { message: { documentMessage: { ...media, fileName: "a.pdf" } } } },
    { ephemeralMessage: { message: { viewOnceMessageV2: { message: { videoMessage: media } } } } },
    { protocolMessage: { key: key(), type: 14, editedMessage: { conversation: "hallo" }, timestampMs: 1 } },
    { protocolMessage: { key: key(), type: 0 } },
    {
        pollUpdateMessage: {
            pollCreationMessageKey: key({ fromMe: true }),
            vote: { encPayload: Buffer.alloc(48), encIv: Buffer.alloc(12) },
        },
    },
    { pollCreationMessageV3: { name: "?", options: [{ optionName: "Yes" }], selectableOptionsCount: 1 } },
    { locationMessage: { degreesLatitude: 1, degreesLongitude: 2, name: "here" } },
    { contactsArrayMessage: { displayName: "two", contacts: [{ displayName: "Bo", vcard: "V" }] } },
    { reactionMessage: { key: key(), text: "👍" } },
];
const seeds = contents.flatMap(message => [
    { key: key(), messageTimestamp: 1, pushName: "Ana", message },
    {
        key: key({ remoteJid: "120363@g.us", participant: "2000@lid", participantAlt: ANA }),
        messageTimestamp: 1,
        message,
    },
    {
        key: key(),
        messageTimestamp: 1,
        message: baileys.proto.Message.decode(
            baileys.proto.Message.encode(baileys.proto.Message.fromObject(message)).finish(),
        ),
    },
]);

let state = 20261115;
const chance = most => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % most;
};
const junk = [
    null,
    undefined,
    0,
    -1,
    NaN,
    1e300,
    "",
    "x".repeat(5000),
    "\u0000",
    true,
    [],
    {},
    [null],
    { toNumber: 7 },
    new Uint8Array(3),
    10n ** 20n,
    "@lid",
    "@",
    Symbol("s"),
    () => 1,
];

function mutate(value, depth = 0) {
    if (depth > 8 || chance(12) === 0) return junk[chance(junk.length)];
    if (value instanceof Uint8Array) return chance(4) ? value : value.subarray(0, chance(8));
    if (Array.isArray(value)) return value.map(each => mutate(each, depth + 1));
    if (value === null || typeof value !== "object") return chance(15) ? value : junk[chance(junk.length)];
    const changed = Object.create(Object.getPrototypeOf(value));
    for (const name of Object.keys(value)) if (chance(20)) changed[name] = mutate(value[name], depth + 1);
    if (chance(10) === 0) changed[Object.keys(contents[chance(contents.length)])[0]] = junk[chance(junk.length)];
    return changed;
}

const outcome = { items: 0, nothing: 0, unreadable: 0, wrong: [] };
for (let round = 0; round < 10_000; round += 1) {
    const message = mutate(seeds[round % seeds.length]);
    let item;
    try {
        item = itemOf(message, context);
    } catch (error) {
        outcome.unreadable += 1;
        item = unreadableItem(message, error);
        if (typeof item.raw !== "string" || item.kind !== "unreadable")
            outcome.wrong.push(`round ${round}: ${item.kind}`);
        JSON.stringify(item);
        continue;
    }
    if (item === null) {
        outcome.nothing += 1;
        continue;
    }
    outcome.items += 1;
    const isWhole =
        KINDS.has(item.kind) &&
        typeof item.messageId === "string" &&
        item.messageId &&
        typeof item.chatId === "string" &&
        item.chatId;
    const again = JSON.parse(JSON.stringify(item));
    const isPlain = Object.entries(item).every(
        ([name, value]) => value !== undefined && typeof value === typeof again[name],
    );
    if (!isWhole || !isPlain) outcome.wrong.push(`round ${round}: ${JSON.stringify(item).slice(0, 300)}`);
}

const codes = Object.fromEntries(
    Object.values(baileys.DisconnectReason)
        .filter(Number.isInteger)
        .map(code => [code, afterClose(code)]),
);
const pauses = [0, 1, 2, 5, 6, 50].map(failures =>
    [0, 1].map(luck => pauseAfter(failures, { first: 1000, most: 60_000 }, luck)),
);
/** The library itself, going nowhere: what it emits while it collects events must pass where the bridge listens. */
async function tapped() {
    const logger = { level: "silent", trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => logger };
    const creds = { ...baileys.initAuthCreds(), me };
    const keys = { get: async () => ({}), set: async () => {} };
    const socket = baileys.makeWASocket({
        auth: { creds, keys },
        logger,
        version: [2, 3000, 1],
        waWebSocketUrl: "ws://127.0.0.1:9",
    });
    const seen = [];
    const handed = [];
    const emit = socket.ev.emit;
    socket.ev.emit = (name, data) => {
        if (name === "messages.upsert") seen.push(data.messages[0].key.id);
        return emit.call(socket.ev, name, data);
    };
    socket.ev.on("messages.upsert", ({ messages }) => handed.push(messages[0].key.id));
    socket.ev.buffer();
    await socket.upsertMessage({ key: key(), messageTimestamp: 1, message: { conversation: "hello" } }, "append");
    const canHearAcks = typeof socket.ws.on === "function" && typeof socket.ws.off === "function";
    const ack = baileys.buildAckStanza({ tag: "notification", attrs: { id: "1", from: "s.whatsapp.net", type: "x" } });
    const canAcknowledge = typeof socket.sendNode === "function" && ack.attrs.class === "notification";
    const hasSecretInQr = baileys
        .buildPairingQRData("ref", "a", "b", "SECRET", ["Mac OS", "Chrome", "1"])
        .includes(",SECRET,");
    return { seen, handed: [...handed], canHearAcks, canAcknowledge, hasSecretInQr };
}

const { proxyOf } = await load("proxy.mjs");
const noProxies = ["ftp://user:secret@proxy", "secret", "http://", "socks4://user:secret@proxy"].map(address => {
    try {
        return proxyOf(address).href;
    } catch (error) {
        return error.message;
    }
});
const library = await tapped();

/** The version that is sent, when WhatsApp's site names these numbers in turn. */
const { ClientVersion } = await load("version.mjs");
async function versions() {
    const quiet = { info() {} };
    const bundled = baileys.DEFAULT_CONNECTION_CONFIG.version[2];
    const asked = [];
    const after = async (page, about, given) => {
        globalThis.fetch = async address => {
            asked.push(String(address));
            return { ok: page !== null, text: async () => page };
        };
        const version = new ClientVersion(given, quiet);
        await version.prepare(about);
        return version.current[2] - bundled;
    };
    const newer = `"client_revision":${bundled + 5}`;
    const steps = [
        await after(newer, { isNew: true, code: null }),
        await after(newer, { isNew: false, code: 405 }),
        await after(newer, { isNew: false, code: 428 }),
        await after(`"client_revision":5`, { isNew: true, code: null }),
        await after("nothing", { isNew: true, code: null }),
        await after(null, { isNew: true, code: null }),
        await after(newer, { isNew: true, code: null }, `2.3000.${bundled + 1}`),
    ];
    return { steps, asked: asked.length };
}
const version = await versions();
process.stdout.write(JSON.stringify({ ...outcome, codes, pauses, library, noProxies, version }), () => process.exit(0));
