/**
 * A socket for the bridge that speaks to the fake in whatsapp.py instead of WhatsApp.
 *
 * Only the wire is replaced: the event buffer, the making and opening of messages and the encryption of files are
 * Baileys' own. As there, a message is receipted before it is emitted, events are collected until the offline messages
 * are through, and what was collected is thrown away when the connection ends.
 */

import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[1]); // beside the bridge that runs, not beside this file
const baileys = await import(pathToFileURL(require.resolve("baileys")));
const { Boom } = createRequire(require.resolve("baileys"))("@hapi/boom");
const { cleanMessage, generateWAMessage, getCodeFromWSError, makeEventBuffer, proto } = baileys;

const [host, port] = process.env.HERMES_BRIDGE_FAKE.split(":");
const CLOSED = 428;
const lost = () => new Boom("Connection Closed", { statusCode: CLOSED });

export function makeWASocket(options) {
    const { creds } = options.auth;
    const { logger } = options;
    if (!Array.isArray(options.version) || options.version.length !== 3) throw new Boom("no version was passed");
    const ev = makeEventBuffer(logger);
    const ws = new EventEmitter();
    ws.isOpen = false;
    const wire = net.connect(Number(port), host);
    const calls = new Map();
    let lastCall = 0;
    let closed = false;
    let isBuffering = false;

    const write = line => wire.write(`${JSON.stringify(line)}\n`);
    const call = (method, args) =>
        new Promise((resolve, reject) => {
            if (!ws.isOpen) return reject(lost());
            lastCall += 1;
            calls.set(lastCall, { resolve, reject });
            write({ call: lastCall, method, args });
        });

    const end = async error => {
        if (closed) return;
        closed = true;
        ws.isOpen = false;
        wire.destroy();
        for (const { reject } of calls.values()) reject(lost());
        calls.clear();
        ev.emit("connection.update", { connection: "close", lastDisconnect: { error, date: new Date() } });
        ev.removeAllListeners("connection.update");
        ev.destroy();
    };

    /** As the library does it: told to WhatsApp first, then emitted, in a buffer of its own unless it is offline. */
    const receive = ({ number, message, offline, raw }) => {
        const received = raw ? message : revived(message);
        if (!offline) ev.buffer();
        write({ receipt: number });
        if (!raw) cleanMessage(received, creds.me.id, creds.me.lid ?? "");
        ev.emit("messages.upsert", { messages: [received], type: offline ? "append" : "notify" });
        if (!offline) ev.flush();
    };

    const acts = {
        qr: qr => ev.emit("connection.update", { qr }),
        notify: node => {
            ws.emit(`CB:notification,type:${node.attrs.type}`, node);
            ws.emit("CB:notification", node); // which the library itself cannot acknowledge before there is an account
        },
        paired: ({ me, device, secret }) => {
            if (secret !== creds.advSecretKey) return void end(new Boom("Invalid account signature"));
            const account = { details: Buffer.from(device), accountSignatureKey: Buffer.alloc(32) };
            ev.emit("creds.update", { me, account, platform: "android" });
            ev.emit("connection.update", { isNewLogin: true, qr: undefined });
        },
        open: ({ lid }) => {
            ev.emit("creds.update", { me: { ...creds.me, lid } });
            ev.emit("connection.update", { connection: "open" });
        },
        offlineDone: () => {
            if (isBuffering) ev.flush();
            isBuffering = false;
            ev.emit("connection.update", { receivedPendingNotifications: true });
        },
        deliver: receive,
        event: ({ name, data }) => ev.emit(name, data),
        ack: attrs => ws.emit("CB:ack,class:message", { tag: "ack", attrs: { class: "message", ...attrs } }),
        retry: async ({ number, key }) => {
            const message = await options.getMessage(key); // what the library does with a retry receipt
            write({ retried: number, message: message ? plain(message) : null });
        },
        close: ({ code, reason }) => void end(new Boom(reason ?? "Stream Errored", { statusCode: code })),
        answer: ({ call: number, result, error }) => {
            const { resolve, reject } = calls.get(number);
            calls.delete(number);
            if (error) reject(new Boom(error.text, error.status ? { statusCode: error.status } : { data: error.data }));
            else resolve(result);
        },
    };

    const lines = readline.createInterface({ input: wire });
    lines.on("error", () => {}); // the wire tells it too
    lines.on("line", line => {
        if (closed) return;
        const [[act, data]] = Object.entries(JSON.parse(line));
        acts[act](data);
    });
    wire.on("connect", () => {
        ws.isOpen = true;
        const device = creds.account ? Buffer.from(creds.account.details).toString() : null;
        write({ hello: { device, secret: device ? null : creds.advSecretKey } });
    });
    wire.on("error", error => void end(new Boom("WebSocket Error", { statusCode: getCodeFromWSError(error) })));
    wire.on("close", () => void end(new Boom("Connection Terminated", { statusCode: CLOSED })));
    process.nextTick(() => {
        if (creds.me?.id) {
            ev.buffer();
            isBuffering = true;
        }
        ev.emit("connection.update", { connection: "connecting", receivedPendingNotifications: false, qr: undefined });
    });
    ev.on("creds.update", change => Object.assign(creds, change));
    routes.set("download", directPath => call("download", { path: directPath }));

    const upload = async (file, { mediaType }) =>
        call("upload", { mediaType, bytes: readFileSync(file).toString("base64") });
    return {
        ev,
        ws,
        get user() {
            return creds.me;
        },
        sendMessage: async (jid, content, more = {}) => {
            const full = await generateWAMessage(jid, content, { logger, userJid: creds.me.id, upload, ...more });
            await call("send", { jid, id: full.key.id, message: plain(full.message) });
            return full;
        },
        sendNode: async node => {
            if (!ws.isOpen) throw lost();
            write({ node });
        },
        sendPresenceUpdate: (type, jid) => call("presence", { type, jid }),
        readMessages: keys => call("read", { keys }),
        onWhatsApp: (...jids) => call("onWhatsApp", { jids }),
        groupMetadata: jid => call("group", { jid }),
        updateMediaMessage: async message => {
            const { path } = await call("reupload", { id: message.key.id });
            const media = baileys.assertMediaContent(message.message);
            Object.assign(media, { directPath: path, url: `https://mmg.whatsapp.net${path}` });
            return message;
        },
        requestPairingCode: async phone => {
            creds.me = { id: `${phone}@s.whatsapp.net`, name: "~" };
            const { code, isRefused } = await call("pairingCode", { phone });
            creds.pairingCode = code; // the library has it before WhatsApp was asked, and does not wait for the answer
            ev.emit("creds.update", creds);
            const answer = isRefused ? "CB:iq,type:error" : "CB:iq,type:result,link_code_companion_reg";
            setTimeout(() => ws.emit(answer, { tag: "iq", attrs: {} }), 5);
            return creds.pairingCode;
        },
        logout: async () => {
            await call("logout", {});
            void end(new Boom("Intentional Logout", { statusCode: 401 }));
        },
        end,
    };
}

/** Through the wire's own encoding and back, so that numbers, bytes and defaults are what the library delivers. */
function revived({ key, message, ...envelope }) {
    const content = message && proto.Message.decode(proto.Message.encode(proto.Message.fromObject(message)).finish());
    return { ...envelope, key: { ...key }, ...(content ? { message: content } : {}) };
}

function plain(message) {
    return proto.Message.toObject(proto.Message.decode(proto.Message.encode(message).finish()), {
        bytes: String,
        longs: Number,
        enums: String,
    });
}

// Files are fetched from WhatsApp's own host by plain HTTPS; those requests go to the fake as well, and no others go out.
const routes = new Map();
globalThis.fetch = async address => {
    const url = new URL(address);
    if (url.hostname !== "mmg.whatsapp.net") throw new TypeError(`the bridge asked for ${url.hostname}`);
    const { status, bytes } = await routes.get("download")(url.pathname);
    return new Response(status === 200 ? Buffer.from(bytes, "base64") : null, { status });
};
